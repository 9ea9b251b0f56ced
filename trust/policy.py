"""What a caller's request leads to: one pure function, and the whole table in one test.

    request                                  Observe, Learn     Propose                     Act
    notify-user                              built in           built in                    built in
    a skill that is granted                  review             review, offers a grant      done, reported
    a named skill that is not                rejected           rejected                    rejected
    a plain request (`chat`), not granted    triage             triage, offers a draft      triage
    a plain request, granted                 triage             triage                      done, reported
    either of them, held                     review, triage     the same                    review, triage

Triage ends in a review too. A grant can carry a level of its own, which counts for its skill in place of the caller's.
Held is a request that the owner has before them already, and what a learned skill's examples do not bind.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from trust.models import CHAT, NOTIFY_USER, Level, Skill


class Mode(StrEnum):
    """What happens with a request."""

    # A built-in skill answers: no model.
    BUILT_IN = "built_in"
    # The assistant does it, with the skill's tools; or the skill's handler.
    FULL_TURN = "full_turn"
    # The assistant reads it, with tools that only read, and puts it before the owner.
    TRIAGE = "triage"
    # It is put before the owner as it is.
    REVIEW = "review"
    REJECT = "reject"


@dataclass(frozen=True, slots=True)
class Handling:
    """The mode, and the reason in words that the caller's model can use."""

    mode: Mode
    reason: str = ""
    # The owner is asked whether to handle such requests from now on.
    offers_grant: bool = False
    # The owner is shown the draft of a skill that would cover it, and asked the same.
    offers_draft: bool = False
    # The owner is told afterwards what was done.
    reported: bool = False


def decide(
    *,
    level: Level,
    grants: Mapping[str, Level | None],
    skill: str,
    kind: Skill.Kind | None,
    hops: int = 0,
    max_hops: int = 0,
    approved: bool = False,
    held: bool = False,
    has_draft: bool = False,
) -> Handling:
    """Returns what a request for `skill` by a caller at `level` leads to.

    `grants` holds the granted skills, each with the level that counts for it where it is not the caller's. `kind` is
    None for a skill that there is not. `approved`: the owner has seen exactly this request and approved it, so that
    what would be put before them is done. `held`: without that, it is put before them whatever is granted.
    `has_draft`: there is a draft of a skill that would cover it.
    """
    if hops > max_hops:
        return Handling(Mode.REJECT, too_many_hops(hops, max_hops))
    if skill == NOTIFY_USER:
        return Handling(Mode.BUILT_IN)
    granted = skill in grants
    counts = grants.get(skill) or level
    done = Mode.BUILT_IN if kind is Skill.Kind.BUILT_IN else Mode.FULL_TURN
    if not granted and skill != CHAT:
        return Handling(Mode.REJECT, _missing(skill, kind))
    if approved or (granted and counts is Level.ACT and not held):
        return Handling(done, reported=True)
    if skill == CHAT:
        return Handling(Mode.TRIAGE, offers_draft=has_draft and not granted and counts is Level.PROPOSE)
    return Handling(Mode.REVIEW, offers_grant=counts is Level.PROPOSE)


def too_many_hops(hops: int, most: int) -> str:
    """Returns why a request that was passed on so many times is not done, for the caller's model."""
    return f"Too many hops: the request was passed on {hops} times, and {most} are allowed."


def _missing(skill: str, kind: Skill.Kind | None) -> str:
    what = "There is no skill" if kind is None else "The owner has not granted this agent the skill"
    change = "" if kind is None else " It takes the owner's grant."
    return (
        f"{what} {skill!r}.{change} A plain request, without a skill in its metadata, would be shown to the owner, who "
        "can have it done."
    )
