"""Whether two requests ask for the same kind of thing, without a model.

A request is brought down to its skeleton: details (dates, times, numbers, amounts, names, addresses, ids) become slots,
politeness goes, verbs that mean the same become one. Two requests are alike when their skeletons are the same. Nearly
the same isn't enough: one word makes "unlock" of "lock", and a wrong draft of a skill costs the owner's trust, while a
missed one costs nothing. So a word that isn't understood always counts, and what is dropped or made a slot is listed.
"""

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

from rapidfuzz.distance import Indel

# Longer texts aren't compared: cut, two that begin alike would pass for alike whatever comes after.
MAX_CHARS = 1000
# The most that two texts score that don't ask for the same act, or of which one says "not".
OTHER_ACT = 0.5
# The most that two texts score that aren't alike.
NOT_ALIKE = 0.99

# Verbs of requests, those that mean the same in one line. Only true synonyms: "remove" isn't "delete", it may be from a
# list; opposites are simply in different lines.
_ACT_LINES = """
    accept / add / approve / ask / attend / block / book reserve / buy purchase / calculate / call phone / cancel /
    change / charge / check / close / compare / confirm / convert / copy / create / decline reject refuse / delete
    erase / deploy / describe / disable deactivate / dispute / download / email / enable activate / explain / export
    / find / fix / forward / get / give / grant / help / import / install / introduce / invite / join / keep / leave
    / list / lock / log / mail / make / meet / merge / message / move reschedule / name / notify / open / order /
    pause / pay / play / post / postpone delay / print / proofread / provide / publish / put / read / recommend /
    refund / remind / remove / rename / reply respond answer / reset / resume / review / revoke / run execute / save
    / schedule arrange / search / send / set / share / show / sign / start / stop / submit / subscribe / suggest /
    summarise summarize / tell / test / track / transfer wire / translate / turn switch / unblock / unlock /
    unsubscribe / update / upload / verify / withdraw / write
"""
_ACTS: Mapping[str, str] = MappingProxyType(
    {word: line.split()[0] for line in _ACT_LINES.split("/") for word in line.split()}
)


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _phrases(text: str) -> tuple[tuple[str, ...], ...]:
    """Returns the words of each phrase, of phrases with commas between them, the longest first."""
    return tuple(sorted((tuple(phrase.split()) for phrase in text.split(",")), key=len, reverse=True))


_ARTICLES = _words("a an the")
_PREPOSITIONS = _words("with from to in at for by about of near via into onto")
_PRONOUNS = _words("i me my we us our you your he him his she her it its they them their this that these those")
_AUXILIARIES = _words(
    "is are was were am be been can could will would shall should may might must do does did has have had"
)
_QUESTIONS = _words("what which who whom whose when where why how")
_NEGATIONS = _words("not no never nothing none nobody neither nor without cannot don dont stop avoid except unless")
_OTHERS = _words(
    "and or but then also if so as than on off up down out over under all any every each only again more most ok yes"
    " there here too very some both other"
)
_FUNCTION = (
    _ARTICLES | _PREPOSITIONS | _PRONOUNS | _AUXILIARIES | _QUESTIONS | _NEGATIONS | _OTHERS | {"'s", "like", "as"}
)
# What is never taken for somebody's name, however it is written: what must not be learned by another name, where a
# text goes that the public or many people read, and the words that injected instructions are made of.
_NO_NAMES = _words(
    """
    password passwords passwd passphrase passport pin token tokens secret secrets key keys credential credentials login
    logins account accounts bank card cards iban salary salaries payroll medical health tax private confidential
    internal admin root everyone everybody anyone anybody public press hr legal finance management team staff board
    twitter facebook linkedin instagram reddit youtube tiktok slack discord telegram whatsapp github gitlab dropbox
    trash bin spam inbox archive drive desktop calendar contacts address addresses files file folder mails emails
    messages report reports contract contracts invoice invoices ignore previous instructions instruction system prompt
    rules now instead everything anything production prod staging development test live main master draft done
    """
)
_KNOWN = _FUNCTION | _NO_NAMES | frozenset(_ACTS)

