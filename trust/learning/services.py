"""The verbs of learning. None of them raises a level to Act or makes a grant but by the owner's own decision."""

import logging
import re
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import F, Q
from django.utils import timezone

from trust.audit import audit
from trust.errors import DraftDecidedError
from trust.learning.likeness import alike
from trust.learning.observed import alike_groups, decided_alike, observations_of
from trust.learning.writing import Text, write
from trust.models import AuditEntry, Caller, Grant, Level, Observation, Review, Skill, SkillDraft
from trust.services.callers import caller_set_level, grant_add, grant_revoke
from trust.services.reviews import review_digest
from trust.services.skills import skill_check, skill_create, skill_update
from volcanic import acting
from volcanic.models import Notification
from volcanic.runtime.base import Writer
from volcanic.runtime.current import writer as current_writer
from volcanic.services import notification_create
from volcanic.text import clean_json, clean_text, one_line

logger = logging.getLogger(__name__)

Decision = Observation.Decision
State = SkillDraft.State
EDITABLE = ("name", "description", "instructions", "tools", "examples")


def caller_learn(*, caller: Caller, writer: Writer | None = None) -> list[SkillDraft]:
    """Looks at what the owner decided about a caller, and returns the drafts that it made of it.

    A caller that is shut out teaches nothing. One at Observe goes to Learn first, if it is time; one at Learn with a
    draft goes on to Propose. `writer` is the model that sorts and writes; None is this process's, if it has one. Not in
    a transaction: a model may be asked.
    """
    _go_to_learn(caller)
    if caller.level == Level.OBSERVE or not caller.enabled:
        return []
    writer = writer or current_writer()
    observations = observations_of(caller.pk)
    made = []
    for group in alike_groups(observations, writer):
        if _is_known(caller, group):
            continue
        text = write(group, writer, _complaints(observations, [one.request for one in group]))
        if (draft := _draft_create(caller, group, text)) is not None:
            made.append(draft)
    _go_to_propose(caller)
    return made


def _go_to_learn(caller: Caller) -> None:
    """Observe → Learn after LEARN_AFTER interactions without a decline among the owner's latest decisions."""
    after = settings.LEARN_AFTER
    caller.refresh_from_db(fields=["level", "enabled", "interaction_count"])
    if not after or caller.level != Level.OBSERVE or caller.interaction_count < after:
        return
    latest = Observation.objects.filter(caller=caller, reversed_at=None).order_by("-id")[:after]
    if any(one.decision in (Decision.DECLINE, Decision.UNLIKE) for one in latest):
        return
    reason = f"{caller.interaction_count} interactions, none of the latest declined."
    _climb(caller, Level.OBSERVE, Level.LEARN, reason)


def _lock(caller: Caller) -> None:
    """Reads what counts of a caller, to stay so until the transaction ends: a model took its time meanwhile."""
    rows = Caller.objects.select_for_update(no_key=True)
    caller.refresh_from_db(fields=["level", "enabled", "interaction_count"], from_queryset=rows)


def _held_back(caller: Caller) -> bool:
    """Tells whether somebody lowered the caller to the level that it has: it stays there then, until they raise it."""
    last = AuditEntry.objects.filter(caller_id=caller.pk, action="caller.level").order_by("-id").first()
    if last is None or last.actor == acting.SYSTEM:
        return False
    before, _, after = last.subject.partition(" → ")
    return after == caller.level and before in Level.values and Level(before).rank > Level(after).rank


@transaction.atomic
def _climb(caller: Caller, before: Level, level: Level, reason: str) -> None:
    """Writes the next level, if the caller is where it was and the owner has not put it there."""
    _lock(caller)
    if caller.enabled and caller.level == before and not _held_back(caller):
        caller_set_level(caller=caller, level=level, reason=reason)


def _go_to_propose(caller: Caller) -> None:
    draft = SkillDraft.objects.filter(caller=caller, state=State.OPEN).order_by("-id").first()
    if caller.level == Level.LEARN and draft is not None:
        _climb(caller, Level.LEARN, Level.PROPOSE, f"There is a draft: {draft.name}")


