"""The reader of requests: splits a text into its words and slots, in order.

A slot is a detail that its form shows: a point in time, a number, an amount of money, an id, an address, a file, a
quotation or a name. A slot keeps its value. The modules that compare requests decide which values may differ.
"""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from trust.learning import words

_MONTHS = "|".join(word for word, code in words.TIME_WORDS.items() if code == "m")
# The endings of file names. A name with such an ending is not the address of a host.
ENDINGS = "pdf|docx?|xlsx?|csv|txt|md|pptx?|png|jpe?g|odt|ods|ics"
_HALF = r"\ ?(?:[ap]m\b|[ap]\.m\.)"
_MINUTE = r"[0-5]\d"
_HOUR = r"(?:[01]?\d|2[0-3])"
# Before one of these, hours and minutes are a length of time, or something else than a time of day.
_UNITS = (
    r"h|hrs?|hours?|mins?|minutes?|m|s|secs?|seconds?|std|stunden?|minuten?|heures?|horas?|ore|per|km|long|later"
    r"|earlier|late|early|ago|odds|ratio"
)
_CLOCK_TOKEN = (
    rf"(?<![\w.,:/+-])(?:(?:0?\d|1[0-2])(?:[.:]{_MINUTE})?{_HALF}|{_HOUR}(?:[.:]{_MINUTE})?\ ?(?:uhr|o'clock)\b"
    rf"|{_HOUR}:{_MINUTE}(?![\w%]|[.,:/]\d|[-\u2013]\w|\ [-\u2013]\ ?\d|\ ?(?:{_UNITS})\b))"
)
# A date in digits needs a year of four digits, since "1.3.26" may be a version. Without a year it counts only behind
# "am", since "40.50." is a price.
_DAY = r"(?:0?[1-9]|[12]\d|3[01])"
_MONTH = r"(?:0?[1-9]|1[0-2])"
_YEAR = r"(?:19|20)\d\d"
_DATE_TOKEN = (
    rf"(?<![\w.,:/+-])(?:{_YEAR}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])|{_DAY}\.{_MONTH}\.{_YEAR}"
    rf"|{_DAY}/{_MONTH}/{_YEAR}|{_MONTH}/{_DAY}/{_YEAR}|(?<=\bam\ ){_DAY}\.{_MONTH}\.)(?![\w/-]|[.,:]?\d)"
)
# A full stop or comma is a mark only behind a word. In "./old", "old/.." and "a,b" it is part of the word.
_STOP = r"(?<=[\w\"”»')\]%€])"
# The kinds of token. Every repetition is bounded, so that the work grows only linearly with the text.
_TOKEN = re.compile(
    rf"""
      (?P<url>(?:[a-z]{{2,10}}://|\bwww\.)[^\s<>"]{{0,200}}[^\s<>".,!?;:)])
    | (?P<mail>[\w.+-]{{1,64}}@[\w-]{{1,63}}(?:\.[\w-]{{1,63}}){{1,4}})
    | (?P<quote>["“„«][^"“”„«»\n]{{1,120}}["”“»])
    | (?P<file>(?<![\w/.~])\w[\w-]{{0,60}}(?:\.[\w-]{{1,20}}){{0,3}}
        \.(?:{ENDINGS})\b)
    | (?P<clock>{_CLOCK_TOKEN})
    | (?P<host>(?<![\w.@-])(?:[\w-]{{1,63}}\.){{1,4}}[a-z]{{2,24}}\b)
    | (?P<date>{_DATE_TOKEN})
    | (?P<money>[€$£¥]\ ?\d{{1,12}}(?:[.,']\d{{1,12}}){{0,4}}
        |\b(?:\d{{1,12}}(?:[.,']\d{{1,12}}){{0,4}}|\d{{1,3}}(?:\ \d{{3}}){{1,3}}(?:[.,]\d{{1,2}})?)
        \ ?(?:[€$£¥]|(?:eur|euros?|usd|dollars?|gbp|chf)\b))
    | (?P<ordinal>\b\d{{1,2}}(?:st|nd|rd|th)\b|\b\d{{1,2}}\.(?=\ (?:{_MONTHS})\b))
    | (?P<phone>(?<![\w#.,/-])(?:\+\ ?)?(?=(?:[ ()/-]{{0,2}}\d){{7}})
        (?:\d{{2,6}}|\(\d{{1,6}}\))(?:[ ()/-]{{1,2}}\d{{2,8}}){{1,6}}(?![\w:-]))
    | (?P<account>\b(?-i:[A-Z]{{2}}\d{{2}}(?:\ ?[A-Z\d]{{4}}){{2,7}}(?:\ ?[A-Z\d]{{1,4}})?)\b)
    | (?P<id>\#\d{{1,12}}\b
        |(?<!\w)(?=[\w-]{{0,60}}\d)(?=[\w-]{{0,60}}[a-z])[a-z0-9_](?:[a-z0-9_-]{{0,60}}[a-z0-9_])?(?!\w))
    | (?P<path>(?<![\w/.~-])\w[\w-]{{0,38}}/\w[\w-]{{0,60}}(?:\.[\w-]{{1,20}}){{0,3}}(?![\w/]))
    | (?P<number>\d{{1,30}}(?:[.,']\d{{1,30}}){{0,8}})
    | (?P<title>\b(?:dr|mr|mrs|ms|prof)\b\.?)
    | (?P<word>[^\W\d_]{{1,100}}(?:['-][^\W\d_]{{1,100}}){{0,5}})
    | (?P<end>\n|{_STOP}(?:[.;]|[!?]{{1,3}})(?=\s|$))
    | (?P<comma>{_STOP},(?=\s|$))
    | (?P<other>\S)
    """,
    re.VERBOSE | re.IGNORECASE,
)
# A point in time, matched on one letter for each token. It is a day ("next Friday", "Tuesday the 3rd of May 2026",
# "May 3", "on the 3rd"), with a time of day or a part of the day if there is one; or a time of day; or a month. "On"
# before a day and "at" before a time belong to the point in time. Every other preposition is a word.
_DATE = r"t?[NO]o?m(?:,?Y)?|mt?[NO](?:,?Y)?(?![WNSYO])|D|(?<=n)tO(?=$|[.,paC])"
_CLOCK = "a?C"
_POINT = re.compile(
    rf"(?P<on>n)?(?:(?P<near>x?d|r)(?P<exact>,?(?:{_DATE}))?|(?P<date>{_DATE}))(?:,?(?P<at>{_CLOCK})|(?P<part>p))?"
    rf"|(?P<clock>{_CLOCK})|(?P<month>m(?:,?Y)?)"
)
_LETTERS: dict[str, str] = {
    "clock": "C",
    "date": "D",
    "ordinal": "O",
    "end": ".",
    "comma": ",",
    "phone": "S",
    "money": "S",
}
# These words are mostly not months if they have no capital or begin a sentence.
_MAYBE_MONTHS = frozenset(["may", "march", "mar", "mars", "jan", "dec"])
_NAME = re.compile(r"[A-ZÀ-ÖØ-Þ][a-zß-öø-ÿ]+(?:[A-Z'-][A-Za-zß-öø-ÿ]+)?")
_LEADING = words.FILLERS | words.BEFORE_VERB
_MAX_NAME = 2
_FROM_CAPITALS = 4
_MAX_QUOTE = 12
# An amount with its unit in one word, such as "5kg".
_MEASURE = re.compile(r"\d+[a-z]+")
# A number with at least this many digits is an id, such as the number of an account or a parcel.
_LONG = 7


