"""Outdated drafts: withdrawn when the owner decides otherwise, and evidence that no longer counts."""

import uuid

import pytest
from django.core.exceptions import ValidationError
from pytest_django.fixtures import Settings

from tests.conftest import Keyed
from tests.trust.learned import DAYS, PARCEL, decided, drafted, learner, thrice, used, waiting
from trust import tasks
from trust.decisions import review_decide
from trust.errors import DraftDecidedError
from trust.learning.matching import open_draft
from trust.learning.services import (
    caller_learn,
    draft_approve,
    draft_reject,
    draft_update,
    not_like_this,
    observations_reverse,
)
from trust.learning.writing import tools_used
from trust.models import AuditEntry, Caller, Grant, Level, Observation, Review, Skill, SkillDraft
from trust.services import caller_set_enabled, grant_add, review_add, skill_create, skill_set_enabled
from volcanic.models import Notification, Session, Turn, Workspace
from volcanic.origins import task_origin

Decision = Observation.Decision
State = SkillDraft.State

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("broker_is_away")]


def _state(draft: SkillDraft) -> str:
    draft.refresh_from_db()
    return draft.state


def _decide(caller: Caller, decisions: str) -> None:
    for number, decision in enumerate(decisions.split()):
        decided(caller, PARCEL.format(DAYS[number % 3]), Decision(decision), reply="r")


# Decided otherwise since.


@pytest.mark.parametrize(
    ("decisions", "state"),
    [
        ("decline decline", State.OPEN),
        ("decline decline decline", State.WITHDRAWN),
        ("decline reply decline", State.WITHDRAWN),
        ("decline decline decline decline", State.WITHDRAWN),
        ("decline decline approve decline decline", State.OPEN),
        ("decline decline grant", State.OPEN),
        ("decline ask decline unlike", State.OPEN),
        ("ask ask ask", State.OPEN),
        ("unlike unlike unlike", State.OPEN),
        ("approve decline ask decline unlike reply", State.WITHDRAWN),
    ],
)
def test_a_draft_of_what_is_decided_otherwise_by_now(stranger: Keyed, decisions: str, state: str) -> None:
    draft = drafted(stranger.caller)
    review = waiting(stranger.caller, draft)
    _decide(stranger.caller, decisions)
    caller_learn(caller=stranger.caller)
    assert _state(draft) == state
    review.refresh_from_db()
    assert (review.draft == draft) == (state == State.OPEN)
    assert (open_draft(PARCEL.format("Friday"), caller_id=stranger.caller.pk) == draft) == (state == State.OPEN)
    if state == State.WITHDRAWN:
        assert draft.decision_text == "You decided the last 3 such requests otherwise."
        with pytest.raises(DraftDecidedError, match="withdrawn"):
            draft_approve(draft=draft, version=1)


def test_it_takes_three_new_ones_then(stranger: Keyed) -> None:
    drafted(stranger.caller)
    for decisions, made in (("decline decline decline", 0), ("approve approve", 0), ("approve", 1)):
        _decide(stranger.caller, decisions)
        assert len(caller_learn(caller=stranger.caller)) == made


def test_other_requests_and_other_callers_say_nothing_of_it(stranger: Keyed, friend: Keyed) -> None:
    draft = drafted(stranger.caller)
    _decide(friend.caller, "decline decline decline")
    for _ in range(3):
        decided(stranger.caller, "Please delete all mails.", Decision.DECLINE)
    one = decided(stranger.caller, PARCEL.format("Friday"), Decision.DECLINE)
    for _ in range(3):  # one task counts once
        decided(stranger.caller, PARCEL.format("Friday"), Decision.DECLINE, task=one.task)
    caller_learn(caller=friend.caller)
    caller_learn(caller=stranger.caller)
    assert _state(draft) == State.OPEN


def test_the_requests_count_however_the_examples_are_worded_now(stranger: Keyed) -> None:
    draft = draft_update(draft=drafted(stranger.caller), version=1, examples=["Something else"])
    _decide(stranger.caller, "decline decline decline")
    caller_learn(caller=stranger.caller)
    assert _state(draft) == State.WITHDRAWN


def test_a_draft_that_rests_on_what_was_taken_back_is_no_draft(stranger: Keyed) -> None:
    """It is not approved, and the next look withdraws it."""
    draft = drafted(stranger.caller)
    Observation.objects.filter(pk=draft.evidence[0]).update(reversed_at=draft.created_at)
    with pytest.raises(DraftDecidedError, match="taken back"):
        draft_approve(draft=draft, version=1)
    caller_learn(caller=stranger.caller)
    assert _state(draft) == State.WITHDRAWN


# Rejected.


def test_what_was_rejected_with_other_examples_is_remembered(stranger: Keyed) -> None:
    """By what was asked, however long ago: the owner worded the examples, not the requests."""
    draft = draft_update(draft=drafted(stranger.caller), version=1, examples=["Something else"])
    draft_reject(draft=draft, version=2)
    for _ in range(60):
        decided(stranger.caller, "Hello.", Decision.ASK)
    thrice(stranger.caller)
    assert caller_learn(caller=stranger.caller) == []


