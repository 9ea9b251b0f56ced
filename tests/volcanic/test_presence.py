"""Presence: available, busy and absent owners, and the times at which a notice may be sent."""

from datetime import timedelta

import pytest
import time_machine
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from volcanic.models import Presence, Prompt, Session, Workspace
from volcanic.presence import PresenceStatus, idle, owner_seen, presence_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def session(workspace: Workspace) -> Session:
    """A conversation of the owner's."""
    return Session.objects.create(workspace=workspace, kind="owner", scope="main")


def test_an_owner_comes_and_goes(workspace: Workspace, other_workspace: Workspace, owner: User) -> None:
    with time_machine.travel("2030-01-01T00:00:00Z", tick=False) as clock:
        assert presence_of(workspace.pk) is PresenceStatus.AWAY
        assert idle(workspace.pk)
        assert owner_seen(owner.pk)
        assert presence_of(workspace.pk) is PresenceStatus.AVAILABLE
        assert not idle(workspace.pk)
        clock.shift(119)
        assert not idle(workspace.pk)
        clock.shift(1)
        assert idle(workspace.pk)
        clock.shift(179)
        assert presence_of(workspace.pk) is PresenceStatus.AVAILABLE
        clock.shift(1)
        assert presence_of(workspace.pk) is PresenceStatus.AWAY
        assert presence_of(other_workspace.pk) is PresenceStatus.AWAY


def _running(session: Session, *, seconds: float) -> Prompt:
    """A prompt that a worker runs, under a lease of these seconds."""
    lease = timezone.now() + timedelta(seconds=seconds)
    return Prompt.objects.create(session=session, origin="chat", text="x", state="running", lease_expires_at=lease)


def test_an_owner_whose_prompt_runs_is_busy(session: Session, other_workspace: Workspace) -> None:
    workspace_id = session.workspace_id
    with time_machine.travel("2030-01-01T00:00:00Z", tick=False) as clock:
        prompt = _running(session, seconds=600)
        assert presence_of(workspace_id) is PresenceStatus.BUSY
        assert presence_of(other_workspace.pk) is PresenceStatus.AWAY
        clock.shift(300)
        assert not idle(workspace_id)
        Prompt.objects.filter(pk=prompt.pk).update(state="completed", lease_expires_at=None)
        assert presence_of(workspace_id) is PresenceStatus.AWAY


def test_an_owner_whose_worker_died_is_not_busy_for_ever(session: Session) -> None:
    """When the lease has passed, whether the sweep came by or not."""
    with time_machine.travel("2030-01-01T00:00:00Z", tick=False) as clock:
        _running(session, seconds=60)
        clock.shift(59)
        assert presence_of(session.workspace_id) is PresenceStatus.BUSY
        clock.shift(1)
        assert presence_of(session.workspace_id) is PresenceStatus.AWAY
        assert idle(session.workspace_id)


@pytest.mark.parametrize("state", ["queued", "completed", "input_required", "failed", "stopped"])
def test_a_prompt_that_does_not_run_makes_nobody_busy(session: Session, state: str) -> None:
    Prompt.objects.create(session=session, origin="chat", text="x", state=state)
    assert presence_of(session.workspace_id) is PresenceStatus.AWAY
    assert idle(session.workspace_id)


def test_activity_is_written_down_now_and_then(owner: User) -> None:
    with time_machine.travel("2030-01-01T00:00:00Z", tick=False) as clock:
        assert [owner_seen(owner.pk), owner_seen(owner.pk)] == [True, False]
        clock.shift(9)
        assert not owner_seen(owner.pk)
        clock.shift(1)
        assert owner_seen(owner.pk)
        assert Presence.objects.get().last_active_at == timezone.now()
    assert not owner_seen(0)  # deleted meanwhile


def test_each_is_one_statement(session: Session, owner: User) -> None:
    for call in (
        lambda: owner_seen(owner.pk),
        lambda: presence_of(session.workspace_id),
        lambda: idle(session.workspace_id),
    ):
        with CaptureQueriesContext(connection) as queries:
            call()
        assert len(queries) == 1
