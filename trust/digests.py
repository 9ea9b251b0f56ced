"""What a decision of the owner is bound to."""

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
    """Returns the digest of exactly what would run: whose messages, all of them in order, files by their own digests,
    what is told of the tasks that they refer to, with which skill's words, instructions and tools or handler (None
    stands for plain chat), and the draft that is shown with it, as it is."""
    facts = None
    if skill is not None and skill.slug != CHAT:
        tools = None if skill.tools is None else sorted(skill.tools)
        told = [skill.name, skill.description, skill.instructions]
        facts = [skill.pk, skill.slug, skill.kind, skill.handler, told, tools, skill.enabled]
    shown = [] if draft is None else [[draft.pk, draft.version]]
    return _digest([caller_id, str(task), facts, list(messages), list(references), *shown])


def digest_of(review: Review, skill: Skill | None, draft: SkillDraft | None = None) -> str:
    """Returns the digest of what would run of a review with this skill, as it is now, shown with `draft`."""
    return run_digest(
        caller_id=review.caller_id,
        task=review.task,
        skill=skill,
        messages=review.messages,
        references=review.references,
        draft=draft,
    )


def request_digest(message: Mapping[str, Any], metadata: Mapping[str, Any] | None, context_id: str) -> str:
    """Returns the digest of what a message asks for in the context that the caller named ("" for none), whatever the
    message's id: sent again it is the same."""
    asked = [message.get("parts"), message.get("metadata"), message.get("referenceTaskIds") or []]
    return _digest([*asked, dict(metadata or {}), context_id])


def _digest(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
