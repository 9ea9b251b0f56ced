"""“Not like this” in learning: the tasks that it applies to, and its effects on drafts and skills."""

import uuid
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone

from a2a_server.http.cards import LEARNED, extended_card, public_card
from a2a_server.models import Task, TaskState
from a2a_server.services.unlike import granted_skill, task_unlike, unlike_told
from tests.conftest import Keyed
from tests.trust.learned import PARCEL, drafted, learner, thrice, waiting
from trust.decisions import review_decide
from trust.errors import ReviewChangedError
from trust.learning.services import caller_learn, draft_approve, not_like_this, observations_reverse
from trust.learning.writing import NOT_LIKE_THIS
from trust.models import CHAT, AuditEntry, Caller, Grant, Level, Observation, Skill, SkillDraft
from trust.selectors import AuthenticatedCaller
from trust.services import caller_set_level, grant_add, grant_revoke, skill_delete, skill_update
from trust.toolbox import _listed
from volcanic.acting import acting_as
from volcanic.models import Session, Turn
from volcanic.origins import task_origin

Decision = Observation.Decision
State = SkillDraft.State

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("broker_is_away")]


def ran(caller: Caller, skill: str, state: TaskState = TaskState.COMPLETED, **values: Any) -> Task:
    """Returns a task that was run, as its worker leaves it."""
    session = Session.objects.create(workspace=caller.workspace, kind="inbound", scope=str(uuid.uuid4()))
    words = {"messageId": "m1", "role": "ROLE_USER", "parts": [{"text": PARCEL.format("Sunday")}]}
    given = {"context_id": "c", "history": [words], "attempt": 1, "skill": skill, "seq": 1, **values}
    return Task.objects.create(caller=caller, session=session, state=state, **given)


def approved(caller: Caller) -> Skill:
    return draft_approve(draft=drafted(caller), version=1)


def test_the_second_of_two_that_ran_at_once(stranger: Keyed) -> None:
    caller = stranger.caller
    skill = approved(caller)
    first, second, third = (ran(caller, skill.slug) for _ in range(3))
    assert task_unlike(task=first, text="Append.") == skill.slug
    assert unlike_told(first, skill.slug) == f"{skill.slug} is no longer granted to stranger."
    assert granted_skill(second) == skill.slug
    assert task_unlike(task=second, text="In one line.") == skill.slug
    draft = SkillDraft.objects.get()
    for words in ("Append.", "In one line."):
        assert f"Not like this, said your owner of what was done: {words}" in draft.instructions
    seen = Observation.objects.filter(decision="unlike").order_by("id")
    assert [(one.task, one.edits, one.request) for one in seen] == [
        (first.pk, "Append.", PARCEL.format("Sunday")),
        (second.pk, "In one line.", PARCEL.format("Sunday")),
    ]
    # Each once.
    assert task_unlike(task=first, text="Again.") == ""
    # After the skill is gone, too.
    skill_delete(skill=Skill.objects.get(pk=skill.pk))
    assert task_unlike(task=third, text="No more.") == skill.slug
    assert "No more." in SkillDraft.objects.get(state=State.OPEN).instructions


def test_one_of_before_the_grant_was_given_anew(stranger: Keyed) -> None:
    caller = stranger.caller
    skill = approved(caller)
    first, old = ran(caller, skill.slug), ran(caller, skill.slug)
    # It ended only now; when it ran, its transcript says.
    late = ran(caller, skill.slug, status_at=timezone.now() + timedelta(hours=1))
    Turn.objects.create(session=late.session, origin=task_origin(late.pk), started_at=timezone.now(), messages=[])
    assert task_unlike(task=first)
    draft_approve(draft=SkillDraft.objects.get(), version=2)
    for task in (old, late):
        assert task_unlike(task=task, text="Append.") == skill.slug
        assert unlike_told(task, skill.slug) == f"Noted. stranger keeps {skill.slug}: you have granted it again since."
        assert Grant.objects.filter(caller=caller, skill=skill).exists()
    assert Observation.objects.filter(edits="Append.").count() == 2
    new = ran(caller, skill.slug)
    assert task_unlike(task=new)
    assert not Grant.objects.filter(caller=caller).exists()


