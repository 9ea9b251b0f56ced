"""Where the owner is, and whether they may be told something."""

from datetime import timedelta

import pytest
import time_machine
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from volcanic.models import Presence, Session, Workspace
from volcanic.presence import PresenceStatus, idle, owner_seen, owner_turn, owner_turn_began, presence_of

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


def test_an_owner_with_a_turn_is_busy(session: Session, owner: User) -> None:
    workspace_id = session.workspace_id
    with time_machine.travel("2030-01-01T00:00:00Z", tick=False) as clock:
        with owner_turn(session.pk, timezone.now() + timedelta(seconds=600)):
            assert presence_of(workspace_id) is PresenceStatus.BUSY
            clock.shift(300)
            assert not idle(workspace_id)
        assert presence_of(workspace_id) is PresenceStatus.AWAY
        owner_turn_began(session.pk, timezone.now() + timedelta(seconds=60))  # and its worker dies
        clock.shift(60)
        assert presence_of(workspace_id) is PresenceStatus.AWAY
        assert idle(workspace_id)


def test_a_callers_session_makes_nobody_busy(session: Session) -> None:
    Session.objects.filter(pk=session.pk).update(kind="inbound")
    with owner_turn(session.pk, timezone.now() + timedelta(seconds=600)):
        assert presence_of(session.workspace_id) is PresenceStatus.AWAY


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
