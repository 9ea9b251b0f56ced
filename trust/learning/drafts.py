"""Services of drafts: announce, edit, approve, reject, withdraw, and put before the owner again.

They take locks in the order that trust.learning names.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import F, Q
from django.utils import timezone

from trust.audit import audit
from trust.errors import DraftDecidedError
from trust.learning.writing import with_words
from trust.models import Caller, Grant, Level, Observation, Review, Skill, SkillDraft
from trust.owner_events import draft_changed, review_changed
from trust.selectors import every_skill_of
from trust.services.callers import grant_add
from trust.services.reviews import review_digest
from trust.services.skills import TEXTS, skill_check, skill_create, skill_update
from volcanic import acting
from volcanic.celery import publish
from volcanic.models import Notification
from volcanic.services import notification_create, notifications_settle_of
from volcanic.text import clean_json, clean_text, quoted

State = SkillDraft.State
EDITABLE = ("name", "description", "instructions", "tools", "examples")
TAKEN_BACK = "A decision that it rested on was taken back."


def origin_of(draft: SkillDraft) -> str:
    """Returns the origin by which notifications and turns belong to a draft."""
    return f"draft:{draft.pk}"


def examples_of(draft: SkillDraft) -> list[str]:
    """Returns the examples that requests are compared with: for an approved draft, the current ones of its skill."""
    examples: list[str] = draft.examples
    if draft.state == State.APPROVED and draft.skill is not None:
        examples = draft.skill.examples
    return examples


def draft_announce(draft: SkillDraft, text: str) -> None:
    """Notifies the owner of a draft, and queues its preview when the transaction commits."""
    notification_create(
        workspace_id=draft.caller.workspace_id,
        session_id=None,
        text=f"{text} Suggested action: look at the draft {quoted(draft.name)}.",
        origin=origin_of(draft),
        caller=draft.caller.name,
        kind=Notification.Kind.DRAFT,
    )
    transaction.on_commit(lambda: publish("trust.tasks.preview", draft.pk))


def _settle(draft: SkillDraft) -> None:
    """Marks the notifications about a draft as read, since the owner need not decide it any more."""
    caller = draft.caller
    notifications_settle_of(
        origin=origin_of(draft),
        workspace_id=caller.workspace_id,
        caller=caller.name,
        kinds=[Notification.Kind.DRAFT],
    )


def free_slug(workspace_id: int) -> str:
    """Returns an id for a learned skill that no skill, alias or draft in the workspace has or had.

    The id holds no words of a caller, since prompts contain it without a mark.
    """
    taken = set(SkillDraft.objects.filter(caller__workspace=workspace_id).values_list("slug", flat=True))
    for slug, aliases in every_skill_of(workspace_id).values_list("slug", "aliases"):
        taken |= {slug, *(aliases or ())}
    number = 1
    while f"learned-{number}" in taken:
        number += 1
    return f"learned-{number}"


@transaction.atomic
def draft_update(*, draft: SkillDraft, version: int, **changes: Any) -> SkillDraft:
    """Writes the owner's edits of an open draft, to fields in EDITABLE. Returns the draft.

    The version grows, so that the version shown before can't be approved any more. Raises ValidationError for a value
    that a skill can't have, and DraftDecidedError if the draft is not open or was edited meanwhile.
    """
    assert set(changes) <= set(EDITABLE), changes
    changes = {name: clean_json(value) for name, value in changes.items()}
    for name in ("name", "description", "instructions"):
        if name in changes:
            changes[name] = str(changes[name]).strip()
            if not changes[name]:
                raise ValidationError({name: "Write something."})
    if "examples" in changes and not changes["examples"]:
        raise ValidationError({"examples": "Keep at least one."})
    if "tools" in changes and changes["tools"] is None:
        raise ValidationError({"tools": "Name the tools, or none."})
    _check(draft, changes)
    reviews = reviews_showing(draft)
    _change(draft, version, {**_ANEW, **changes})
    draft.refresh_from_db()
    audit("draft.changed", caller=draft.caller, subject=draft.slug, reason=", ".join(sorted(changes)))
    _shown_anew(draft, reviews)
    return draft


# Written with every change of a draft's text: a new version, not tried yet.
_ANEW: Mapping[str, Any] = {
    "version": F("version") + 1,
    "preview": "",
    "preview_problem": "",
    "previewed_at": None,
}


def _shown_anew(draft: SkillDraft, reviews: Sequence[Review]) -> None:
    for review in reviews:
        _redigest(review, draft)
    transaction.on_commit(lambda: publish("trust.tasks.preview", draft.pk))


def _check(draft: SkillDraft, changes: Mapping[str, Any]) -> None:
    """Raises ValidationError for a change that no skill could have. Its id is not checked: approval finds a free id."""
    values = {name: changes.get(name, getattr(draft, name)) for name in EDITABLE}
    values["tools"] = list(values["tools"]) if isinstance(values["tools"], (tuple, set, frozenset)) else values["tools"]
    workspace = draft.caller.workspace
    try:
        skill_check(Skill(workspace=workspace, slug=free_slug(workspace.pk), **values))
    except ValidationError as error:
        faults = {name: words for name, words in error.message_dict.items() if name in changes}
        if faults:
            raise ValidationError(faults) from None


def reviews_showing(draft: SkillDraft) -> list[Review]:
    """Locks and returns the pending reviews that show a draft. A decision locks reviews before drafts, too."""
    rows = Review.objects.select_for_update(of=("self",)).filter(draft=draft, state=Review.State.PENDING)
    return list(rows.order_by("id"))


def _change(draft: SkillDraft, version: int, changes: Mapping[str, Any]) -> None:
    if not SkillDraft.objects.filter(pk=draft.pk, state=State.OPEN, version=version).update(**changes):
        now = SkillDraft.objects.filter(pk=draft.pk).first()
        if now is None or now.state != State.OPEN:
            was = now.get_state_display().lower() if now else "gone"
            raise DraftDecidedError(f"The draft was decided before: {was}.")
        raise DraftDecidedError("The draft was edited meanwhile. Look at it again.")
    draft_changed(draft, changes.get("state"))


def _redigest(review: Review, draft: SkillDraft | None) -> None:
    """Binds a review to the current draft, or to no draft. Decisions on the content shown before no longer count."""
    Review.objects.filter(pk=review.pk).update(digest=review_digest(review, draft), draft=draft)
    review_changed(review)


@transaction.atomic
def draft_approve(*, draft: SkillDraft, version: int) -> Skill:
    """Approves a draft: writes its skill and grants the caller the skill at Act. Returns the skill.

    A new skill is made if the draft has no skill yet, or if other callers have a grant of its skill. Raises
    DraftDecidedError if the draft is not open, has another version or rests on a decision that was taken back. Raises
    ValidationError if nothing would be handled, as `hindrance` tells.
    """
    # Grants before drafts, in the order in which a revocation takes them.
    held = Grant.objects.select_for_update().filter(caller=draft.caller_id, skill=draft.skill_id)
    replaced = list(held) if draft.skill_id is not None else []
    _decide(draft, version, State.APPROVED)
    if rests_on_reversed(draft):
        raise DraftDecidedError(TAKEN_BACK)
    if problem := hindrance(draft):
        raise ValidationError(problem)
    others = holders_besides(draft)
    told = ""
    fields: dict[str, Any] = {name: getattr(draft, name) for name in EDITABLE}
    if draft.skill is None or others:
        if draft.skill is not None:
            told = f"{draft.skill.slug} stays as it is: it is granted to {', '.join(others)}, too."
        skill = _skill_made(draft, fields)
        _replace(draft.caller, replaced, skill)
    else:
        skill = draft.skill
        skill_update(skill=skill, **fields)
    audit("draft.approved", caller=draft.caller, subject=draft.slug, reason=told)
    grant_add(caller=draft.caller, slug=skill.slug, level=Level.ACT, reason=f"Approved the draft {quoted(draft.name)}.")
    _settle(draft)
    return skill


def hindrance(draft: SkillDraft) -> str:
    """Returns why nothing would be handled after an approval: caller or skill is disabled. Returns "" otherwise."""
    if not draft.caller.enabled:
        return f"{draft.caller.name} is disabled. Enable it first, or reject the draft."
    if draft.skill is not None and not draft.skill.enabled:
        return f"The skill {draft.skill.slug} is disabled. Enable it first, or reject the draft."
    return ""


def rests_on_reversed(draft: SkillDraft) -> bool:
    """Tells whether the owner took back a decision that a draft was learned from."""
    return Observation.objects.filter(pk__in=draft.evidence, reversed_at__isnull=False).exists()


def holders_besides(draft: SkillDraft) -> list[str]:
    """Returns the names of other callers with a grant of the draft's skill: an edit must not change it for them."""
    if draft.skill_id is None:
        return []
    others = Grant.objects.filter(skill=draft.skill_id).exclude(caller=draft.caller_id)
    return list(others.order_by("caller__name").values_list("caller__name", flat=True))


