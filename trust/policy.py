"""Policy: one pure function from level, grants, skill and hops to a mode and its reason.

One test holds the whole table:

    request                                  Observe, Learn     Propose                     Act
    notify-user                              built in           built in                    built in
    a skill that is granted                  review             review, offers a grant      done, reported
    a named skill that is not granted        rejected           rejected                    rejected
    a plain request (`chat`), not granted    triage             triage, offers a draft      triage
    a plain request, granted                 triage             triage                      done, reported
    a granted skill, held                    review             review, offers a grant      review
    a plain request, held                    triage             triage, offers a draft      triage

Triage ends in a review, too. A grant can carry a level of its own. For its skill this level counts in place of the
caller's level. A request is held if the owner has it before them already, or if a learned skill is asked for and its
examples do not cover the request. A draft is offered only where plain requests are not granted.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from trust.models import CHAT, NOTIFY_USER, Level, Skill


class Mode(StrEnum):
    """The handling of a request."""

    # A built-in skill answers without a model.
    BUILT_IN = "built_in"
    # The assistant does the request with the skill's tools, or the skill's handler answers it.
    FULL_TURN = "full_turn"
    # The assistant reads the request with tools that only read, and puts it before the owner.
    TRIAGE = "triage"
    # The request is put before the owner as it came.
    REVIEW = "review"
    REJECT = "reject"


@dataclass(frozen=True, slots=True)
class Handling:
    """The mode, and its reason in words that the caller's model can use."""

    mode: Mode
    reason: str = ""
    # The owner is asked whether to handle such requests from now on.
    offers_grant: bool = False
    # The owner is shown the draft of a skill that covers the request, and asked the same.
    offers_draft: bool = False
    # The owner gets a report afterwards.
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
    """Returns the mode and reason for a request for `skill` by a caller at `level`.

    `grants` maps each granted skill to its own level, or to None if the caller's level counts. `kind` is None for an
    unknown skill. `approved`: the owner has seen exactly this request and approved it, so it is done. `held`: unless
    it is approved, the request goes to the owner even if the skill is granted. `has_draft`: a draft of a skill covers
    the request. A request with more than `max_hops` hops is rejected.
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
    """Returns the reason for rejecting a request with too many hops, in words for the caller's model."""
    return f"Too many hops: the request was passed on {hops} times, and {most} are allowed."


def _missing(skill: str, kind: Skill.Kind | None) -> str:
    what = "There is no skill" if kind is None else "The owner has not granted this agent the skill"
    change = "" if kind is None else " It takes the owner's grant."
    return (
        f"{what} {skill!r}.{change} A plain request, without a skill in its metadata, would be shown to the owner, who "
        "can have it done."
    )