# At the start of a request these only make it polite, and only before a verb from the table.
_FRAMES = _phrases(
    "can you,could you,would you,will you,can you possibly,could you possibly,would you be able to,are you able to,"
    "would you mind,would it be possible to,is it possible to,i would like you to,i want you to,i need you to,"
    "i was wondering if you could,could i ask you to,i would like to ask you to,i would appreciate it if you could,"
    "it would be great if you could"
)
# "Can we meet" is the request to meet; "can we delete it" asks whether that is allowed.
_FRAMES_TO_MEET = _phrases("can we,could we,shall we")
# Before a question word, these say only that it is a question.
_TELL_ME = _phrases("tell me,let me know,do you know,i would like to know,i need to know")
_FILLERS = _words("please kindly just yet perhaps maybe pls plz")
# Whole parts of a text, between two marks of punctuation, that say nothing.
_COURTESIES = _phrases(
    "hi,hello,hey,hi there,hello there,good morning,good afternoon,good evening,good day,greetings,thanks,thank you,"
    "thanks a lot,many thanks,thank you very much,thanks in advance,thank you in advance,cheers,best regards,"
    "kind regards,regards,best,i hope you are well,hope you are well,hope you are doing well,"
    "i hope you are doing well,i hope this finds you well"
)
_GREETINGS = _words("hi hello hey")
_CONTRACTIONS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        **{f"{word}'s": (word, "is") for word in _QUESTIONS | _words("it that there here he she")},
        **{f"{word}'d": (word, "would") for word in _PRONOUNS},
        **{f"{word}'ll": (word, "will") for word in _PRONOUNS},
        **{f"{word}'re": (word, "are") for word in _PRONOUNS},
        **{f"{word}'ve": (word, "have") for word in _PRONOUNS},
        "i'm": ("i", "am"),
        "let's": ("let", "us"),
        "can't": ("can", "not"),
        "cannot": ("can", "not"),
        "won't": ("will", "not"),
        "which": ("what",),
    }
)
# Words that English doesn't have, or nearly not. Beside one of them a capital letter says nothing about names: German
# writes "das Passwort" and "die Rechnung".
_FOREIGN = _words(
    """
    der die das den dem des ein eine einen einem und ist sind bitte ich mir mich du kannst können könnten nicht auf für
    mit von zum zur im le la les un une est et tu je moi mon ma votre vous pour avec dans sur peux pouvez el los las una
    es y yo mi su por para con puedes puede il lo gli che di non per puoi o os as um uma não você pode het een van voor
    kun je kan niet och är att
    """
)
_ENGLISH = _ARTICLES | _PRONOUNS | _AUXILIARIES | _QUESTIONS | _words("please with from to into for of at and about")

