"""The data of the pages about reviews: the caller, its words, the run after an approval, and the owner's choices.

A caller's words stay plain text: the templates escape them, and addresses in them do not become links.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Q
from django.http import HttpRequest

from trust.admin.draft_pages import draft_card
from trust.admin.review_forms import DecisionForm
from trust.digests import digest_of
from trust.models import CHAT, Observation, Review, Skill, SkillDraft
from trust.selectors import evidence_of
from trust.services import ASSISTANT, OWNER
from volcanic.admin.base import moment, task_url

Decision = Observation.Decision

STATE_LABELS: dict[str, str | None] = {
    Review.State.PENDING: "warning",
    Review.State.ASKED: "info",
    Review.State.APPROVED: "success",
    Review.State.REPLIED: "success",
    Review.State.DECLINED: "danger",
    Review.State.EXPIRED: None,
    Review.State.VOID: None,
}
# The most characters of a request on the first page. A longer one is shown and decided on its own page only, since a
# decision is about the content that was shown.
MOST_IN_CARD = 3000
_UNSENT = "review_unsent"


@dataclass(frozen=True, kw_only=True)
class Choice:
    """A button of the decision form, with a hint on its effect and on its use of the owner's text."""

    value: str
    label: str
    hint: str
    # The looks of the first choice, and of the button that ends the request. The words tell these apart, too.
    variant: str = "default"
    style: str = ""


def choices(review: Review) -> list[Choice]:
    """Returns the owner's choices for a pending review."""
    caller, skill = review.caller.name, review.skill
    lasting = review.offers_grant or review.draft is not None
    grant = "Approve, and handle this from now on" if lasting else "Approve and grant"
    what = f"may use {skill}" if review.draft is None else "may send requests that the draft covers"
    every = [
        Choice(
            value=Decision.APPROVE,
            label="Approve",
            hint="The request is done now, this once. Your text, if any, is an instruction to the assistant.",
            variant="primary",
        ),
        Choice(
            value=Decision.GRANT,
            label=grant,
            hint=f"The request is done now. From now on {caller} {what}, and you are not asked.",
        ),
        Choice(
            value=Decision.REPLY,
            label="Reply",
            hint=f"Your text is the answer that {caller} gets. The assistant does nothing.",
        ),
        Choice(
            value=Decision.ASK,
            label="Ask back",
            hint=f"Your text is a question to {caller}. The request comes back to you with its answer.",
        ),
        Choice(
            value=Decision.DECLINE,
            label="Decline",
            hint=f"Ends the request. Your text, if any, is the reason that {caller} is told.",
            style="volcanic-ending",
        ),
    ]
    # A draft that was decided elsewhere meanwhile can't be approved again.
    decided = review.draft is not None and review.draft.state != SkillDraft.State.OPEN
    return [choice for choice in every if choice.value != Decision.GRANT or not decided]


def shown(reviews: Iterable[Review], *, unsent: Mapping[str, str] | None = None) -> list[dict[str, Any]]:
    """Returns the data of reviews for the templates.

    The reviews must come with their callers and drafts. `unsent` maps a review's id to a text that could not be sent.
    """
    listed = list(reviews)
    skills = _skills(listed)
    evidence = {one.pk: one for one in evidence_of(filter(None, map(_open_draft, listed)))}
    return [
        _shown(review, _skill_of(review, skills), (unsent or {}).get(str(review.pk), ""), evidence) for review in listed
    ]


def _open_draft(review: Review) -> SkillDraft | None:
    draft = review.draft if review.state == Review.State.PENDING else None
    return draft if draft is not None and draft.state == SkillDraft.State.OPEN else None


