"""Whether a plain request is one that a learned skill, or a draft, was made for.

By rule alone, never by a model: a caller can't talk it into anything.
"""

import re
import unicodedata
from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType

from trust.learning.likeness import Skeleton, skeleton, swapped
from trust.learning.reading import amount
from trust.models import Skill, SkillDraft

# Of mail and of the web (without a scheme, too), telephone numbers from "+" on, and bank accounts. Names of files are
# none.
_ADDRESS = re.compile(
    r"[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63})+|(?:\b[a-z]{2,10}://|\bwww\.)[^\s<>\"]+"
    r"|(?<![\w.-])(?:[\w-]{1,63}\.)+(?!(?:pdf|docx?|xlsx?|csv|txt|md|pptx?|png|jpe?g|odt|ods|ics)\b)[^\W\d_]{2,24}\b"
    r"|\+\d[\d ()/.-]{4,20}\d|\b[a-z]{2}\d{2}(?: ?[a-z\d]){10,30}\b",
    re.IGNORECASE,
)
# Where the examples have so many different points in time, another one is a detail; else it is a stranger.
_VARIED = 3
# What may be another one there, and of which other kinds there is none beside it then.
_FREE: Mapping[str, frozenset[str]] = MappingProxyType(
    {"day": frozenset(), "bound": frozenset(["bound", "day"]), "clock": frozenset(["clock"])}
)


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
    """Tells whether a request is, word for word and value for value, one of the examples, but for points in time: a day
    where the examples have three different ones, a time of day between the earliest and the latest of three."""
    asked = skeleton(text)
    if asked is None:
        return False
    near = [one for one in map(skeleton, examples) if one is not None and one.words == asked.words]
    if asked in near:
        return True
    if any(swapped(asked, one) for one in near):
        return False
    bound = [place for place in range(len(asked.slots)) if not _is_free(place, asked, near)]
    return any(all(asked.slots[place] == one.slots[place] for place in bound) for one in near)


def _is_free(place: int, asked: Skeleton, near: Sequence[Skeleton]) -> bool:
    """Tells whether a request may have in some place what none of the examples has there. A point in time where they
    have three different ones in its form (a weekday isn't a date, and a date with a year is in that year): a day on
    which something is; another one, until which or from which something is, if it is a weekday; a time of day between
    theirs. The last two only if there is one of them: two make a length of time."""
    slot = asked.slots[place]
    if slot.kind not in _FREE:
        return False
    there = {one.slots[place].value for one in near if one.slots[place].form == slot.form}
    if len(there) < _VARIED or sum(other.kind in _FREE[slot.kind] for other in asked.slots) > 1:
        return False
    if slot.kind == "clock":
        return min(there) <= slot.value <= max(there)
    return slot.kind == "day" or slot.form == "near"


def limits(examples: Sequence[str]) -> tuple[list[str], list[str]]:
    """Returns what a request that is like one of the examples is bound to, for the owner to see: the addresses in them,
    and the amounts of money in order."""
    addresses = {
        found.casefold().rstrip(".,;:!?)")
        for example in examples
        for found in _ADDRESS.findall(unicodedata.normalize("NFKC", example))
    }
    amounts = {
        (slot.form, amount(slot.value))
        for one in map(skeleton, examples)
        if one
        for slot in one.slots
        if slot.kind == "money"
    }
    return sorted(addresses), [f"{value:,.10g} {currency}" for currency, value in sorted(amounts)]