# A verb of the table may be a noun behind other words: "read the book", "close the order".
_BEFORE_VERB = _words("and then also to not or but i you we they")
# What begins another clause, with a time of its own.
_JOINING = _words("and then also but or")
# A sentence that begins so means the same with a question mark and without.
_ASKING = _QUESTIONS | _AUXILIARIES | frozenset(_ACTS)
_NUMBERS = _words("two three four five six seven eight nine ten eleven twelve fifteen twenty thirty forty fifty")
# Which letter stands for a word where times are looked for; see `_TIME`.
_TIME_WORDS: Mapping[str, str] = MappingProxyType(
    {
        word: code
        for code, words in {
            "d": "monday tuesday wednesday thursday friday saturday sunday montag dienstag mittwoch donnerstag freitag"
            " samstag sonntag lundi mardi mercredi jeudi vendredi samedi dimanche lunes martes miércoles jueves viernes"
            " sábado domingo lunedì martedì mercoledì giovedì venerdì sabato domenica",
            "m": "january february march april may june july august september october november december jan feb mar apr"
            " jun jul aug sep sept oct nov dec januar februar märz mai juni juli oktober dezember janvier février mars"
            " avril juin juillet août septembre octobre novembre décembre enero febrero marzo abril mayo junio julio"
            " agosto septiembre octubre noviembre diciembre",
            "r": "today tomorrow tonight yesterday noon midday midnight heute morgen demain aujourd'hui mañana hoy"
            " domani oggi",
            "p": "morning afternoon evening night",
            "u": "minute minutes min mins hour hours hr hrs day days week weeks month months year years quarter"
            " weekend",
            "x": "next last this coming following",
            "a": "at um las à alle",
            "i": "in",
            "P": "on by before until till since from after around to between for am bis vom ab von le du el il",
            "t": "the",
            "o": "of de",
            "g": "ago",
            "&": "and or und et y",
        }.items()
        for word in words.split()
    }
)
# A point in time, over one letter for each token: a time of day (C), a date (D), "tomorrow morning", "next Friday",
# "last 3 days", "in the morning", "2 hours ago", "3rd of May", "May 3 2026", "in May", "at 3", "on the 3rd".
_POINT = (
    r"(?:C|D|rp?|dp?|x[du]p?|xp|xNu|iNu|it?p|Nug|t?[NO]o?mY?|m,?t?[NO](?:,?Y)?|(?<=[Piox])mY?|(?<=[Pi])Y"
    r"|aN(?![WuoS$])|(?<=P)tO(?![Wu]))"
)
_TIME = re.compile(rf"[Pia]?(?:t?uo)?t?{_POINT}(?:[,&-]?[Pia]?t?{_POINT})*")
# "Forward my mail until Friday", or from Friday on, isn't what "on Friday" is.
_OPEN = _words("from since until till after between bis ab von depuis desde")
_SPAN = re.compile(r"N-?u")