def _skill_made(draft: SkillDraft, fields: dict[str, Any]) -> Skill:
    workspace = draft.caller.workspace
    slug = draft.slug if _is_free(draft) else free_slug(workspace.pk)
    skill = skill_create(workspace=workspace, slug=slug, advertised=False, **fields)
    Skill.objects.filter(pk=skill.pk).update(by_example=True)
    skill.by_example = True
    SkillDraft.objects.filter(pk=draft.pk).update(skill=skill, slug=slug)
    draft.skill, draft.slug = skill, slug
    return skill


def _replace(caller: Caller, grants: Sequence[Grant], skill: Skill) -> None:
    """Revokes grants that a new skill replaces. If two learned skills fit a request, neither is used."""
    for grant in grants:
        grant.delete()
        audit("grant.revoked", caller=caller, subject=grant.skill.slug, reason=f"{skill.slug} takes its place.")


def _is_free(draft: SkillDraft) -> bool:
    """Tells whether the draft's id is still free in the workspace."""
    skills = every_skill_of(draft.caller.workspace_id)
    return not skills.filter(Q(slug=draft.slug) | Q(aliases__contains=[draft.slug])).exists()


@transaction.atomic
def draft_reject(*, draft: SkillDraft, version: int, reason: str = "") -> None:
    """Rejects a draft. Such requests are not proposed again. Raises DraftDecidedError as `draft_approve` does."""
    reviews = reviews_showing(draft)
    reason = clean_text(reason).strip()
    _decide(draft, version, State.REJECTED, reason)
    audit("draft.rejected", caller=draft.caller, subject=draft.slug, reason=reason)
    for review in reviews:
        _redigest(review, None)
    _settle(draft)


