"""The data of the pages about drafts: requests and decisions, the proposed skill, and the result of trying it.

A caller's words stay plain text: the templates escape them, and addresses in them do not become links.
"""

from collections.abc import Sequence
from typing import Any

from django.http import HttpRequest, QueryDict
from django.urls import reverse

from trust.admin.draft_forms import DraftForm, RejectForm
from trust.admin.skill_forms import tool_choices
from trust.learning.drafts import examples_of, hindrance, holders_besides
from trust.learning.matching import bounds_of
from trust.learning.services import DECIDED_OTHERWISE, EDITABLE
from trust.learning.writing import promise
from trust.models import Observation, SkillDraft
from trust.selectors import evidence_of
from volcanic.admin.base import moment
from volcanic.text import cut

Decision = Observation.Decision
State = SkillDraft.State

STATE_LABELS: dict[str, str | None] = {
    State.OPEN: "warning",
    State.APPROVED: "success",
    State.REJECTED: "danger",
    State.WITHDRAWN: None,
}
# The characters of instructions, and the number of decisions, that a draft's card shows. The rest is a click away.
SHORT, LATEST = 300, 5
_UNSENT = "draft_unsent"


def draft_card(draft: SkillDraft, evidence: Sequence[Observation]) -> dict[str, Any]:
    """Returns the data of the draft's card in a review that the draft would cover. `evidence` is the draft's."""
    short = cut(draft.instructions, SHORT)
    return {
        "draft": draft,
        "url": reverse("admin:trust_skilldraft_change", args=[draft.pk]),
        "tools": ", ".join(sorted(str(name) for name in draft.tools)) or "no tools",
        "instructions": short,
        "all_instructions": draft.instructions if short != draft.instructions else "",
        "did": did(draft),
        "evidence": [_evidence_row(one) for one in evidence[-LATEST:]],
        "earlier": len(evidence[:-LATEST]),
        "others": ", ".join(holders_besides(draft)),
        "problem": hindrance(draft),
        "covers": _covers(draft),
        "tried": tried(draft),
    }


def _covers(draft: SkillDraft) -> dict[str, Any]:
    examples = examples_of(draft)
    return {"promise": promise(examples), "fixed": bounds_of(examples).fixed}


def did(draft: SkillDraft) -> str:
    """Returns a sentence about the decisions that the draft was learned from."""
    count = len(draft.evidence)
    what = "answered by you" if draft.decision == Decision.REPLY else "approved"
    return f"{count} request{'' if count == 1 else 's'} like this {'was' if count == 1 else 'were'} {what}."


def tried(draft: SkillDraft) -> dict[str, str]:
    """Returns the time of a draft's preview, the answer, and the problem without an answer; all "" if not tried yet."""
    if draft.previewed_at is None:
        return {"at": "", "answer": "", "problem": ""}
    nothing = "" if draft.preview or draft.preview_problem else "It had nothing to say."
    return {"at": moment(draft.previewed_at), "answer": draft.preview, "problem": draft.preview_problem or nothing}


def draft_shown(draft: SkillDraft, *, unsent: QueryDict | None = None) -> dict[str, Any]:
    """Returns the data of a draft's own page. `unsent` are edits that could not be saved."""
    labels = dict(tool_choices())
    words = {name: getattr(draft, name) for name in EDITABLE}
    return {
        "draft": draft,
        "open": draft.state == State.OPEN,
        "outlived": draft.decision_text == DECIDED_OTHERWISE,
        "others": ", ".join(holders_besides(draft)),
        "problem": hindrance(draft),
        "state_label": STATE_LABELS.get(draft.state),
        "did": did(draft),
        "evidence": [_evidence_row(one) for one in evidence_of([draft])],
        "tools": [labels.get(name, str(name)) for name in draft.tools],
        "covers": _covers(draft),
        "tried": tried(draft),
        "learned": moment(draft.created_at),
        "decided": moment(draft.decided_at),
        "skill_url": "" if draft.skill_id is None else reverse("admin:trust_skill_change", args=[draft.skill_id]),
        "form": DraftForm(unsent, initial=words),
        "reject_form": RejectForm(auto_id="reject-%s"),
        "editing": unsent is not None,
    }


def _evidence_row(one: Observation) -> dict[str, Any]:
    return {
        "url": reverse("admin:trust_observation_change", args=[one.pk]),
        "at": moment(one.created_at),
        "request": one.request,
        "decision": one.get_decision_display() + (" (taken back)" if one.reversed_at else ""),
        "words": one.reply or one.edits,
    }


def keep_unsent(request: HttpRequest, draft: SkillDraft) -> None:
    """Keeps edits that could not be saved in the session, until the draft is shown again."""
    request.session[_UNSENT] = {str(draft.pk): request.POST.urlencode()}


def take_unsent(request: HttpRequest, draft: SkillDraft) -> QueryDict | None:
    """Returns the edits of a draft that could not be saved and removes them; None if there are no edits."""
    unsent = request.session.pop(_UNSENT, {}) if _UNSENT in request.session else {}
    return QueryDict(unsent[str(draft.pk)]) if str(draft.pk) in unsent else None