_MONTHS_AFTER_ORDINAL = "|".join(word for word, code in _TIME_WORDS.items() if code == "m")
# The kinds of token. Every repetition is bounded, so that the work is in proportion to the text.
_TOKEN = re.compile(
    rf"""
      (?P<url>(?:https?://|\bwww\.)[^\s<>"]{{0,200}}[^\s<>".,!?;:)])
    | (?P<mail>[\w.+-]{{1,64}}@[\w-]{{1,63}}(?:\.[\w-]{{1,63}}){{1,4}})
    | (?P<quote>["“„«][^"“”„«»\n]{{1,120}}["”“»])
    | (?P<file>(?<![\w/.~])\w[\w-]{{0,60}}(?:\.[\w-]{{1,20}}){{0,3}}
        \.(?:pdf|docx?|xlsx?|csv|txt|md|pptx?|png|jpe?g|odt|ods|ics)\b)
    | (?P<date>\b\d{{4}}-\d\d-\d\d(?:T\d\d:\d\d(?::\d\d)?Z?)?\b|\b\d{{1,2}}(?P<sep>[./])\d{{1,2}}(?P=sep)\d{{2,4}}\b
        |\b\d{{1,2}}\.\d{{1,2}}\.(?!\d))
    | (?P<money>[€$£¥]\ ?\d{{1,12}}(?:[.,']\d{{1,12}}){{0,4}}
        |\b\d{{1,12}}(?:[.,']\d{{1,12}}){{0,4}}\ ?(?:[€$£¥]|(?:eur|euros?|usd|dollars?|gbp|chf)\b))
    | (?P<clock>\b\d{{1,2}}:\d\d(?::\d\d)?(?:\ ?(?:[ap]m\b|[ap]\.m\.))?|\b\d{{1,2}}(?:\.\d\d)?\ ?(?:[ap]m\b|[ap]\.m\.)
        |\b\d{{1,2}}\ ?h(?:\d\d)?\b|\b\d{{1,2}}(?:[.:]\d\d)?\ ?(?:uhr|o'clock)\b)
    | (?P<id>\#\d{{1,12}}\b|\b[0-9a-f]{{8}}(?:-[0-9a-f]{{4}}){{3}}-[0-9a-f]{{12}}\b
        |\b(?-i:[A-Z]{{1,8}}(?:-\d{{1,12}}){{1,3}}|[A-Z]{{1,4}}\d{{1,12}})\b
        |\b(?=\d{{0,40}}[a-f])(?=[a-f]{{0,40}}\d[a-f]{{0,40}}\d)[0-9a-f]{{7,40}}\b)
    | (?P<path>(?<![\w/.~-])\w[\w-]{{0,38}}/\w[\w-]{{0,60}}(?:\.[\w-]{{1,20}}){{0,3}}(?![\w/]))
    | (?P<ordinal>\b\d{{1,2}}(?:st|nd|rd|th)\b|\b\d{{1,2}}\.(?=\ (?:{_MONTHS_AFTER_ORDINAL})\b))
    | (?P<number>\d{{1,30}}(?:[.,']\d{{1,30}}){{0,8}})
    | (?P<title>\b(?:dr|mr|mrs|ms|prof)\b\.?)
    | (?P<word>[^\W\d_]{{1,100}}(?:['-][^\W\d_]{{1,100}}){{0,5}})
    | (?P<end>[.!?;\n¿¡…]{{1,20}})
    | (?P<comma>[,:()"“”„«»]|[\u2013\u2014-](?=\s))
    | (?P<other>\S)
    """,
    re.VERBOSE | re.IGNORECASE,
)
# Tokens that are a detail by themselves, and the letter that stands for a token where times are looked for.
_SLOTS = frozenset({"url", "mail", "file", "money", "id", "number", "ordinal", "time", "span", "name"})
_TIME_KINDS: Mapping[str, str] = MappingProxyType(
    {"clock": "C", "date": "D", "number": "N", "ordinal": "O", "comma": ",", "end": ".", "money": "$"}
)
_NAME = re.compile(r"[A-ZÀ-ÖØ-Þ][a-zß-öø-ÿ]+(?:[A-Z'-][A-Za-zß-öø-ÿ]+)?")
# What a name stands behind. Not behind "about" and "of": what a text is about is no detail of it. "Send Anna my
# address" has its own rule, for in "Send Payroll to Bob" it isn't one, and "is" too: "Is Vera free", "It is Approved".
_BEFORE_NAME = _words(
    "with from to in at for by near into remind ask tell invite call meet introduce contact thank notify"
)
_GIVING = _words("send give show forward")
# Behind these verbs stands a value: "change the status to Approved", "to Rejected".
_VALUE_ACTS = _words("set change turn switch update mark move put reset rename convert upgrade downgrade")
_BEFORE_VALUE = _words("from to in at into")
_MAX_NAME = 2
_FROM_CAPITALS = 4
# A quotation is a detail behind these only: elsewhere, as in `run "…"`, it may be the request itself.
_BEFORE_QUOTE = _words("translate titled called named subject phrase sentence word proofread pronounce")
_MAX_QUOTE = 12
# Behind these it matters what lies at the address.
_RUNS = _words("run execute install deploy import open")
# "review the pull request in acme/api"; elsewhere a slash is part of the request ("read/write").
_BEFORE_PATH = _words("in of repo repository project")


class _Token(NamedTuple):
    kind: str
    text: str

    @property
    def low(self) -> str:
        return self.text.lower()


@dataclass(frozen=True, slots=True)
class _Skeleton:
    """What a request comes down to: its words and slots in order, its verbs, and how often it says "not"."""

    tokens: tuple[str, ...]
    acts: frozenset[str]
    negations: int


def alike(first: str, second: str) -> bool:
    """Returns whether both texts ask for the same kind of thing, with other details at most.

    A text without a word of its own (empty, only emoji, "yes please") or longer than MAX_CHARS is like no other.
    """
    one, two = _skeleton(first), _skeleton(second)
    return one is not None and two is not None and one.tokens == two.tokens


