"""Fixtures of the A2A server's tests: callers' API clients, connections whose wire is recorded, stored tasks."""

import uuid
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import httpx
import pytest
from django.utils import timezone
from syrupy.assertion import SnapshotAssertion

from a2a_server.models import (
    Artifact,
    InboundFile,
    PushConfig,
    PushDelivery,
    ReceivedMessage,
    Task,
    TaskEvent,
)
from tests.a2a_server.stored import MakeTask, folder_of
from tests.conftest import Keyed
from tests.product import Api, Product
from tests.receiver import Receiver
from tests.recording import Wire, WireFile
from volcanic.models import Session, Turn


@pytest.fixture
def strange(api: Api, product: Product, stranger: Keyed) -> Iterator[Api]:
    """Gives the product's API for the caller `stranger`. The workspace has a folder, which approved runs need."""
    (product.folder / "workspaces" / "main").mkdir(parents=True, exist_ok=True)
    with product.api(stranger.key) as client:
        yield client


@pytest.fixture
def snapshot(snapshot: SnapshotAssertion) -> SnapshotAssertion:
    """Gives the test's file, as JSON."""
    return snapshot.use_extension(WireFile)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """Gives a webhook that takes everything."""
    with Receiver() as receiver:
        yield receiver


@pytest.fixture
def wire(api: Api, receiver: Receiver) -> Wire:
    """Gives the friend's connection."""
    return Wire(api.http, receiver=receiver.url)


@pytest.fixture
def strange_wire(strange: Api) -> Wire:
    """Gives the stranger's connection."""
    return Wire(strange.http)


@pytest.fixture
def nobodys_wire(api: Api, product: Product) -> Iterator[Wire]:
    """Gives a connection without a key."""
    with httpx.Client(base_url=product.url, timeout=30) as http:
        yield Wire(http)


@pytest.fixture
def make_task(friend: Keyed) -> MakeTask:
    """Gives a function that makes a task of the friend's, `days` old, with a row of each table that a task has."""

    def make(days: float = 100, state: str = "completed", session: Session | None = None, **members: Any) -> Task:
        at = timezone.now() - timedelta(days=days)
        if session is None:
            session = Session.objects.create(
                workspace=friend.caller.workspace, kind="inbound", scope=uuid.uuid4().hex, last_active_at=at
            )
        lease = {"lease_expires_at": timezone.now()} if state == "working" else {}
        task = Task.objects.create(
            caller=friend.caller, session=session, context_id="c", state=state, status_at=at, **lease, **members
        )
        TaskEvent.objects.create(task=task, seq=1, payload={})
        Artifact.objects.create(task=task, artifact_id="response", payload={"parts": []})
        config = PushConfig.objects.create(task=task, config_id="p", url="https://example.com", token="secret")
        PushDelivery.objects.create(config=config, seq=1)
        ReceivedMessage.objects.create(caller=friend.caller, digest=uuid.uuid4().hex, task=task)
        Turn.objects.create(session=session, origin=f"task:{task.pk}", prompt="p", state="completed", started_at=at)
        folder = folder_of(task)
        folder.mkdir(parents=True)
        (folder / "a.txt").write_text("a")
        path = f"inbox/{friend.caller.name}/{task.pk}/a.txt"
        InboundFile.objects.create(task=task, position=0, path=path, size=1)
        return task

    return make