class Token(NamedTuple):
    """A word or a slot of a text.

    `text` is the written text. `value` and `form` are a slot's value and the form of this value. `glued` is true if no
    space separates the token from the token before.
    """

    kind: str
    text: str
    value: str = ""
    form: str = ""
    glued: bool = False

    @property
    def low(self) -> str:
        return self.text.lower()


END = Token("end", "")


def read(text: str) -> list[Token]:
    """Returns the words and slots of a text. The text must be in Unicode's normal form C."""
    tokens = list(scan(text.replace("\u2019", "'")))
    tokens = [_numbered(token, tokens[max(place - 2, 0) : place]) for place, token in enumerate(tokens)]
    return _with_names(_with_times(_priced(tokens)), _english(tokens))


def scan(text: str) -> Iterator[Token]:
    """Yields the tokens of `text`. Every character except white space is in one of them."""
    for match in _TOKEN.finditer(text):
        kind, said = match.lastgroup or "other", match.group()
        yield Token(kind, said, said, glued=match.start() > 0 and not text[match.start() - 1].isspace())


def amount(value: str) -> float:
    """Returns the number of a text of digits. A point, comma or apostrophe may separate thousands or decimals.

    An ambiguous text, such as "5.000", counts as the larger number.
    """
    digits = value.replace("'", "").replace(" ", "").rstrip(".,")
    marks = [mark for mark in digits if mark in ".,"]
    whole, mark, rest = digits.rpartition(marks[-1]) if marks else (digits, "", "")
    thousands = len(set(marks)) == 1 and (len(marks) > 1 or (len(rest) == 3 and not whole.startswith("0")))
    if mark and not thousands:
        return float(f"{re.sub('[.,]', '', whole)}.{rest}")
    return float(re.sub("[.,]", "", digits) or "inf")