def similarity(first: str, second: str) -> float:
    """Returns how near two texts are, from 0 to 1. It is 1 for texts that are alike, and only for them.

    What is below 1 is good for putting in order, not for deciding.
    """
    one, two = _skeleton(first), _skeleton(second)
    if one is None or two is None:
        return 0.0
    if one.tokens == two.tokens:
        return 1.0
    most = NOT_ALIKE if (one.acts, one.negations) == (two.acts, two.negations) else OTHER_ACT
    return min(Indel.normalized_similarity(one.tokens, two.tokens), most)


def groups(texts: Sequence[str]) -> list[list[int]]:
    """Returns the places of all texts, those of texts that are alike in one list, in the order of the first of each.

    In a list each text is alike to each other one: having the same skeleton doesn't chain. A text that is like no other
    is a list of its own.
    """
    found: dict[tuple[str, ...] | int, list[int]] = {}
    for place, text in enumerate(texts):
        skeleton = _skeleton(text)
        found.setdefault(place if skeleton is None else skeleton.tokens, []).append(place)
    return list(found.values())


def details(text: str) -> list[tuple[str, str]]:
    """Returns the kind and the words, in small letters, of what a text is made of: `money`, `number`, `name`, `word`.
    Points in time have no words. Nothing for a text that is too long to be compared."""
    if len(text) > MAX_CHARS:
        return []
    tokens = list(_scan(unicodedata.normalize("NFKC", text).replace("\u2019", "'")))
    return [(token.kind, token.low) for token in _with_names(_with_times(tokens), _english(tokens))]


def _skeleton(text: str) -> _Skeleton | None:
    """Returns what `text` comes down to; None where there is nothing to compare, or too much."""
    if len(text) > MAX_CHARS:
        return None
    normal = unicodedata.normalize("NFKC", text).replace("\u2019", "'")
    if len(normal) > MAX_CHARS:  # one character may become eighteen
        return None
    tokens = list(_scan(normal))
    tokens = _with_names(_with_times(tokens), _english(tokens))
    words: list[str] = []
    acts: set[str] = set()
    for sentence, asks in _sentences(tokens):
        said = _sentence(sentence, asks, acts)
        if said:
            words += [".", *said] if words else said
    if not any(word[0].isalpha() and word not in _FUNCTION for word in words):
        return None
    return _Skeleton(tuple(words), frozenset(acts), sum(word in _NEGATIONS for word in words))


def _scan(text: str) -> Iterator[_Token]:
    """Yields the tokens of `text`: every character that isn't white space is in one of them."""
    for match in _TOKEN.finditer(text):
        yield _Token(match.lastgroup or "other", match.group())


def _english(tokens: list[_Token]) -> bool:
    words = {token.low for token in tokens if token.kind == "word"}
    return not words & _FOREIGN and bool(words & _ENGLISH)


def _with_times(tokens: list[_Token]) -> list[_Token]:
    """Returns the tokens with points in time, their prepositions included, and lengths of time as one token each."""
    codes = "".join(map(_time_code, tokens))
    found: dict[int, tuple[int, str]] = {}
    for match in _SPAN.finditer(codes):
        found[match.start()] = (match.end(), "span")
    taken = [False] * len(tokens)
    times: dict[int, tuple[int, str]] = {}
    for match in _TIME.finditer(codes):
        times[match.start()] = (match.end(), "time")
        taken[match.start() : match.end()] = [True] * (match.end() - match.start())
    found = {start: span for start, span in found.items() if not taken[start]} | times
    result: list[_Token] = []
    place = 0
    while place < len(tokens):
        if place in found:
            start, (place, kind) = place, found[place]
            result.append(_Token(kind, "") if kind == "span" else _time(tokens[start:place]))
        else:
            result.append(tokens[place])
            place += 1
    return result


def _time(tokens: list[_Token]) -> _Token:
    """Returns the one token that stands for a point in time: a `range` where it goes on from or until then."""
    if tokens[-1].low.endswith("'s"):
        return _Token("owner", "<time>")
    return _Token("range" if tokens[0].low in _OPEN else "time", "")