def _shown(review: Review, skill: Skill | None, text: str, evidence: Mapping[int, Observation]) -> dict[str, Any]:
    speakers = {OWNER: "You", ASSISTANT: "Your assistant"}
    thread = [
        _thread_line(entry, speakers, review.caller.name) for entry in review.thread if isinstance(entry, Mapping)
    ]
    draft = _open_draft(review)
    its_evidence = [evidence[number] for number in draft.evidence if number in evidence] if draft else []
    texts = [
        review.request,
        *review.references,
        *(line["text"] for line in thread),
        draft.instructions if draft else "",
    ]
    return {
        "review": review,
        "state_label": STATE_LABELS.get(review.state),
        "files": [str(line) for line in review.files],
        "references": [str(line) for line in review.references],
        "thread": thread,
        "run": _run(review, skill),
        "changed": _changed(review, skill),
        # The draft that the second button makes a skill.
        "draft": draft_card(draft, its_evidence) if draft else None,
        "waits": review.state in Review.WAITING,
        "since": moment(review.created_at),
        "ends": moment(review.expires_at),
        "decided": moment(review.decided_at),
        "decision_words": _decision_words(review),
        "long": sum(map(len, texts)) > MOST_IN_CARD,
        "choices": choices(review),
        "form": DecisionForm(initial={"text": text, "digest": review.digest}, auto_id=f"review-{review.pk}-%s"),
        "task_url": task_url(review.task),
    }


def _thread_line(entry: Mapping[str, Any], speakers: Mapping[str, str], caller: str) -> dict[str, Any]:
    try:
        at = moment(datetime.fromisoformat(str(entry.get("at"))))
    except ValueError:
        at = ""
    own = speakers.get(str(entry.get("from")))
    return {"by": own or caller, "own": own is not None, "text": str(entry.get("text", "")), "at": at}


def _run(review: Review, skill: Skill | None) -> dict[str, Any]:
    """Returns the run after an approval: what answers, the skill's description, the tools and the instructions."""
    if skill is None:
        what = f"nothing runs, since the skill {review.skill} is gone or disabled"
        return {"what": what, "told": "", "tools": "", "instructions": ""}
    if skill.slug == CHAT:
        what = "the assistant does what the request says"
    elif skill.kind == Skill.Kind.HANDLER:
        what = f"the function {skill.handler} answers"
    elif skill.kind == Skill.Kind.BUILT_IN:
        what = "the server answers by itself, without the assistant"
    else:
        what = "the assistant does what the request says, as this skill is described"
    told = skill.kind == Skill.Kind.ASSISTANT and skill.slug != CHAT and not skill.by_example
    return {
        "what": what,
        "told": f"{skill.name}: {skill.description}" if told else "",
        "tools": "" if skill.kind == Skill.Kind.BUILT_IN and skill.slug != CHAT else _tools(skill.tools),
        "instructions": skill.instructions,
    }


def _changed(review: Review, skill: Skill | None) -> bool:
    """Tells whether the skill has changed since the review's digest was made. Then an approval would not hold."""
    return review.state == Review.State.PENDING and digest_of(review, skill, review.draft) != review.digest


def _tools(names: list[str] | None) -> str:
    if names is None:
        return "all tools of chat"
    return ", ".join(sorted(str(name) for name in names)) or "no tools"


def _decision_words(review: Review) -> str:
    """Returns the label of the owner's text in a decided review."""
    return {
        Review.State.APPROVED: "Instruction to the assistant",
        Review.State.REPLIED: "Reply",
        Review.State.ASKED: "Question",
        Review.State.DECLINED: "Reason",
    }.get(Review.State(review.state), "")


def _skills(reviews: list[Review]) -> dict[tuple[int | None, str], Skill]:
    workspaces = {review.caller.workspace_id for review in reviews}
    of_workspace = Q(workspace__in=workspaces) | Q(workspace=None)
    slugs = {review.skill for review in reviews}
    rows = Skill.objects.filter(of_workspace, slug__in=slugs, enabled=True).order_by("-id")
    return {(skill.workspace_id, skill.slug): skill for skill in rows}


def _skill_of(review: Review, skills: Mapping[tuple[int | None, str], Skill]) -> Skill | None:
    # Like trust.selectors.skill_of_workspace: of two skills, the one with the lower id.
    found = [skills.get((workspace, review.skill)) for workspace in (None, review.caller.workspace_id)]
    return min((skill for skill in found if skill is not None), key=lambda skill: skill.pk, default=None)


def keep_unsent(request: HttpRequest, review: Review, text: str) -> None:
    """Keeps a text that could not be sent in the session, until the review is shown again."""
    if text:
        request.session[_UNSENT] = {str(review.pk): text}


def take_unsent(request: HttpRequest) -> dict[str, str]:
    """Returns the texts that could not be sent, by review id, and removes them from the session."""
    unsent: dict[str, str] = request.session.pop(_UNSENT, {}) if _UNSENT in request.session else {}
    return unsent