def _decide(draft: SkillDraft, version: int, state: State, text: str = "") -> None:
    _change(draft, version, _decided(state, text))
    draft.refresh_from_db()


def _decided(state: State, text: str) -> dict[str, Any]:
    actor = acting.current().name
    return {"state": state, "decision_text": text, "decided_by": actor, "decided_at": timezone.now()}


@transaction.atomic
def draft_withdraw(*, draft: SkillDraft, reason: str, reviews: Sequence[Review] | None = None) -> bool:
    """Withdraws a draft whose evidence no longer counts. Such requests may be proposed again.

    `reviews` are the reviews that show the draft, if they are locked already. Returns whether this call withdrew it.
    """
    showing = reviews_showing(draft) if reviews is None else reviews
    if not SkillDraft.objects.filter(pk=draft.pk, state=draft.state).update(**_decided(State.WITHDRAWN, reason)):
        return False
    draft_changed(draft, State.WITHDRAWN)
    audit("draft.withdrawn", caller=draft.caller, subject=draft.slug, reason=reason)
    for review in showing:
        _redigest(review, None)
    _settle(draft)
    return True


@transaction.atomic
def draft_reopen(*, draft: SkillDraft, text: str) -> None:
    """Puts an approved draft before the owner again, with the current text of its skill and the owner's words `text`.

    If the owner took back a decision behind the draft, the draft is withdrawn instead.
    """
    if rests_on_reversed(draft):
        draft_withdraw(draft=draft, reason=TAKEN_BACK)
        return
    reviews = reviews_showing(draft)
    skill = draft.skill
    assert skill is not None
    reopened = SkillDraft.objects.filter(pk=draft.pk, state=State.APPROVED).update(
        **_ANEW,
        state=State.OPEN,
        name=skill.name,
        description=skill.description,
        examples=skill.examples,
        tools=draft.tools if skill.tools is None else skill.tools,
        instructions=_with_words(skill.instructions, text),
        note="You marked something that was done on it as not like this.",
        decided_at=None,
        decided_by="",
        decision_text="",
    )
    if not reopened:
        return
    draft.refresh_from_db()
    draft_changed(draft)
    audit("draft.reopened", caller=draft.caller, subject=draft.slug, reason=text)
    _shown_anew(draft, reviews)


@transaction.atomic
def draft_add_words(*, draft: SkillDraft, text: str) -> None:
    """Adds the owner's words about a request that was done to the instructions of an open draft."""
    reviews = reviews_showing(draft)
    now = SkillDraft.objects.select_for_update(no_key=True).filter(pk=draft.pk, state=State.OPEN).first()
    if now is None or not text:
        return
    instructions = _with_words(now.instructions, text)
    SkillDraft.objects.filter(pk=draft.pk).update(**_ANEW, instructions=instructions)
    draft.refresh_from_db()
    draft_changed(draft)
    audit("draft.changed", caller=draft.caller, subject=draft.slug, reason="instructions")
    _shown_anew(draft, reviews)


def _with_words(instructions: str, text: str) -> str:
    return with_words(instructions, text, TEXTS["instructions"])