def _is_known(caller: Caller, group: Sequence[Observation]) -> bool:
    """Tells whether a draft was made of such requests, or of one of these, already: whatever became of it, it is not
    proposed again for the same reason. A withdrawn one rested on what the owner took back, and is none."""
    drafts = SkillDraft.objects.filter(caller=caller, decision=decided_alike(group[0]))
    numbers = {one.pk for one in group}
    return any(
        numbers & set(draft.evidence) or any(alike(example, one.request) for example in draft.examples for one in group)
        for draft in drafts.exclude(state=State.WITHDRAWN)
    )


def _complaints(observations: Sequence[Observation], requests: Sequence[str]) -> list[str]:
    unlike = [one for one in observations if one.decision == Decision.UNLIKE and one.edits]
    return [one.edits for one in unlike if any(alike(one.request, request) for request in requests)]


@transaction.atomic
def _draft_create(caller: Caller, group: Sequence[Observation], text: Text) -> SkillDraft | None:
    # Of two that learn at once, the second finds the draft of the first.
    _lock(caller)
    if caller.level == Level.OBSERVE or not caller.enabled:
        return None
    standing = Observation.objects.filter(pk__in=[one.pk for one in group], reversed_at=None).count()
    if _is_known(caller, group) or standing < len(group):
        return None
    draft = SkillDraft.objects.create(
        caller=caller,
        slug=_free_slug(caller, text.examples[0]),
        name=text.name,
        description=text.description,
        examples=text.examples,
        instructions=text.instructions,
        tools=text.tools,
        source=text.source,
        decision=decided_alike(group[0]),
        evidence=[one.pk for one in group],
    )
    audit("draft.proposed", caller=caller, subject=draft.slug, reason=f"{len(group)} requests decided alike.")
    did = "replied to" if draft.decision == Decision.REPLY else "approved"
    _notify(
        draft, f"You {did} {len(group)} requests like “{one_line(draft.examples[0], 120)}”. Handle this from now on?"
    )
    transaction.on_commit(lambda: _have_previewed(draft.pk))
    return draft


def _have_previewed(draft_id: int) -> None:
    from trust.tasks import preview
    from volcanic.celery import publish

    publish(preview, draft_id)


def _free_slug(caller: Caller, example: str) -> str:
    words = re.findall(r"[a-z0-9]+", example.lower().encode("ascii", "ignore").decode())[:5]
    base = ("-".join(["learned", *words]))[:50].strip("-")
    taken = set(Skill.objects.filter(slug__startswith=base).values_list("slug", flat=True))
    taken |= set(SkillDraft.objects.filter(slug__startswith=base).values_list("slug", flat=True))
    for aliases in Skill.objects.exclude(aliases=[]).values_list("aliases", flat=True):
        taken |= set(aliases)
    number, slug = 1, base
    while slug in taken:
        number += 1
        slug = f"{base}-{number}"
    return slug


def _notify(draft: SkillDraft, text: str) -> None:
    notification_create(
        workspace_id=draft.caller.workspace_id,
        session_id=None,
        text=f"{text} Suggested action: look at the draft “{draft.name}”.",
        caller=draft.caller.name,
        kind=Notification.Kind.DRAFT,
    )


@transaction.atomic
def draft_update(*, draft: SkillDraft, version: int, **changes: Any) -> SkillDraft:
    """Writes the owner's edits of an open draft: any of EDITABLE. What was shown of it before can't be approved any
    more. Raises ValidationError, DraftDecidedError when it is not open or was edited meanwhile."""
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
    reviews = _reviews_of(draft)
    fresh = {"version": F("version") + 1, "preview": "", "preview_problem": "", "previewed_at": None}
    _change(draft, version, fresh | changes)
    draft.refresh_from_db()
    audit("draft.changed", caller=draft.caller, subject=draft.slug, reason=", ".join(sorted(changes)))
    for review in reviews:
        _review_redigest(review, draft)
    transaction.on_commit(lambda: _have_previewed(draft.pk))
    return draft


def _check(draft: SkillDraft, changes: Mapping[str, Any]) -> None:
    """Raises ValidationError for what no skill could be, but for its id: another is found in time."""
    values = {name: changes.get(name, getattr(draft, name)) for name in EDITABLE}
    values["tools"] = list(values["tools"]) if isinstance(values["tools"], (tuple, set, frozenset)) else values["tools"]
    try:
        skill_check(Skill(workspace=draft.caller.workspace, slug=_free_slug(draft.caller, "check"), **values))
    except ValidationError as error:
        faults = {name: words for name, words in error.message_dict.items() if name in changes}
        if faults:
            raise ValidationError(faults) from None


