"""Digests of requests: one binds the owner's decision to the content shown, one finds the same request again."""

import hashlib
import json
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from trust.models import CHAT, Review, Skill, SkillDraft


def run_digest(
    *,
    caller_id: int,
    task: uuid.UUID,
    skill: Skill | None,
    messages: Sequence[Mapping[str, Any]],
    references: Sequence[str] = (),
    draft: SkillDraft | None = None,
) -> str:
    """Returns the SHA-256 digest, in hex, of exactly what would run.

    It covers the caller, the task, all messages in order (files by their own digests), and `references`, a line about
    each task that the messages refer to. It covers the skill's words, instructions, tools and handler; None stands for
    plain chat. It also covers the version of the `draft` that is shown with the request.
    """
    facts = None
    if skill is not None and skill.slug != CHAT:
        tools = None if skill.tools is None else sorted(skill.tools)
        told = [skill.name, skill.description, skill.instructions]
        facts = [skill.pk, skill.slug, skill.kind, skill.handler, told, tools, skill.enabled]
    shown = [] if draft is None else [[draft.pk, draft.version]]
    return _digest([caller_id, str(task), facts, list(messages), list(references), *shown])


def digest_of(review: Review, skill: Skill | None, draft: SkillDraft | None = None) -> str:
    """Returns the digest of what would run now for a review with this skill, shown with `draft`."""
    return run_digest(
        caller_id=review.caller_id,
        task=review.task,
        skill=skill,
        messages=review.messages,
        references=review.references,
        draft=draft,
    )


def request_digest(message: Mapping[str, Any], metadata: Mapping[str, Any] | None, context_id: str) -> str:
    """Returns the digest of a message's content in the context that the caller named ("" for none).

    The message's id has no part in it: the same content sent again has the same digest.
    """
    asked = [message.get("parts"), message.get("metadata"), message.get("referenceTaskIds") or []]
    return _digest([*asked, dict(metadata or {}), context_id])


def _digest(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
