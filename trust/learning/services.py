"""Services of learning. They raise a level to Act, or make a grant, only by the owner's own decision.

They take locks in the order that trust.learning names.
"""

import logging
import uuid
from collections.abc import Iterable, Sequence
from datetime import datetime

from django.conf import settings
from django.db import transaction
from django.db.models import Max, Q
from django.utils import timezone

from trust.audit import audit
from trust.learning.drafts import (
    EDITABLE,
    TAKEN_BACK,
    draft_add_words,
    draft_announce,
    draft_approve,
    draft_reject,
    draft_reopen,
    draft_update,
    draft_withdraw,
    examples_of,
    free_slug,
    rests_on_reversed,
)
from trust.learning.likeness import alike
from trust.learning.matching import fits
from trust.learning.observed import ENOUGH, alike_groups, decided_alike, observations_of
from trust.learning.writing import Text, promise, write
from trust.models import AuditEntry, Caller, Grant, Level, Observation, SkillDraft
from trust.owner_events import draft_changed
from trust.services.callers import caller_set_level, grant_revoke
from trust.services.reviews import reviews_lock
from volcanic import acting
from volcanic.runtime.base import Writer
from volcanic.runtime.current import writer as current_writer
from volcanic.text import clean_text, quoted

__all__ = [
    "DECIDED_OTHERWISE",
    "EDITABLE",
    "caller_learn",
    "draft_approve",
    "draft_reject",
    "draft_update",
    "not_like_this",
    "observations_reverse",
]

logger = logging.getLogger(__name__)

Decision = Observation.Decision
State = SkillDraft.State
DECIDED_OTHERWISE = f"You decided the last {ENOUGH} such requests otherwise."


def caller_learn(*, caller: Caller, writer: Writer | None = None) -> list[SkillDraft]:
    """Learns from the owner's decisions about a caller, and returns the drafts made from them.

    A disabled caller teaches nothing. A caller at Observe goes to Learn first, after enough interactions. A caller at
    Learn with an open draft goes on to Propose. Drafts are withdrawn if the owner took their evidence back, or decided
    the latest such requests otherwise. `writer` is the model that sorts and writes; None takes the model of this
    process, if it has one. Do not call this in a transaction, since the model takes its time.
    """
    _go_to_learn(caller)
    if not caller.enabled:
        return []
    newest = Observation.objects.filter(caller=caller).aggregate(newest=Max("pk"))["newest"] or 0
    observations = observations_of(caller.pk)
    _withdraw_outlived(caller, observations)
    if caller.level == Level.OBSERVE:
        return []
    writer = writer or current_writer()
    made = []
    for group in alike_groups(observations, writer):
        new = _not_known(caller, group)
        if not new:
            continue
        text = write(new, writer, _complaints(observations, [one.request for one in new]))
        if (draft := _draft_create(caller, new, text)) is not None:
            made.append(draft)
    _go_to_propose(caller)
    Caller.objects.filter(pk=caller.pk, learned_up_to__lt=newest).update(learned_up_to=newest)
    return made


def _withdraw_outlived(caller: Caller, observations: Sequence[Observation]) -> None:
    """Withdraws open drafts that rest on decisions that were taken back, or that the owner decides otherwise by now.

    For the latter the last ENOUGH such requests must all be decided otherwise.
    """
    for draft in SkillDraft.objects.filter(caller=caller, state=State.OPEN).order_by("id"):
        if rests_on_reversed(draft):
            draft_withdraw(draft=draft, reason=TAKEN_BACK)
        elif _decided_otherwise(draft, observations):
            draft_withdraw(draft=draft, reason=DECIDED_OTHERWISE)


def _decided_otherwise(draft: SkillDraft, observations: Sequence[Observation]) -> bool:
    # "Not like this" has put the draft before the owner with their words, so it does not speak against the draft.
    neither = (Decision.ASK, Decision.UNLIKE)
    learned = max(draft.evidence, default=0)
    since = {one.task: one for one in observations if one.pk > learned and one.decision not in neither}
    if len(since) < ENOUGH:
        return False
    known = _requests_of([draft])
    latest = [
        one
        for one in sorted(since.values(), key=lambda one: one.pk)
        if any(alike(request, one.request) for request in known)
    ][-ENOUGH:]
    return len(latest) == ENOUGH and all(decided_alike(one) != draft.decision for one in latest)