def _time_code(token: _Token) -> str:
    if token.kind == "number" and re.fullmatch(r"(?:19|20)\d\d", token.text):
        return "Y"
    if token.kind != "word":
        return "-" if token.text in {"-", "\u2013"} else _TIME_KINDS.get(token.kind, "S")
    word = token.low
    if word in _NUMBERS:
        return "N"
    code = _TIME_WORDS.get(word.removesuffix("'s"), "W")
    # Without its capital, "may" and "march" are verbs; the other languages write months small.
    return "W" if code == "m" and token.text in {"may", "march", "mar", "mars", "jan", "dec"} else code


def _with_names(tokens: list[_Token], english: bool) -> list[_Token]:
    """Returns the tokens with names, and the quotations and repositories that are a detail, as one token each."""
    capitals = sum(token.kind == "word" and _NAME.fullmatch(token.text) is not None for token in tokens[1:])
    words = sum(token.kind == "word" for token in tokens[1:])
    names = english and not (capitals >= _FROM_CAPITALS and capitals * 2 > words)  # Not In A Title
    result: list[_Token] = []
    run = 0
    for place, token in enumerate(tokens):
        before = result[-1] if result else _Token("end", "")
        after = tokens[place + 1] if place + 1 < len(tokens) else _Token("end", "")
        name = names and token.kind == "word" and _is_name(token, before, after, result, run)
        if name:
            run += 1
            if run > 1 or before.kind == "title":
                result.pop()
            result.append(_Token("name", f"{before.text} {token.text}" if run > 1 else token.text))
            continue
        run = 0
        result.append(_detail(token, before))
    return result


def _is_name(token: _Token, before: _Token, after: _Token, earlier: list[_Token], run: int) -> bool:
    """Returns whether a word is a name where it stands, or goes on one of `run` words so far."""
    owns = token.text.endswith("'s")
    bare = token.text.removesuffix("'s")
    if _NAME.fullmatch(bare) is None or bare.lower() in _KNOWN:
        return False
    if before.kind == "name":
        return run < _MAX_NAME and not before.low.endswith("'s")
    if before.kind == "title":
        return True
    if before.kind == "end":
        return False
    if before.low in _BEFORE_VALUE and any(word.low in _VALUE_ACTS for word in earlier):
        return False
    if before.low in _BEFORE_NAME or (owns and before.kind == "word" and before.low not in _ARTICLES):
        return True
    if before.low in _AUXILIARIES:
        return len(earlier) < 2 or earlier[-2].kind in {"end", "comma"} or earlier[-2].low in _QUESTIONS
    if before.low in {"and", "or"}:
        return len(earlier) > 1 and earlier[-2].kind == "name"
    return before.low in _GIVING and (after.low in _ARTICLES or after.low in _PRONOUNS)


def _detail(token: _Token, before: _Token) -> _Token:
    """Returns the token, or the slot that a quotation or the path of a repository is."""
    words = re.findall(r"[^\W\d_]+", token.low) if token.kind in {"quote", "path", "file"} else []
    # What could be a request by itself, or is a secret by its name, stays what it is.
    strong = any(word in _ACTS or word in _NO_NAMES or word in _NEGATIONS for word in words)
    if token.kind == "quote" and before.low in _BEFORE_QUOTE and not strong and len(words) <= _MAX_QUOTE:
        return _Token("name", "")
    if token.kind == "path" and before.low in _BEFORE_PATH and not strong:
        return _Token("name", "")
    if (token.kind == "file" and strong) or (token.kind == "url" and before.low in _RUNS):
        return _Token("other", token.text)
    return token


def _sentences(tokens: list[_Token]) -> Iterator[tuple[list[_Token], bool]]:
    """Yields the tokens of each sentence, and whether it ends as a question."""
    sentence: list[_Token] = []
    for token in tokens:
        if token.kind == "end":
            yield sentence, "?" in token.text
            sentence = []
        else:
            sentence.append(token)
    yield sentence, False