def test_what_was_not_done_without_the_owner(stranger: Keyed) -> None:
    caller = stranger.caller
    # None of these ran on a grant: there never was one.
    assert granted_skill(ran(caller, "")) == ""
    grant_add(caller=caller, slug=CHAT)
    done = ran(caller, "")
    assert granted_skill(done) == CHAT
    read = ran(caller, "", TaskState.CANCELED, repeatable=True)
    reviewed = waiting(caller)
    Task.objects.filter(pk=reviewed.task).update(state=TaskState.COMPLETED, attempt=2)
    for task in (
        read,
        Task.objects.get(pk=reviewed.task),
        ran(caller, "", TaskState.REJECTED),
        ran(caller, "", attempt=0),
        ran(caller, "", TaskState.WORKING, lease_expires_at=timezone.now()),
        ran(caller, "learned-99"),
    ):
        assert granted_skill(task) == ""
        assert task_unlike(task=task, text="x") == ""
    assert Grant.objects.filter(caller=caller).exists()
    assert not Observation.objects.exists()
    # Revoked by hand since; another agent's grant says nothing.
    grant_revoke(caller=caller, slug=CHAT)
    assert granted_skill(done) == CHAT


def test_the_words_come_into_the_next_draft_when_there_is_none(stranger: Keyed) -> None:
    caller = stranger.caller
    skill = approved(caller)
    task = ran(caller, skill.slug)
    grant_revoke(caller=caller, slug=skill.slug)
    assert SkillDraft.objects.get().state == State.WITHDRAWN
    assert task_unlike(task=task, text="Append, don't replace.") == skill.slug
    assert SkillDraft.objects.get().state == State.WITHDRAWN
    thrice(caller)
    (draft,) = caller_learn(caller=caller)
    assert "Not like this, said your owner of what was done: Append, don't replace." in draft.instructions


# What it does to the caller's level, the grant and the draft.


def level_of(caller: Caller) -> Level:
    return Level(Caller.objects.get(pk=caller.pk).level)


def unlike(caller: Caller, slug: str, text: str = "Never on a Sunday.", ran_at: datetime | None = None) -> bool:
    request = PARCEL.format("Sunday")
    with acting_as("owner olivia"):
        return not_like_this(caller=caller, slug=slug, task=uuid.uuid4(), request=request, text=text, ran_at=ran_at)


def test_not_like_this_of_a_caller_at_act(friend: Keyed) -> None:
    """It falls to Propose for that skill; what else it was granted it goes on doing."""
    skill = draft_approve(draft=drafted(friend.caller), version=1)
    learner(friend.caller, Level.ACT)
    assert unlike(friend.caller, skill.slug)
    assert level_of(friend.caller) is Level.PROPOSE
    (grant,) = friend.caller.grants.select_related("skill")
    assert (grant.skill.slug, grant.level) == (CHAT, Level.ACT)
    told = AuditEntry.objects.filter(caller_id=friend.caller.pk, actor="owner olivia").order_by("id")
    assert [(row.action, row.subject) for row in told if row.action != "review.unlike"] == [
        ("grant.revoked", f"{skill.slug} (act)"),
        ("grant.level", "chat: own → act"),
        ("caller.level", "act → propose"),
        ("draft.reopened", skill.slug),
    ]
    seen = Observation.objects.get(decision=Decision.UNLIKE)
    assert (seen.skill, seen.edits) == (skill.slug, "Never on a Sunday.")


@pytest.mark.parametrize("level", [Level.OBSERVE, Level.LEARN, Level.PROPOSE])
def test_not_like_this_raises_nobody(stranger: Keyed, level: Level) -> None:
    skill = draft_approve(draft=drafted(stranger.caller), version=1)
    with acting_as("owner olivia"):
        caller_set_level(caller=stranger.caller, level=level)
    assert unlike(stranger.caller, skill.slug)
    assert level_of(stranger.caller) is level
    assert not Grant.objects.filter(caller=stranger.caller).exists()


def test_words_are_added_to_an_open_draft(stranger: Keyed) -> None:
    """What shows the draft without them counts no longer."""
    skill = approved(stranger.caller)
    assert unlike(stranger.caller, skill.slug)
    draft = SkillDraft.objects.get()
    review = waiting(stranger.caller, draft)
    assert not unlike(stranger.caller, skill.slug, "Nor\nat night.")
    assert not unlike(stranger.caller, skill.slug, "")
    draft.refresh_from_db()
    assert (draft.state, draft.version, draft.previewed_at) == ("open", 3, None)
    lines = [f"{NOT_LIKE_THIS} {words}" for words in ("Nor at night.", "Never on a Sunday.")]
    assert draft.instructions.splitlines()[:2] == lines
    with pytest.raises(ReviewChangedError):
        review_decide(review_id=review.pk, decision=Decision.GRANT, digest=review.digest)