def _numbered(token: Token, earlier: Sequence[Token]) -> Token:
    """Returns a token with its final kind, by the one or two tokens before it.

    A number can be a count, an amount of money in a currency, a telephone number or an id. It is an id in "cancel order
    815", but a count in "order 3 pizzas", where the word before may be a verb.
    """
    low = token.low
    before = earlier[-1] if earlier else END
    leads = len(earlier) < 2 or earlier[0].kind != "word" or earlier[0].low in _LEADING
    if token.kind == "money":
        value = "".join(letter for letter in low if letter.isdigit() or letter in ".,' ").strip()
        return token._replace(value=value, form=_currency(low.replace(value, "").strip()))
    if token.kind == "word" and low in words.NUMBERS:
        return token._replace(kind="number", value=words.NUMBERS[low])
    if token.kind == "id" and _MEASURE.fullmatch(low):
        return token._replace(kind="word")
    if token.kind == "mail":
        return token._replace(value=low)
    if token.kind != "number":
        return token
    if before.low in words.DIALS:
        return token._replace(kind="phone")
    digits_of = sum(letter.isdigit() for letter in token.text)
    long = digits_of >= _LONG or sum(mark in ".,'" for mark in token.text) > 1 or re.match(r"0\d{3}", token.text)
    which = before.low in words.WHICH_ONE and not leads
    return token._replace(kind="id") if long or which else token


def _priced(tokens: Sequence[Token]) -> list[Token]:
    """Returns the tokens with a number and its currency as one token: "fifty euros", "USD 50"."""
    result: list[Token] = []
    for token in tokens:
        before = result[-1] if result else END
        if before.kind == "number" and token.low in words.CURRENCIES:
            result[-1] = before._replace(kind="money", form=words.CURRENCIES[token.low])
        elif token.kind == "number" and before.low in words.CURRENCIES and not before.text.islower():
            result[-1] = token._replace(kind="money", form=words.CURRENCIES[before.low], glued=before.glued)
        else:
            result.append(token)
    return result


def _currency(written: str) -> str:
    return words.CURRENCIES.get(written, written)


def _english(tokens: Sequence[Token]) -> bool:
    said = {token.low for token in tokens if token.kind == "word"}
    return not said & words.FOREIGN and bool(said & words.ENGLISH)


def _with_times(tokens: list[Token]) -> list[Token]:
    """Returns the tokens with one token for each day, time of day and month."""
    letters = "".join(_letter(token, tokens[place - 1] if place else END) for place, token in enumerate(tokens))
    result: list[Token] = []
    place = 0
    for match in _POINT.finditer(letters):
        result += tokens[place : match.start()]
        result += _point(match, tokens, result)
        place = match.end()
    return result + tokens[place:]


def _letter(token: Token, before: Token) -> str:
    """Returns the letter that stands for a token in the search for points in time."""
    if token.kind == "number" and re.fullmatch(r"(?:19|20)\d\d", token.text):
        return "Y"
    if token.kind == "number":
        return "N" if re.fullmatch(r"0?[1-9]|[12]\d|3[01]", token.text) else "S"
    if token.kind != "word":
        return _LETTERS.get(token.kind, "S")
    code = words.TIME_WORDS.get(token.low.removesuffix("'s"), "W")
    if code == "m" and token.low in _MAYBE_MONTHS and (token.text.islower() or before.kind == "end"):
        return "W"
    return code


def _point(match: re.Match[str], tokens: Sequence[Token], earlier: Sequence[Token]) -> list[Token]:
    """Returns the tokens for a point in time: a day, a time of day or a month.

    "Tomorrow" and "next Friday" get an "on" before them, as other days have. "Friday at 10:00" reads as "Friday 10:00".
    """
    found: list[Token] = []
    if match["near"] or match["date"]:
        before = earlier[-1].low if earlier else ""
        relative = match["near"] and tokens[match.start("near")].low in words.RELATIVE
        if match["on"] or (relative and before not in words.BEFORE_RELATIVE):
            before = "on"
            found.append(Token("word", before))
        found.append(_day(match, tokens, before in words.POINTS and not _as_of(earlier)))
    if match["clock"] and match["clock"][0] == "a":
        found.append(Token("word", "at"))
    for group in ("at", "clock"):
        if match[group]:
            found.append(_clock(tokens[match.start(group) : match.end(group)]))
    for group in ("part", "month"):
        if match[group]:
            found.append(Token(group, "", _said(tokens[match.start(group) : match.end(group)])))
    if tokens[match.end() - 1].low.endswith("'s"):
        found.append(Token("word", "'s"))
    found[0] = found[0]._replace(glued=tokens[match.start()].glued)
    return found