def _reviews_of(draft: SkillDraft) -> list[Review]:
    """Returns the reviews that show a draft and wait, locked: reviews before drafts, in the order of a decision."""
    rows = Review.objects.select_for_update(of=("self",)).filter(draft=draft, state=Review.State.PENDING)
    return list(rows.order_by("id"))


def _change(draft: SkillDraft, version: int, changes: dict[str, Any]) -> None:
    if not SkillDraft.objects.filter(pk=draft.pk, state=State.OPEN, version=version).update(**changes):
        now = SkillDraft.objects.filter(pk=draft.pk).first()
        if now is None or now.state != State.OPEN:
            was = now.get_state_display().lower() if now else "gone"
            raise DraftDecidedError(f"The draft was decided before: {was}.")
        raise DraftDecidedError("The draft was edited meanwhile. Look at it again.")


def _review_redigest(review: Review, draft: SkillDraft | None) -> None:
    """Binds a decision to the draft as it is now, None for none any more: what was shown before counts no longer."""
    Review.objects.filter(pk=review.pk).update(digest=review_digest(review, draft), draft=draft)


@transaction.atomic
def draft_approve(*, draft: SkillDraft, version: int) -> Skill:
    """Makes a draft what it proposes, by the owner's hand: the skill, if there is none yet, and the caller's grant to
    act on it. Raises DraftDecidedError, ValidationError."""
    _decide(draft, version, State.APPROVED, "")
    fields: dict[str, Any] = {
        "name": draft.name,
        "description": draft.description,
        "examples": draft.examples,
        "instructions": draft.instructions,
        "tools": draft.tools,
    }
    skill = draft.skill
    if skill is None:
        workspace = draft.caller.workspace
        slug = draft.slug if _is_free(draft) else _free_slug(draft.caller, draft.examples[0])
        skill = skill_create(workspace=workspace, slug=slug, advertised=False, **fields)
        Skill.objects.filter(pk=skill.pk).update(by_example=True)
        skill.by_example = True
        SkillDraft.objects.filter(pk=draft.pk).update(skill=skill, slug=slug)
        draft.slug = slug
    else:
        skill_update(skill=skill, **fields)
    reason = f"Approved the draft “{draft.name}”."
    grant_add(caller=draft.caller, slug=skill.slug, level=Level.ACT, reason=reason)
    return skill


def _is_free(draft: SkillDraft) -> bool:
    """Tells whether the id of a draft is still to be had."""
    skills = Skill.objects.filter(Q(workspace=draft.caller.workspace_id) | Q(workspace=None))
    return not skills.filter(Q(slug=draft.slug) | Q(aliases__contains=[draft.slug])).exists()


@transaction.atomic
def draft_reject(*, draft: SkillDraft, version: int, reason: str = "") -> None:
    """Ends a draft. It is remembered: such requests are not proposed again. Raises DraftDecidedError."""
    reviews = _reviews_of(draft)
    _decide(draft, version, State.REJECTED, clean_text(reason).strip())
    for review in reviews:
        _review_redigest(review, None)


def _decide(draft: SkillDraft, version: int, state: State, text: str) -> None:
    actor = acting.current().name
    changes = {"state": state, "decision_text": text, "decided_by": actor, "decided_at": timezone.now()}
    _change(draft, version, changes)
    draft.refresh_from_db()
    audit(f"draft.{state.value}", caller=draft.caller, subject=draft.slug, reason=text)


@transaction.atomic
def not_like_this(*, caller: Caller, slug: str, task: uuid.UUID, request: str, text: str = "") -> bool:
    """Takes back what let the assistant do this without the owner: the grant of the skill. A caller at Act falls to
    Propose for it, and the draft that it came from is put before the owner again, with their words. Returns whether
    there was such a grant."""
    _lock(caller)
    if not grant_revoke(caller=caller, slug=slug, keeps_evidence=True, reason=f"Not like this. {text}".strip()):
        return False
    Observation.objects.create(
        caller=caller,
        task=task,
        skill=slug,
        request=clean_text(request),
        decision=Decision.UNLIKE,
        edits=clean_text(text).strip(),
    )
    audit("review.unlike", caller=caller, subject=str(task), reason=text)
    _fall_to_propose(caller)
    for draft in SkillDraft.objects.filter(caller=caller, skill__slug=slug, state=State.APPROVED):
        _reopen(draft, clean_text(text).strip())
    _go_to_propose(caller)
    return True