def _sentence(tokens: list[_Token], asks: bool, acts: set[str]) -> list[str]:
    """Returns what is left of a sentence, and adds its verbs to `acts`."""
    said: list[str] = []
    polite = False
    part: list[_Token] = []
    times: set[str] = set()
    for token in [*tokens, _Token("comma", "")]:
        if token.kind in {"time", "range"}:
            # Where in a clause the time stands says nothing; that there is one does: "delete all mails" is more.
            times.add(f"<{token.kind}>")
            continue
        joins = token.low in _JOINING
        if token.kind != "comma" and not joins:
            part.append(token)
            continue
        words, framed = _without_politeness(_plain_words(part))
        said += _canonical(words, acts)
        polite = polite or framed
        part = [token] if joins else []
        if joins or not token.text:
            said += sorted(times)
            times.clear()
    if asks and said and not polite and said[0] not in _ASKING:
        said.append("?")  # "The budget is approved?" asks what "The budget is approved." tells
    return said


def _plain_words(tokens: list[_Token]) -> list[str]:
    """Returns the words in small letters without contractions, and `<kind>` for a slot."""
    words: list[str] = []
    for place, token in enumerate(tokens):
        low = token.low
        if token.kind == "name":
            words.append("<name>")
            after = tokens[place + 1].low if place + 1 < len(tokens) else ""
            # "Luigi's" is the place when nothing follows that is Luigi's.
            if low.endswith("'s") and after and after not in _FUNCTION:
                words.append("'s")
        elif token.kind == "owner":
            words += [low, "'s"]
        elif token.kind in _SLOTS or low in _NUMBERS:
            words.append(f"<{'number' if low in _NUMBERS else token.kind}>" if low.strip("0.,") or not low else "0")
        elif low in _CONTRACTIONS:
            words += _CONTRACTIONS[low]
        elif token.kind == "word" and low.endswith("n't") and len(low) > 3:
            words += [low.removesuffix("n't"), "not"]
        elif token.kind == "word" and low.endswith("'s"):
            words += [low.removesuffix("'s"), "'s"]
        elif low not in _FILLERS:
            words.append(low)
    return words


def _without_politeness(words: list[str]) -> tuple[list[str], bool]:
    """Returns the words of a part of a sentence without what makes it polite, and whether it was put as a question."""
    if tuple(words) in _COURTESIES or (len(words) == 2 and words[0] in _GREETINGS and words[1] == "<name>"):
        return [], False
    framed = False
    for frame in _FRAMES:
        rest = words[len(frame) :]
        if tuple(words[: len(frame)]) == frame and rest and (act := _act(rest[0], frame[-1] == "mind")):
            words, framed = [act, *rest[1:]], True
            break
    if tuple(words[:2]) in _FRAMES_TO_MEET and words[2:3] == ["meet"]:
        words, framed = words[2:], True
    for opening in _TELL_ME:
        rest = words[len(opening) :]
        if tuple(words[: len(opening)]) == opening and rest:
            if rest[0] in _QUESTIONS:
                words = rest
            elif opening == ("tell", "me") and rest[0] in {"the", "your", "my", "<name>"}:
                words = ["what", "is", *rest]
            break
    return words, framed


def _act(word: str, gerund: bool) -> str:
    """Returns the verb that `word` is, of "would you mind sending" too; empty when it is none of the table."""
    if not gerund:
        return word if word in _ACTS else ""
    stem = word.removesuffix("ing") if word.endswith("ing") else ""
    return next((verb for verb in (stem, f"{stem}e", stem[:-1]) if verb in _ACTS), "")


def _canonical(words: list[str], acts: set[str]) -> list[str]:
    """Returns the words without articles, synonyms of a verb as one, and adds the verbs to `acts`."""
    result: list[str] = []
    before = "and"
    for word in words:
        if word in _ACTS and before in _BEFORE_VERB:
            word = _ACTS[word]
            acts.add(word)
        elif before == "<number>" and len(word) > 3 and word.endswith("s") and not word.endswith("ss"):
            word = word[:-1]  # "1 night", "3 nights"; elsewhere the plural is more: "delete the reports"
        if word not in _ARTICLES:
            result.append(word)
        before = word
    return result
