"""Texts and facts of drafts for the commands `learn` and `draft`."""

from typing import Any

from trust.learning.drafts import examples_of
from trust.learning.matching import bounds_of
from trust.learning.writing import promise
from trust.models import SkillDraft
from trust.selectors import evidence_of
from volcanic.management.printing import indented, iso, printable


def listed(draft: SkillDraft) -> dict[str, Any]:
    """Returns the facts of a draft that a list shows."""
    return {
        "id": draft.pk,
        "caller": draft.caller.name,
        "slug": draft.slug,
        "name": draft.name,
        "decision": draft.decision,
        "evidence": len(draft.evidence),
        "source": draft.source,
        "preview": draft.preview,
    }


def lines(facts: dict[str, Any]) -> str:
    """Returns a draft in a list, in three lines. A caller's words stay on their line."""
    return "\n".join(
        [
            f"{facts['id']}  {facts['caller']}: {printable(facts['name'])} ({facts['slug']})",
            f"    {facts['evidence']} requests, decision {facts['decision']}, written by {facts['source']}",
            f"    tried: {printable(facts['preview']) or '—'}",
        ]
    )


def told(draft: SkillDraft) -> dict[str, Any]:
    """Returns all facts of a draft, with the decisions that it rests on."""
    evidence = [
        {"id": one.pk, "at": iso(one.created_at), "request": one.request, "words": one.reply or one.edits}
        for one in evidence_of([draft])
    ]
    return {
        **listed(draft),
        "workspace": draft.caller.workspace.slug,
        "state": draft.state,
        "version": draft.version,
        "description": draft.description,
        "instructions": draft.instructions,
        "tools": draft.tools,
        "examples": draft.examples,
        "covers": promise(examples_of(draft)),
        "fixed": bounds_of(examples_of(draft)).fixed,
        "evidence": evidence,
        "note": draft.note,
        "preview_problem": draft.preview_problem if draft.previewed_at else "",
        "previewed": iso(draft.previewed_at),
        "decision_text": draft.decision_text,
        "decided_by": draft.decided_by,
        "decided": iso(draft.decided_at),
        "skill": draft.skill.slug if draft.skill else None,
    }


def text(facts: dict[str, Any]) -> str:
    """Returns all facts of a draft as a text for people."""
    parts = [
        f"{facts['id']}  {printable(facts['name'])} ({facts['slug']}), for {facts['caller']} in {facts['workspace']}: "
        f"{facts['state']}, version {facts['version']}",
        *([f"note: {printable(facts['note'])}"] if facts["note"] else []),
        *([f"skill: {facts['skill']}"] if facts["skill"] else []),
        f"description:\n{indented(facts['description'])}",
        f"instructions:\n{indented(facts['instructions'])}",
        f"tools: {', '.join(facts['tools']) or 'none'}",
        "examples of requests for it, in the caller's words:",
        *(f"  - {printable(example)}" for example in facts["examples"]),
        facts["covers"],
        *(f"fixed: {printable(', '.join(values))}" for values in facts["fixed"]),
        f"learned from {len(facts['evidence'])} requests, decision {facts['decision']}:",
        *(_evidence_line(one) for one in facts["evidence"]),
        _tried(facts),
    ]
    return "\n".join(parts)


def _evidence_line(one: dict[str, Any]) -> str:
    words = f" → {printable(one['words'])}" if one["words"] else ""
    return f"  {one['at']}  {printable(one['request'])}{words}"


def _tried(facts: dict[str, Any]) -> str:
    if facts["previewed"] is None:
        return "not tried yet"
    answer = facts["preview"] or facts["preview_problem"] or "It had nothing to say."
    return f"tried on the last request, with tools that only look; nothing was sent:\n{indented(answer)}"