def test_words_do_not_grow_without_limit(stranger: Keyed) -> None:
    """The latest are kept, in short: the draft can be approved again, however often something was not as wanted."""
    skill = approved(stranger.caller)
    own = "My own words. " * 1300
    assert skill_update(skill=skill, instructions=own[:18_000])
    for number in range(15):
        unlike(stranger.caller, skill.slug, f"No. {number}, " + "never do that again. " * 90)
    draft = SkillDraft.objects.get()
    told = [line for line in draft.instructions.splitlines() if line.startswith(NOT_LIKE_THIS)]
    assert [line.removeprefix(NOT_LIKE_THIS)[:9] for line in told] == [" No. 14, ", " No. 13, ", " No. 12, "]
    assert all(len(line) < 600 for line in told)
    assert draft.instructions.endswith(own[:18_000].rstrip())
    assert draft_approve(draft=draft, version=draft.version) == skill
    # All of them are kept where decisions are.
    assert Observation.objects.filter(decision=Decision.UNLIKE, edits__contains="again. never").count() == 15


def test_what_rests_on_decisions_that_were_taken_back_is_not_reopened(stranger: Keyed) -> None:
    draft = drafted(stranger.caller)
    skill = draft_approve(draft=draft, version=1)
    review = waiting(stranger.caller, draft)
    observations_reverse(ids=draft.evidence)
    draft.refresh_from_db()
    assert draft.state == State.APPROVED  # the grant stands
    assert unlike(stranger.caller, skill.slug)
    draft.refresh_from_db()
    review.refresh_from_db()
    assert (draft.state, draft.decision_text, review.draft) == (
        State.WITHDRAWN,
        "A decision that it rested on was taken back.",
        None,
    )
    assert caller_learn(caller=stranger.caller) == []


def test_a_reopened_draft_is_the_skill_as_the_owner_has_it_now(stranger: Keyed) -> None:
    """And a review that showed the draft before doesn't grant it as it is now."""
    draft = drafted(stranger.caller)
    review = waiting(stranger.caller, draft)
    skill = draft_approve(draft=draft, version=1)
    skill_update(skill=skill, instructions="My own words.", tools=[])
    assert unlike(stranger.caller, skill.slug, "")
    draft.refresh_from_db()
    assert (draft.instructions, draft.tools, draft.version) == ("My own words.", [], 2)
    with pytest.raises(ReviewChangedError, match="changed since"):
        review_decide(review_id=review.pk, decision=Decision.GRANT, digest=review.digest)
    again = draft_approve(draft=draft, version=2)
    assert (again.pk, again.instructions) == (skill.pk, "My own words.")
    assert Grant.objects.get(caller=stranger.caller).level == Level.ACT


def test_not_like_this_of_plain_chat(friend: Keyed) -> None:
    learner(friend.caller, Level.ACT)
    grant_add(caller=friend.caller, slug="query-availability")
    assert unlike(friend.caller, CHAT)
    assert [(grant.skill.slug, grant.level) for grant in friend.caller.grants.all()] == [("query-availability", "act")]


# What other callers see of what was learned from one.


def _card(caller: Caller) -> dict[str, Any]:
    card = extended_card(caller=AuthenticatedCaller(caller.pk, caller.name, caller.workspace_id, None, False))
    return {skill.id: skill for skill in card.skills}


def test_a_learned_skill_shows_its_callers_words_to_that_caller_alone(stranger: Keyed, second_friend: Keyed) -> None:
    skill = approved(stranger.caller)
    grant_add(caller=second_friend.caller, slug=skill.slug)
    own = _card(stranger.caller)[skill.slug]
    assert PARCEL.format("Friday") in own.examples
    assert "Please note" in own.name
    theirs = _card(second_friend.caller)[skill.slug]
    assert (theirs.name, theirs.description, list(theirs.examples)) == (skill.slug, LEARNED, [])
    for text in ("parcel", "stranger"):
        assert text not in str(theirs)
    # Nor to anybody, should the owner advertise it.
    Skill.objects.filter(pk=skill.pk).update(advertised=True)
    assert "parcel" not in str(public_card())
    # Nor to the assistant while it reads another's request.
    listed = _listed(stranger.caller.workspace_id).splitlines()
    assert f"- {skill.slug}" in listed
    assert "parcel" not in str(listed)


def test_two_that_taught_the_same_each_see_their_own(stranger: Keyed, second_friend: Keyed) -> None:
    first = approved(stranger.caller)
    other = approved(second_friend.caller)
    assert first.slug != other.slug
    for caller, skill in ((stranger.caller, first), (second_friend.caller, other)):
        assert list(_card(caller)[skill.slug].examples) == skill.examples
