"""Matching of plain requests: finds the learned skill or the draft whose examples cover a request.

A rule alone decides, never a model, so that a caller can't talk it into anything.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from trust.learning import words
from trust.learning.likeness import Skeleton, Slot, skeleton, swapped
from trust.models import Skill, SkillDraft

# A time slot may vary only if the examples show at least three values.
_VARIED = 3
# Days, and other slots that make a length of time together with a day.
_DAYS = frozenset(["day", "bound", "month", "ordinal"])
# A time of day may vary only behind one of these. Behind "by" it may be a length of time.
_BEFORE_CLOCK = frozenset(["at", "until", "<day >"])
# Words and marks that continue a date, as in "on 3 May - 10".
_ON = frozenset(["to", "-", "\u2013", "and", "or"])
# Words before a point in time that the owner is told. Any other word there is a word of the caller.
_TOLD = words.POINTS | words.BEFORE_RELATIVE


class Freedom(NamedTuple):
    """The points in time that one place of a request may have, all in one form.

    They are a time of day from `least` to `most`, only weekdays, or any day.
    """

    kind: str
    form: str
    least: str
    most: str
    weekday: bool

    def holds(self, slot: Slot) -> bool:
        """Tells whether `slot` is one of these points in time."""
        if (slot.kind, slot.form) != (self.kind, self.form):
            return False
        if self.kind == "clock":
            return self.least <= slot.value <= self.most
        return not self.weekday or _is_weekday(slot)

    def __str__(self) -> str:
        """Returns these points in time in words."""
        if self.kind == "clock":
            return f"a time between {self.least} and {self.most}"
        if self.form == "near":
            return "any weekday" if self.weekday else "any weekday, “tomorrow” and the like"
        _, _, year = self.form.partition(" ")
        return f"any day of {year}" if year else "any day of a year"


@dataclass(frozen=True, slots=True)
class Bounds:
    """The bounds of a skill's examples, to be shown to the owner.

    `free` names the places where another point in time may stand. It uses no words of a caller ("on any weekday",
    "at a time between 09:00 and 11:30"). `fixed` has the examples' values for each other place where the examples
    differ. A request must have all the values of one example.
    """

    free: tuple[str, ...]
    fixed: tuple[tuple[str, ...], ...]


def learned_skill(text: str, *, workspace_id: int, granted: Collection[str]) -> Skill | None:
    """Returns the one learned skill among `granted` that covers a plain request. Runs one SQL statement.

    Returns None if no skill or more than one skill covers the request.
    """
    rows = Skill.objects.filter(workspace_id=workspace_id, slug__in=granted, by_example=True, enabled=True)
    found = [skill for skill in rows if fits(text, skill.examples)]
    return found[0] if len(found) == 1 else None


def open_draft(text: str, *, caller_id: int) -> SkillDraft | None:
    """Returns the caller's latest open draft that would cover a request, else None."""
    rows = SkillDraft.objects.filter(caller_id=caller_id, state=SkillDraft.State.OPEN).order_by("-id")
    return next((draft for draft in rows if fits(text, draft.examples)), None)


def fits(text: str, examples: Sequence[str]) -> bool:
    """Tells whether the examples cover a request.

    The request must have the words and the values of one example. Only a point in time may differ, and only if the
    examples show at least three values in its place: see `_freedom`.
    """
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
    """Returns the bounds of the requests that `fits` accepts with these examples."""
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
    """Tells whether a request may have a value in this place that no example has there."""
    freedom = _freedom(place, asked.slots[place].form, near)
    return freedom is not None and freedom.holds(asked.slots[place])


def _freedom(place: int, form: str, near: Sequence[Skeleton]) -> Freedom | None:
    """Returns the points in time of one form that a place may have, in requests with the same words; None for no such.

    A weekday and a date are different forms, and a date with a year stays in this year. The result is None if the
    request has another point in time of this kind, since two of them make a length of time. It is None, too, if the
    examples show fewer than three values.

    Any request may have another weekday. Another date, or "tomorrow", needs a request that only asks, notes or tells
    something, and a day on which nothing begins or ends. A time of day lies between the times of the examples.
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
    """Returns the words or slot marks directly before and behind the slot in this place."""
    slots = [number for number, word in enumerate(one.words) if word.startswith("<") and len(word) > 1]
    around = ("", *one.words, "")
    return around[slots[place]], around[slots[place] + 2].lstrip("+")
