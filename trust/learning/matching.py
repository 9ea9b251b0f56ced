"""Whether a plain request is one that a learned skill, or a draft, was made for.

By rule alone, never by a model: a caller can't talk it into anything.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from trust.learning import words
from trust.learning.likeness import Skeleton, Slot, skeleton, swapped
from trust.models import Skill, SkillDraft

# Where the examples have so many different points in time, another one is a detail; else it is a stranger.
_VARIED = 3
# Days, and what else may make a length of time of one.
_DAYS = frozenset(["day", "bound", "month", "ordinal"])
# What a time of day is behind: after "by" it may be a length of time.
_BEFORE_CLOCK = frozenset(["at", "until", "<day >"])
# What goes on from a date: "on 3 May - 10".
_ON = frozenset(["to", "-", "\u2013", "and", "or"])
# What the owner is told that a point in time is behind; any other word is the caller's.
_TOLD = words.POINTS | words.BEFORE_RELATIVE


class Freedom(NamedTuple):
    """Which points in time may stand in one place of a request, of those in one form: a time of day from `least` to
    `most`, a weekday only, or any day."""

    kind: str
    form: str
    least: str
    most: str
    weekday: bool

    def holds(self, slot: Slot) -> bool:
        """Tells whether `slot` is one of them."""
        if (slot.kind, slot.form) != (self.kind, self.form):
            return False
        if self.kind == "clock":
            return self.least <= slot.value <= self.most
        return not self.weekday or _is_weekday(slot)

    def __str__(self) -> str:
        """Returns which ones in words."""
        if self.kind == "clock":
            return f"a time between {self.least} and {self.most}"
        if self.form == "near":
            return "any weekday" if self.weekday else "any weekday, “tomorrow” and the like"
        _, _, year = self.form.partition(" ")
        return f"any day of {year}" if year else "any day of a year"


@dataclass(frozen=True, slots=True)
class Bounds:
    """What the examples of a skill cover, for the owner.

    `free`: the places where another point in time may stand, in words, none of them a caller's own ("on any weekday",
    "at a time between 09:00 and 11:30"). `fixed`: of each other place where the examples differ, the values that they
    have there; a request has those of one example, together.
    """

    free: tuple[str, ...]
    fixed: tuple[tuple[str, ...], ...]


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
    """Tells whether a request is, word for word and value for value, one of the examples, but for points in time where
    the examples have three different ones: see `_freedom`."""
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


def bounds_of(examples: Sequence[str]) -> Bounds:
    """Returns what `fits` with these examples, other than they themselves."""
    kinds: dict[tuple[str, ...], list[Skeleton]] = {}
    for one in map(skeleton, examples):
        if one is not None:
            kinds.setdefault(one.words, []).append(one)
    free: list[str] = []
    fixed: list[tuple[str, ...]] = []
    for near in kinds.values():
        for place in range(len(near[0].slots)):
            forms = dict.fromkeys(one.slots[place].form for one in near)
            found = [freedom for form in forms if (freedom := _freedom(place, form, near))]
            before, _ = _around(place, near[0])
            free += [f"{before} {freedom}" if before in _TOLD else str(freedom) for freedom in found]
            values = dict.fromkeys(_shown(one.slots[place]) for one in near if not _is_free(place, one, near))
            if len(values) > 1 or (values and found):
                fixed.append(tuple(values))
    return Bounds(tuple(dict.fromkeys(free)), tuple(dict.fromkeys(fixed)))


def _shown(slot: Slot) -> str:
    return f"{slot.value} {slot.form}" if slot.kind == "money" else slot.value


def _is_free(place: int, asked: Skeleton, near: Sequence[Skeleton]) -> bool:
    """Tells whether a request may have in some place what none of the examples has there."""
    freedom = _freedom(place, asked.slots[place].form, near)
    return freedom is not None and freedom.holds(asked.slots[place])


def _freedom(place: int, form: str, near: Sequence[Skeleton]) -> Freedom | None:
    """Returns which points in time of a form (a weekday isn't a date, and a date with a year is in that year) may be in
    some place, of requests with the same words: none if there is another point of that kind, for two make a length of
    time, or if there aren't three different ones in the examples.

    Whatever is done may be done on another weekday. Only what asks, notes or tells something may have another date or
    "tomorrow", on which something is, neither begins nor ends. A time of day is between those of the examples.
    """
    if not near:
        return None
    one = near[0]
    kind = one.slots[place].kind
    beside = {"clock": frozenset(["clock"])}.get(kind, _DAYS)
    if kind not in {"clock", "day", "bound"} or sum(other.kind in beside for other in one.slots) > 1:
        return None
    if kind == "clock" and _around(place, one)[0] not in _BEFORE_CLOCK:
        return None
    ends = _around(place, one)[1] in _ON or any(word.lstrip("+").startswith(words.ENDS) for word in one.words)
    weekday = kind == "bound" or (kind == "day" and (ends or not one.looks))
    there = [other.slots[place] for other in near if other.slots[place].form == form]
    values = {slot.value for slot in there if not weekday or _is_weekday(slot)}
    return Freedom(kind, form, min(values), max(values), weekday) if len(values) >= _VARIED else None


def _is_weekday(slot: Slot) -> bool:
    return words.TIME_WORDS.get(slot.value) == "d"


def _around(place: int, one: Skeleton) -> tuple[str, str]:
    """Returns the words, or the marks of slots, before and behind the slot in some place."""
    slots = [number for number, word in enumerate(one.words) if word.startswith("<") and len(word) > 1]
    around = ("", *one.words, "")
    return around[slots[place]], around[slots[place] + 2].lstrip("+")
