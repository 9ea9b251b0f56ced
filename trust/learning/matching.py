"""Whether a plain request is one that a learned skill, or a draft, was made for.

By the rule of likeness alone, never by a model: a caller can't talk it into anything.
"""

import re
import unicodedata
from collections.abc import Collection, Mapping, Sequence

from trust.learning.likeness import alike, details
from trust.models import Skill, SkillDraft

# What goes out of the house, or costs: likeness takes it for a detail, the owner would not. Addresses are those of mail
# and of the web (without a scheme, too), telephone numbers from "+" on, and bank accounts. Names of files are none.
_ADDRESS = re.compile(
    r"[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63})+|(?:\b[a-z]{2,10}://|\bwww\.)[^\s<>\"]+"
    r"|(?<![\w.-])(?:[\w-]{1,63}\.)+(?!(?:pdf|docx?|xlsx?|csv|txt|md|pptx?|png|jpe?g|odt|ods|ics)\b)[^\W\d_]{2,24}\b"
    r"|\+\d[\d ()/.-]{4,20}\d|\b[a-z]{2}\d{2}(?: ?[a-z\d]){10,30}\b",
    re.IGNORECASE,
)
_CURRENCIES: Mapping[str, str] = {
    word: line.split()[0]
    for line in (
        *("€ eur euro euros", "$ usd dollar dollars buck bucks", "£ gbp pound pounds quid", "¥ jpy yen cny yuan"),
        *("chf franken francs", "₹ inr rupee rupees", "₿ btc bitcoin bitcoins", "cent cents"),
        *("sek", "nok", "dkk", "pln", "czk", "cad", "aud", "nzd", "brl", "rub", "eth", "usdt"),
    )
    for word in line.split()
}
# Between a number and its currency; those that two texts have are the same, where they are alike.
_TIMES = frozenset(["k", "m", "hundred", "thousand", "million", "billion"])
# A text with one of these is about money, whether it names a currency or not.
_PAYS = frozenset(
    [
        *("pay", "pays", "paying", "payment", "payments", "transfer", "wire", "refund", "charge", "buy", "purchase"),
        *("spend", "donate", "tip", "bid", "withdraw", "deposit", "invest", "lend", "reimburse", "remit"),
    ]
)
# A text with one of these may cost by the number.
_ORDERS = frozenset(["order", "book", "reserve", "rent", "hire", "subscribe", "get", "bring", "arrange"])
# A text with one of these gives something away, or lets somebody in: whom and what it names counts.
_GIVES = frozenset(
    [
        *(
            "send",
            "share",
            "forward",
            "give",
            "tell",
            "email",
            "mail",
            "message",
            "publish",
            "post",
            "reply",
            "respond",
        ),
        *(
            "grant",
            "add",
            "invite",
            "introduce",
            "upload",
            "export",
            "copy",
            "submit",
            "notify",
            "call",
            "allow",
            "show",
        ),
        *("delete", "erase", "remove", "cancel", "sign", "accept"),
    ]
)
# Where the examples differ in so many names, files or quotations, another one is a detail; else it is a stranger.
_VARIED = 3
_DIGITS = re.compile(r"\d[\d.,']*")
# The number words that likeness takes for a detail.
_NUMBERS: Mapping[str, float] = {
    **{"two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10},
    **{"eleven": 11, "twelve": 12, "fifteen": 15, "twenty": 20, "thirty": 30, "forty": 40, "fifty": 50},
}


def learned_skill(text: str, *, workspace_id: int, granted: Collection[str]) -> Skill | None:
    """Returns the learned skill among those `granted` that a plain request asks for, None if there is none or more than
    one. One statement."""
    rows = Skill.objects.filter(workspace_id=workspace_id, slug__in=granted, by_example=True, enabled=True)
    found = [skill for skill in rows if fits(text, skill.examples)]
    return found[0] if len(found) == 1 else None


def open_draft(text: str, *, caller_id: int) -> SkillDraft | None:
    """Returns the open draft of a caller that would cover a request, the latest if there are several."""
    rows = SkillDraft.objects.filter(caller_id=caller_id, state=SkillDraft.State.OPEN).order_by("-id")
    return next((draft for draft in rows if fits(text, draft.examples)), None)


def fits(text: str, examples: Sequence[str]) -> bool:
    """Tells whether a request is like some of the examples, and has no address that these don't have and no amount of
    money above theirs, in any currency. It names nobody and no file that they don't name, unless they name many and it
    gives nothing away. Where it pays, it has no number that they don't have, and where it orders, none above theirs."""
    near = [example for example in examples if alike(text, example)]
    if not near or not _addresses(text) <= {address for example in near for address in _addresses(example)}:
        return False
    named = {name for example in near for name in _named(example)}
    gives = any(low in _GIVES for _, low in details(text))
    if not _named(text) <= named and (gives or len(named) < _VARIED):
        return False
    if _ordered(text) > max(_ordered(example) for example in near):
        return False
    most: dict[str, float] = {}
    known: set[str] = set()
    for example in near:
        amounts, particulars = _money(example)
        known |= particulars
        for currency, amount in amounts:
            most[currency] = max(amount, most.get(currency, amount))
    amounts, particulars = _money(text)
    return particulars <= known and all(amount <= most.get(currency, -1) for currency, amount in amounts)


def limits(examples: Sequence[str]) -> tuple[list[str], list[str]]:
    """Returns what a request that is like one of the examples is bound to, for the owner to see: the addresses in them,
    and the amounts of money in order."""
    addresses = {address for example in examples for address in _addresses(example)}
    amounts = {amount for example in examples for amount in _money(example)[0]}
    return sorted(addresses), [f"{amount:,.10g} {currency}".strip() for currency, amount in sorted(amounts)]


def _named(text: str) -> set[str]:
    """Returns whom and what a text names: people and things with names, files, quotations."""
    return {low for kind, low in details(text) if kind in ("name", "file", "quote", "other") and low.strip()}


def _ordered(text: str) -> float:
    """Returns the largest number in a text that orders something, 0 in any other."""
    tokens = details(text)
    if not any(low in _ORDERS for _, low in tokens):
        return 0
    return max((_value(low) for kind, low in tokens if kind == "number" or low in _NUMBERS), default=0)


def _addresses(text: str) -> set[str]:
    return {found.casefold().rstrip(".,;:!?)") for found in _ADDRESS.findall(unicodedata.normalize("NFKC", text))}


def _money(text: str) -> tuple[list[tuple[str, float]], set[str]]:
    """Returns the amounts of money in a text, each with its currency, and the names and other numbers of one that pays.
    Where such a text names no currency, its numbers are amounts."""
    tokens = details(text)
    pays = any(low in _PAYS for _, low in tokens)
    amounts: list[tuple[str, float]] = []
    bare: list[str] = []
    names: set[str] = set()
    for place, (kind, low) in enumerate(tokens):
        if kind == "money":
            amounts.append((_currency([_DIGITS.sub("", low).strip()]), _value(low)))
        elif kind == "number" or (kind == "word" and low in _NUMBERS):
            after = [word for _, word in tokens[place + 1 : place + 3]]
            beside = [low for _, low in tokens[max(place - 1, 0) : place]] + after[:1]
            split = place + 1 < len(tokens) and tokens[place + 1][0] in {"money", "number"}  # "9 000 €"
            if split or (currency := _currency([*beside, *after[1:]] if after and after[0] in _TIMES else beside)):
                amounts.append(("" if split else currency, _value(low)))
            else:
                bare.append(low)
        elif kind == "name":
            names.add(low)
    if not pays:
        return amounts, set()
    return (amounts, names | set(bare)) if amounts else ([("", _value(low)) for low in bare], names)


def _currency(words: Sequence[str]) -> str:
    return next((_CURRENCIES[word] for word in words if word in _CURRENCIES), "")


def _value(text: str) -> float:
    """Returns the number in a text, however its thousands and decimals are told apart: of "5.000", the larger."""
    if text in _NUMBERS:
        return _NUMBERS[text]
    found = _DIGITS.search(text)
    digits = (found.group() if found else "").replace("'", "").rstrip(".,")
    marks = [mark for mark in digits if mark in ".,"]
    whole, mark, rest = digits.rpartition(marks[-1]) if marks else (digits, "", "")
    thousands = len(set(marks)) == 1 and (len(marks) > 1 or (len(rest) == 3 and not whole.startswith("0")))
    if mark and not thousands:
        return float(f"{re.sub('[.,]', '', whole)}.{rest}")
    return float(re.sub("[.,]", "", digits) or "inf")