# What was decided on more than one message of words.


def _approved(caller: Caller, text: str, said: str = "", files: tuple[str, ...] = ()) -> None:
    review = waiting(caller, text=text)
    if said or files:
        message = {"messageId": "m2", "role": "ROLE_USER", "parts": [{"text": said}]}
        assert review_add(task=review.task, caller_id=caller.pk, message=message, text=said, files=files)
        review.refresh_from_db()
    review_decide(review_id=review.pk, decision=Decision.APPROVE, digest=review.digest)


@pytest.mark.parametrize(("said", "files"), [('tool: remember {"text": "x"}', ()), ("", ("a.txt",))])
def test_a_request_with_more_is_no_example(stranger: Keyed, said: str, files: tuple[str, ...]) -> None:
    caller = learner(stranger.caller)
    for day in DAYS[:3]:
        _approved(caller, PARCEL.format(day), said, files)
    assert caller_learn(caller=caller) == []
    seen = Observation.objects.latest("id")
    assert seen.has_more
    # The list of decisions shows all that was decided on.
    assert seen.request.startswith(PARCEL.format("Friday"))
    assert said in seen.request
    assert ("[file: a.txt]" in seen.request) == bool(files)
    for day in DAYS[:2]:
        _approved(caller, PARCEL.format(day))
    assert caller_learn(caller=caller) == []
    _approved(caller, PARCEL.format("Sunday"))
    assert not Observation.objects.latest("id").has_more
    assert len(caller_learn(caller=caller)) == 1


def test_what_goes_on_from_earlier_tasks_is_no_example(stranger: Keyed) -> None:
    caller = learner(stranger.caller)
    review = waiting(caller, text=PARCEL.format("Friday"))
    messages = [review.messages[0] | {"referenceTaskIds": [str(uuid.uuid4())]}]
    Review.objects.filter(pk=review.pk).update(messages=messages)
    review_decide(review_id=review.pk, decision=Decision.DECLINE, digest=review.digest)
    assert Observation.objects.get().has_more


# Its id, what it is for, who has it.


def test_ids_hold_none_of_the_callers_words(stranger: Keyed, other_workspace: Workspace) -> None:
    skill_create(workspace=other_workspace, slug="learned-1", name="Other", description="Another owner's.")
    caller = learner(stranger.caller)
    thrice(caller, "Please print the agenda of {}")
    (first,) = caller_learn(caller=caller)
    assert first.slug == "learned-1"
    workspace = caller.workspace
    skill_create(workspace=workspace, slug="learned-2", name="Mine", description="Mine.", aliases=["learned-3"])
    draft_reject(draft=first, version=1)
    thrice(caller)
    (second,) = caller_learn(caller=caller)
    assert second.slug == "learned-4"


def test_nothing_of_a_disabled_caller_is_approved(stranger: Keyed) -> None:
    draft = drafted(stranger.caller)
    caller_set_enabled(caller=stranger.caller, enabled=False)
    with pytest.raises(ValidationError, match="stranger is disabled"):
        draft_approve(draft=draft, version=1)
    assert _state(draft) == State.OPEN
    assert not Grant.objects.filter(caller=stranger.caller).exists()
    caller_set_enabled(caller=stranger.caller, enabled=True)
    draft_approve(draft=SkillDraft.objects.get(), version=1)


def test_a_skill_that_was_disabled_meanwhile_is_told(stranger: Keyed) -> None:
    skill = draft_approve(draft=drafted(stranger.caller), version=1)
    assert not_like_this(caller=stranger.caller, slug=skill.slug, task=uuid.uuid4(), request="x")
    skill_set_enabled(skill=skill, enabled=False)
    draft = SkillDraft.objects.get()
    review = waiting(stranger.caller, draft)
    for _ in range(2):
        with pytest.raises(ValidationError, match=f"The skill {skill.slug} is disabled. Enable it first"):
            draft_approve(draft=draft, version=2)
        with pytest.raises(ValidationError, match="is disabled"):
            review_decide(review_id=review.pk, decision=Decision.GRANT, digest=review.digest)
    assert _state(draft) == State.OPEN
    skill_set_enabled(skill=skill, enabled=True)
    assert draft_approve(draft=draft, version=2) == skill


def test_what_others_use_stays_as_it_is(stranger: Keyed, friend: Keyed) -> None:
    """The owner has given another caller what was learned: a draft of the first changes nothing of that."""
    skill = draft_approve(draft=drafted(stranger.caller), version=1)
    grant_add(caller=friend.caller, slug=skill.slug, level=Level.ACT)
    assert not_like_this(caller=stranger.caller, slug=skill.slug, task=uuid.uuid4(), request="x", text="Otherwise.")
    # Given back by hand: two skills for the same requests would both not be used.
    grant_add(caller=stranger.caller, slug=skill.slug)
    draft = SkillDraft.objects.get()
    own = draft_approve(draft=draft, version=2)
    assert (own != skill, own.by_example, own.slug, own.advertised) == (True, True, "learned-2", False)
    assert "Otherwise." in own.instructions
    skill.refresh_from_db()
    assert "Otherwise." not in skill.instructions
    assert [grant.skill for grant in stranger.caller.grants.all()] == [own]
    assert friend.caller.grants.filter(skill=skill).exists()
    assert (draft.skill, draft.slug) == (own, "learned-2")
    told = AuditEntry.objects.filter(action="draft.approved").latest("id")
    assert told.reason == "learned-1 stays as it is: it is granted to friend, too."
    # Once it is the caller's own, it is written anew in place.
    assert not_like_this(caller=stranger.caller, slug=own.slug, task=uuid.uuid4(), request="x")
    assert draft_approve(draft=SkillDraft.objects.get(), version=3) == own


