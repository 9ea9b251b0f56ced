"""Built-in skills: notify-user and query-availability, answered in the web process without a model and a worker."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.conf import settings

from a2a_server.errors import ContentTypeNotSupported, InvalidParams, NotSupported
from a2a_server.submission import Submission
from trust.models import NOTIFY_USER, QUERY_AVAILABILITY, Skill
from trust.naming import named_skill
from trust.policy import Mode, decide
from trust.selectors import Standing, caller_standing
from volcanic.a2a_json import message_text, response_artifact
from volcanic.models import Notification
from volcanic.presence import PresenceStatus, presence_of
from volcanic.text import clean_text, cut

MAX_MESSAGE = 4000
PASSED_ON = "Passed on to the owner."
_AVAILABILITY = {
    PresenceStatus.BUSY: "The owner is busy: their assistant is at work for them right now.",
    PresenceStatus.AVAILABLE: "The owner is available.",
    PresenceStatus.AWAY: "The owner is away.",
}


@dataclass(frozen=True, kw_only=True)
class Answer:
    """The answer of a built-in skill, with the notification and the note for the owner."""

    artifact: dict[str, Any]
    text: str
    # The text and kind of the notification for the owner; "" for no notification.
    notice: str = ""
    notice_kind: str = Notification.Kind.REPORT
    # The note kept in the task's working memory; "" for no note.
    note: str = ""


def answer_for(submission: Submission) -> Answer | None:
    """Returns the answer to a request for a built-in skill, if policy allows the request at once.

    Returns None for any other request; a worker handles those. Raises InvalidParams for a message without text,
    ContentTypeNotSupported for files, and NotSupported when the owner has MAX_UNREAD_MESSAGES unread messages of the
    caller's.
    """
    standing = caller_standing(caller_id=submission.caller_id, most_unread=settings.MAX_UNREAD_MESSAGES)
    if standing is None:
        return None
    slug = _built_in(submission, standing)
    if slug is None:
        return None
    decision = decide(
        level=standing.level,
        grants=standing.grants,
        skill=slug,
        kind=Skill.Kind.BUILT_IN,
        hops=submission.hops,
        max_hops=settings.MAX_HOPS,
    )
    if decision.mode is not Mode.BUILT_IN or not standing.enabled:
        return None
    if submission.files:
        raise ContentTypeNotSupported(f"The skill {slug!r} takes text and no files.")
    return answer(slug, submission.message, submission.workspace_id, standing, reported=decision.reported)


def _built_in(submission: Submission, standing: Standing) -> str | None:
    """Returns the id of the built-in skill that a submission names, None for any other skill.

    An exact id needs no database statement, since no other skill can have the id of a built-in skill.
    """
    if submission.skill in (NOTIFY_USER, QUERY_AVAILABILITY):
        return str(submission.skill)
    skill = named_skill(submission.skill, workspace_id=submission.workspace_id, grants=standing.grants)
    return skill.slug if isinstance(skill, Skill) and skill.kind == Skill.Kind.BUILT_IN else None


def answer(
    slug: str,
    message: Mapping[str, Any],
    workspace_id: int,
    standing: Standing | None = None,
    *,
    reported: bool = False,
) -> Answer:
    """Returns the answer of the built-in skill `slug` to a message.

    `reported` says that the owner is told of a question for their availability. Raises InvalidParams for a message
    without text, and NotSupported when the owner has too many unread messages.
    """
    if slug == NOTIFY_USER:
        return _notify_user(message, standing)
    assert slug == QUERY_AVAILABILITY, slug
    return _query_availability(workspace_id, reported=reported)


def _notify_user(message: Mapping[str, Any], standing: Standing | None) -> Answer:
    text = clean_text(message_text(message)).strip()
    if not text:
        raise InvalidParams("There is no text to pass on to the owner.")
    most = settings.MAX_UNREAD_MESSAGES
    if most and standing is not None and standing.unread_messages >= most:
        raise NotSupported(f"The owner has not read {most} messages of this agent yet, and takes no more until then.")
    text = cut(text, MAX_MESSAGE)
    return Answer(
        artifact=response_artifact(PASSED_ON),
        text=PASSED_ON,
        notice=text,
        notice_kind=Notification.Kind.MESSAGE,
        note=text,
    )


def _query_availability(workspace_id: int, *, reported: bool) -> Answer:
    status = presence_of(workspace_id)
    text = _AVAILABILITY[status]
    artifact = response_artifact(text)
    artifact["parts"] = [{"data": {"status": status.value}}, *artifact["parts"]]
    notice = f"Asked whether you are available, and was told: {status.value}." if reported else ""
    return Answer(artifact=artifact, text=text, notice=notice)