def _day(match: re.Match[str], tokens: Sequence[Token], point: bool) -> Token:
    """Returns the token of a day. Its form is "near" for a weekday or "tomorrow", else "date" with its year, if any."""
    start = match.start("near") if match["near"] else match.start("date")
    value = _said(tokens[start : max(match.end("near"), match.end("exact"), match.end("date"))])
    exact = not match["near"] or match["exact"]
    year = re.search(r"\b\d{4}\b", value) if exact else None
    form = f"date {year.group()}" if year else "date" if exact else "near"
    return Token("day" if point else "bound", "", value, form)


def _as_of(earlier: Sequence[Token]) -> bool:
    return [token.low for token in earlier[-2:]] == ["as", "of"]


def _said(tokens: Sequence[Token]) -> str:
    """Returns the words of a point in time without "the", "of", "on" and the like."""
    said = (token.low.removesuffix("'s") for token in tokens if token.kind != "comma")
    return " ".join(word for word in said if words.TIME_WORDS.get(word) not in ("t", "o", "n"))


def _clock(tokens: Sequence[Token]) -> Token:
    """Returns the token of a time of day, in hours and minutes. The form "bare" marks a time that may be p.m., too."""
    low = tokens[-1].low
    if low in words.TIME_WORDS:
        return Token("clock", "", "00:00" if low == "midnight" else "12:00")
    numbers = [int(digits) for digits in re.findall(r"\d+", low)]
    hour, minute = numbers[0], numbers[1] if len(numbers) > 1 else 0
    half = re.search(r"[ap](?=\.?m)", low)
    if half:
        hour = hour % 12 + (12 if half.group() == "p" else 0)
    bare = not half and low[:1] in "123456" and re.fullmatch(r"\d(?::\d\d)?", low)
    return Token("clock", "", f"{hour:02}:{minute:02}", "bare" if bare else "")


def _with_names(tokens: Sequence[Token], english: bool) -> list[Token]:
    """Returns the tokens with one token for each name. Quotations, paths and files that are no details become words."""
    capitals = sum(token.kind == "word" and _NAME.fullmatch(token.text) is not None for token in tokens[1:])
    count = sum(token.kind == "word" for token in tokens[1:])
    names = english and not (capitals >= _FROM_CAPITALS and capitals * 2 > count)  # Not In A Title
    result: list[Token] = []
    run = 0
    for place, token in enumerate(tokens):
        before = result[-1] if result else END
        after = tokens[place + 1] if place + 1 < len(tokens) else END
        if names and token.kind == "word" and _is_name(token, before, after, result, run):
            run += 1
            if run > 1:
                result.pop()
            said = f"{before.text} {token.text}" if run > 1 else token.text
            glued = before.glued if run > 1 else token.glued
            # "Luigi's" is the place when nothing follows that is Luigi's.
            owns = said.endswith("'s") and after.kind != "end" and after.low not in words.FUNCTION
            value = said.lower().removesuffix("'s") if owns else said.lower()
            result.append(Token("name", said, value, glued=glued))
            result += [Token("word", "'s")] if owns else []
            continue
        run = 0
        result.append(_detail(token, before))
    return result


def _is_name(token: Token, before: Token, after: Token, earlier: Sequence[Token], run: int) -> bool:
    """Returns whether a word in its place is a name, or continues a name of `run` words so far."""
    owns = token.text.endswith("'s")
    bare = token.text.removesuffix("'s")
    if _NAME.fullmatch(bare) is None or bare.lower() in words.KNOWN:
        return False
    if before.kind == "name":
        return run < _MAX_NAME and not before.low.endswith("'s")
    if before.kind == "title":
        return True
    if before.kind == "end":
        return False
    if before.low in words.BEFORE_NAME or (owns and before.kind == "word" and before.low not in words.ARTICLES):
        return True
    if before.low in words.AUXILIARIES:
        return len(earlier) < 2 or earlier[-2].kind == "end" or earlier[-2].low in {*words.QUESTIONS, ","}
    if before.low in {"and", "or"}:
        return len(earlier) > 1 and earlier[-2].kind == "name"
    return before.low in words.GIVING and (after.low in words.ARTICLES or after.low in words.PRONOUNS)


def _detail(token: Token, before: Token) -> Token:
    """Returns the token. A quotation, path or file becomes a word unless it is a mere detail.

    It is no mere detail if it could be a request by itself, or if its name tells of a secret.
    """
    if token.kind not in {"quote", "path", "file"}:
        return token
    said = re.findall(r"[^\W\d_]+", token.low)
    strong = any(word in words.ACTS or word in words.NO_NAMES or word in words.NEGATIONS for word in said)
    stands = {"quote": words.BEFORE_QUOTE, "path": words.BEFORE_PATH}.get(token.kind)
    if strong or len(said) > _MAX_QUOTE or (stands is not None and before.low not in stands):
        return token._replace(kind="other")
    return token