def _fall_to_propose(caller: Caller) -> None:
    """The level that counts for this skill is the caller's own again, Propose at most; for every other it stays what
    it is."""
    if caller.level != Level.ACT:
        return
    reason = "Something was done that was not as the owner wanted it."
    for grant in Grant.objects.select_for_update(of=("self",)).filter(caller=caller, level="").select_related("skill"):
        Grant.objects.filter(pk=grant.pk).update(level=Level.ACT)
        audit("grant.level", caller=caller, subject=f"{grant.skill.slug}: own → {Level.ACT.value}", reason=reason)
    caller_set_level(caller=caller, level=Level.PROPOSE, reason=reason)


def _reopen(draft: SkillDraft, text: str) -> None:
    line = f"Not like this, said your owner of what was done: {text}" if text else ""
    reviews = _reviews_of(draft)
    # As the owner has the skill now: they may have written in it since.
    skill = draft.skill
    assert skill is not None
    SkillDraft.objects.filter(pk=draft.pk, state=State.APPROVED).update(
        state=State.OPEN,
        version=F("version") + 1,
        name=skill.name,
        description=skill.description,
        examples=skill.examples,
        tools=draft.tools if skill.tools is None else skill.tools,
        instructions=f"{line}\n{skill.instructions}" if line else skill.instructions,
        note="You marked something that was done on it as not like this.",
        decided_at=None,
        decided_by="",
        preview="",
        preview_problem="",
        previewed_at=None,
    )
    draft.refresh_from_db()
    audit("draft.reopened", caller=draft.caller, subject=draft.slug, reason=text)
    for review in reviews:
        _review_redigest(review, draft)
    transaction.on_commit(lambda: _have_previewed(draft.pk))


@transaction.atomic
def observations_reverse(*, ids: Sequence[int], reason: str = "") -> int:
    """Takes decisions back, as far as learning goes: nothing is learned from them, and drafts that rest on them and on
    which nothing is granted are withdrawn. Returns how many."""
    rows = list(Observation.objects.select_for_update().filter(pk__in=ids, reversed_at=None).select_related("caller"))
    Observation.objects.filter(pk__in=[row.pk for row in rows]).update(reversed_at=timezone.now())
    for row in rows:
        audit("observation.reversed", caller=row.caller, subject=str(row.task), reason=reason)
    drafts = SkillDraft.objects.filter(caller__in={row.caller_id for row in rows}).select_related("caller")
    for draft in drafts.filter(state__in=[State.OPEN, State.APPROVED]):
        if set(draft.evidence) & {row.pk for row in rows} and not _is_granted(draft):
            _withdraw(draft, reason)
    return len(rows)


def _is_granted(draft: SkillDraft) -> bool:
    granted = Grant.objects.filter(caller=draft.caller_id, skill=draft.skill_id)
    return draft.state == State.APPROVED and draft.skill_id is not None and granted.exists()


def _withdraw(draft: SkillDraft, reason: str) -> None:
    reviews = _reviews_of(draft)
    if not SkillDraft.objects.filter(pk=draft.pk, state=draft.state).update(state=State.WITHDRAWN):
        return
    audit("draft.withdrawn", caller=draft.caller, subject=draft.slug, reason=reason)
    for review in reviews:
        _review_redigest(review, None)


def evidence_of_grant(*, caller_id: int, slug: str) -> list[int]:
    """Returns the observations that a grant rests on: that the owner granted it in a review, and what its draft was
    learned from."""
    given = Observation.objects.filter(caller_id=caller_id, decision=Decision.GRANT, skill=slug, reversed_at=None)
    # By the id: the skill itself may just have been deleted.
    drafts = SkillDraft.objects.filter(caller_id=caller_id, slug=slug)
    learned = [number for evidence in drafts.values_list("evidence", flat=True) for number in evidence]
    return [*given.values_list("pk", flat=True), *learned]