def _go_to_learn(caller: Caller) -> None:
    """Raises a caller from Observe to Learn after LEARN_AFTER interactions, if no latest decision is a decline."""
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
    """Locks a caller until the transaction ends and reads it again: it may have changed during the model's run."""
    rows = Caller.objects.select_for_update(no_key=True)
    caller.refresh_from_db(fields=["level", "enabled", "interaction_count"], from_queryset=rows)


def _held_back(caller: Caller) -> bool:
    """Tells whether a person lowered the caller to its present level. Then only a person raises the level again."""
    last = AuditEntry.objects.filter(caller_id=caller.pk, action="caller.level").order_by("-id").first()
    if last is None or last.actor == acting.SYSTEM:
        return False
    before, _, after = last.subject.partition(" → ")
    return after == caller.level and before in Level.values and Level(before).rank > Level(after).rank


@transaction.atomic
def _climb(caller: Caller, before: Level, level: Level, reason: str) -> None:
    """Raises a caller from level `before` to `level`, unless the level changed meanwhile or a person lowered it."""
    _lock(caller)
    if caller.enabled and caller.level == before and not _held_back(caller):
        caller_set_level(caller=caller, level=level, reason=reason)


def _go_to_propose(caller: Caller) -> None:
    draft = SkillDraft.objects.filter(caller=caller, state=State.OPEN).order_by("-id").first()
    if caller.level == Level.LEARN and draft is not None:
        _climb(caller, Level.LEARN, Level.PROPOSE, f"There is a draft: {draft.name}")


def _not_known(caller: Caller, group: Sequence[Observation]) -> list[Observation]:
    """Returns the observations of a group from which a draft is to be made; [] if such requests have a draft already.

    An open or rejected draft stands for all requests that are like its requests, so they are not proposed again. An
    approved draft stands only for the requests that its skill covers, since the others still come to the owner. A
    withdrawn draft does not count.
    """
    drafts = SkillDraft.objects.filter(caller=caller, decision=decided_alike(group[0])).select_related("skill")
    known = list(drafts.filter(state__in=[State.OPEN, State.REJECTED]))
    numbers = {one.pk for one in group}
    if any(numbers & set(draft.evidence) for draft in known):
        return []
    if any(alike(request, one.request) for request in _requests_of(known) for one in group):
        return []
    for draft in drafts.filter(state=State.APPROVED):
        examples = examples_of(draft)
        group = [one for one in group if one.pk not in draft.evidence and not fits(one.request, examples)]
        # If two skills fit a request, neither is used. A second skill would end what the first one does now.
        asked = [one.request for one in group]
        if any(fits(example, asked) for example in examples):
            return []
    return list(group) if len(group) >= ENOUGH else []


def _requests_of(drafts: Iterable[SkillDraft]) -> list[str]:
    """Returns the requests of drafts: their examples, and the requests that they were learned from.

    The owner may have reworded the examples since, so both count.
    """
    examples = [example for draft in drafts for example in draft.examples]
    evidence = [number for draft in drafts for number in draft.evidence]
    asked = Observation.objects.filter(pk__in=evidence).values_list("request", flat=True)
    return list(dict.fromkeys([*examples, *asked]))


def _complaints(observations: Sequence[Observation], requests: Sequence[str]) -> list[str]:
    unlike = [one for one in observations if one.decision == Decision.UNLIKE and one.edits]
    return [one.edits for one in unlike if any(alike(one.request, request) for request in requests)]


@transaction.atomic
def _draft_create(caller: Caller, group: Sequence[Observation], text: Text) -> SkillDraft | None:
    # If two processes learn at once, the second one finds the draft of the first.
    _lock(caller)
    if caller.level == Level.OBSERVE or not caller.enabled:
        return None
    # A call that takes one of these observations back waits for the lock, and then finds the draft.
    evidence = Observation.objects.select_for_update(no_key=True).filter(pk__in=[one.pk for one in group])
    standing = list(evidence.filter(reversed_at=None).order_by("id"))
    if len(_not_known(caller, group)) < len(group) or len(standing) < len(group):
        return None
    draft = SkillDraft.objects.create(
        caller=caller,
        slug=free_slug(caller.workspace_id),
        name=text.name,
        description=text.description,
        examples=text.examples,
        instructions=text.instructions,
        tools=text.tools,
        source=text.source,
        decision=decided_alike(group[0]),
        evidence=[one.pk for one in group],
    )
    draft_changed(draft)
    audit("draft.proposed", caller=caller, subject=draft.slug, reason=f"{len(group)} requests decided alike.")
    did = "replied to" if draft.decision == Decision.REPLY else "approved"
    asked = f"You {did} {len(group)} requests like {quoted(draft.examples[0], 120)}."
    draft_announce(draft, f"{asked} {promise(draft.examples)} Handle this from now on?")
    return draft