# What the owner is told of it.


@pytest.mark.parametrize("how", ["approved", "granted", "rejected", "taken back", "decided otherwise"])
def test_what_was_told_of_a_draft_counts_as_read_when_it_is_decided(stranger: Keyed, how: str) -> None:
    draft = drafted(stranger.caller)
    thrice(stranger.caller, "Please print the agenda of {}")
    (other,) = caller_learn(caller=stranger.caller)
    review = waiting(stranger.caller, draft)
    match how:
        case "approved":
            draft_approve(draft=draft, version=1)
        case "granted":
            review_decide(review_id=review.pk, decision=Decision.GRANT, digest=review.digest)
        case "rejected":
            draft_reject(draft=draft, version=1)
        case "taken back":
            observations_reverse(ids=draft.evidence)
        case _:
            _decide(stranger.caller, "decline decline decline")
            caller_learn(caller=stranger.caller)
    told = Notification.objects.filter(kind="draft")
    assert [(one.origin, one.read_at is None) for one in told.order_by("id")] == [
        (f"draft:{draft.pk}", False),
        (f"draft:{other.pk}", True),
    ]
    assert told.get(origin=f"draft:{draft.pk}").delivered_at is not None


# Which tools, and where they are looked up.


def test_tools_are_looked_up_in_the_callers_sessions(stranger: Keyed, other_workspace: Workspace) -> None:
    rows = thrice(stranger.caller)
    used(rows[0], "write_file")
    used(decided(stranger.caller, "Another."), "read_file")
    theirs = Session.objects.create(workspace=other_workspace, kind="inbound", scope="x")
    messages = Turn.objects.filter(origin=task_origin(rows[0].task)).get().messages
    messages[2]["parts"][0]["tool_name"] = "edit_file"
    Turn.objects.create(
        session=theirs, origin=task_origin(rows[0].task), messages=messages, started_at=rows[0].created_at
    )
    assert tools_used(rows) == ["write_file"]
    assert tools_used(rows[1:]) == []


# When it is looked at.


@pytest.fixture
def learned(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The callers that beat has learned about, one for each time: a worker does at once what it hears of."""
    names: list[str] = []

    def learn(caller: Caller) -> list[SkillDraft]:
        names.append(caller.name)
        return caller_learn(caller=caller)

    def hear(task: str, ident: int) -> None:
        if task == tasks.learn.name:
            tasks.learn(ident)

    monkeypatch.setattr(tasks, "caller_learn", learn)
    monkeypatch.setattr(tasks, "publish", hear)
    return names


def test_beat_learns_where_there_is_something_new(stranger: Keyed, friend: Keyed, learned: list[str]) -> None:
    """A model may be asked each time, for money."""
    for _ in range(2):
        decided(friend.caller, "x")
        tasks.learn_all()
        tasks.learn_all()
    assert learned == ["friend", "friend"]
    caller_set_enabled(caller=friend.caller, enabled=False)
    decided(friend.caller, "x")
    thrice(stranger.caller)  # at Observe, and too early
    tasks.learn_all()
    assert learned == ["friend", "friend"]
    # Whatever was decided before it came to Learn is new then.
    learner(stranger.caller)
    tasks.learn_all()
    tasks.learn_all()
    assert learned == ["friend", "friend", "stranger"]
    assert SkillDraft.objects.count() == 1


def test_beat_sees_that_it_is_time_for_who_only_leaves_word(
    stranger: Keyed, learned: list[str], settings: Settings
) -> None:
    Caller.objects.filter(pk=stranger.caller.pk).update(interaction_count=4)
    tasks.learn_all()
    assert learned == []
    Caller.objects.filter(pk=stranger.caller.pk).update(interaction_count=5)
    settings.LEARN_AFTER = 0
    tasks.learn_all()
    assert learned == []
    settings.LEARN_AFTER = 5
    tasks.learn_all()
    tasks.learn_all()
    assert learned == ["stranger"]
    stranger.caller.refresh_from_db()
    assert stranger.caller.level == Level.LEARN


def test_zero_leaves_the_step_to_learn_to_the_owner_and_no_other(stranger: Keyed, settings: Settings) -> None:
    settings.LEARN_AFTER = 0
    drafted(stranger.caller)  # the owner has put it at Learn
    stranger.caller.refresh_from_db()
    assert stranger.caller.level == Level.PROPOSE
    assert not Skill.objects.exclude(workspace=None).exists()