@transaction.atomic
def not_like_this(
    *, caller: Caller, slug: str, task: uuid.UUID, request: str, text: str = "", ran_at: datetime | None = None
) -> bool:
    """Records "not like this" for a task that was done without the owner, and revokes the grant that allowed it.

    Each task is recorded once. A grant that was given after `ran_at`, the time of the run, stays. If a grant is revoked
    and the caller is at Act, the caller falls to Propose for this skill. The draft of the skill is put before the owner
    again. The owner's words `text` go into this draft, and into a draft that is open already. Returns whether a grant
    was revoked.
    """
    text = clean_text(text).strip()
    _lock(caller)
    if Observation.objects.filter(caller=caller, task=task, decision=Decision.UNLIKE, reversed_at=None).exists():
        return False
    grants = Grant.objects.filter(caller=caller, skill__slug=slug)
    guilty = grants if ran_at is None else grants.filter(created_at__lte=ran_at)
    reason = f"Not like this. {text}".strip()
    revoked = guilty.exists() and grant_revoke(caller=caller, slug=slug, keeps_evidence=True, reason=reason)
    Observation.objects.create(
        caller=caller, task=task, skill=slug, request=clean_text(request), decision=Decision.UNLIKE, edits=text
    )
    audit("review.unlike", caller=caller, subject=str(task), reason=text)
    if revoked:
        _fall_to_propose(caller)
    # Found by the skill's id, too, since the skill itself may have been deleted.
    drafts = SkillDraft.objects.filter(Q(skill__slug=slug) | Q(slug=slug), caller=caller)
    for draft in drafts.order_by("id"):
        if draft.state == State.OPEN:
            draft_add_words(draft=draft, text=text)
        elif draft.state == State.APPROVED and revoked and draft.skill_id is not None:
            draft_reopen(draft=draft, text=text)
    _go_to_propose(caller)
    return revoked


def _fall_to_propose(caller: Caller) -> None:
    """Lowers a caller from Act to Propose. The caller's other grants get a level of their own, so they stay at Act."""
    if caller.level != Level.ACT:
        return
    reason = "Something was done that was not as the owner wanted it."
    for grant in Grant.objects.select_for_update(of=("self",)).filter(caller=caller, level="").select_related("skill"):
        Grant.objects.filter(pk=grant.pk).update(level=Level.ACT)
        audit("grant.level", caller=caller, subject=f"{grant.skill.slug}: own → {Level.ACT.value}", reason=reason)
    caller_set_level(caller=caller, level=Level.PROPOSE, reason=reason)


@transaction.atomic
def observations_reverse(*, ids: Sequence[int], reason: str = "") -> int:
    """Takes decisions back for learning: nothing is learned from them any more.

    Drafts that rest on them are withdrawn, unless the skill of the draft is still granted. Returns the number of
    decisions that this call took back.
    """
    callers = set(Observation.objects.filter(pk__in=ids).values_list("caller_id", flat=True))
    reviews = reviews_lock(callers=callers)
    rows = Observation.objects.select_for_update(no_key=True, of=("self",)).select_related("caller")
    decided = list(rows.filter(pk__in=ids).order_by("id"))
    standing = [one for one in decided if one.reversed_at is None]
    Observation.objects.filter(pk__in=[one.pk for one in standing]).update(reversed_at=timezone.now())
    for one in standing:
        audit("observation.reversed", caller=one.caller, subject=str(one.task), reason=reason)
    # Decisions that an earlier call took back count, too: a grant may have kept the draft then and be gone now.
    taken_back = {one.pk for one in decided}
    drafts = SkillDraft.objects.filter(caller__in=callers, state__in=[State.OPEN, State.APPROVED])
    for draft in drafts.select_related("caller").order_by("id"):
        if taken_back & set(draft.evidence) and not _is_granted(draft):
            draft_withdraw(draft=draft, reason=reason, reviews=[one for one in reviews if one.draft_id == draft.pk])
    return len(standing)


def _is_granted(draft: SkillDraft) -> bool:
    granted = Grant.objects.filter(caller=draft.caller_id, skill=draft.skill_id)
    return draft.state == State.APPROVED and draft.skill_id is not None and granted.exists()
