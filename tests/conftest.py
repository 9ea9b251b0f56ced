"""Fixtures for the whole suite: a fixed cast, and the product running for real."""

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from asgiref.sync import SyncToAsync
from django.conf import settings as django_settings
from django.contrib.auth.models import User
from django.core.management.base import CommandError
from django.core.management.commands.flush import Command as FlushCommand
from django.db import connection
from kombu.exceptions import OperationalError
from pytest_django.fixtures import Settings

from tests.product import Api, Product
from trust.models import CHAT, Caller, Level
from trust.services import caller_create
from volcanic import db
from volcanic.models import Workspace
from volcanic.services import workspace_create

FLUSHES = 5


@pytest.fixture(autouse=True)
def _workspaces_in_tmp(tmp_path: Path, settings: Settings) -> None:
    settings.WORKSPACES_DIR = str(tmp_path / "workspaces")


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None) -> Iterator[None]:
    """Before the database is dropped, its connections in the database threads are closed."""
    yield
    barrier = threading.Barrier(django_settings.DB_THREADS)

    def close() -> None:
        barrier.wait(10)
        connection.close()

    futures = [db._executor().submit(close) for _ in range(django_settings.DB_THREADS)]
    futures.append(SyncToAsync.single_thread_executor.submit(lambda: connection.close()))
    for future in futures:
        future.result()


@pytest.fixture(scope="session", autouse=True)
def _patient_flush() -> None:
    """Emptying the database takes all tables at once: a worker that is still at something with two of them would lock
    it out, and PostgreSQL then ends one of the two. It is not to be the flush that stays ended."""
    flush = FlushCommand.handle

    def handle(self: FlushCommand, **options: object) -> None:
        for _ in range(FLUSHES):
            try:
                return flush(self, **options)
            except CommandError as error:
                if "deadlock" not in str(error.__cause__):
                    raise
        return flush(self, **options)

    FlushCommand.handle = handle  # type: ignore[method-assign]


@dataclass(frozen=True)
class Keyed:
    """A caller and its key."""

    caller: Caller
    key: str


@pytest.fixture
def owner(db: None) -> User:
    """The owner of `workspace`."""
    return User.objects.create_user("olivia", password="olivia-password", is_staff=True)


@pytest.fixture
def other_owner(db: None) -> User:
    """The owner of `other_workspace`."""
    return User.objects.create_user("oscar", password="oscar-password", is_staff=True)


@pytest.fixture
def superuser(db: None) -> User:
    """May see everything."""
    return User.objects.create_superuser("root", password="root-password")


@pytest.fixture
def workspace(owner: User) -> Workspace:
    """The owner's workspace."""
    return workspace_create(slug="main", owner=owner)


@pytest.fixture
def other_workspace(other_owner: User) -> Workspace:
    """Another owner's workspace."""
    return workspace_create(slug="other", owner=other_owner)


@pytest.fixture
def friend(workspace: Workspace) -> Keyed:
    """A caller at Act with `chat` granted."""
    return Keyed(*caller_create(workspace=workspace, name="friend", level=Level.ACT, skills=[CHAT]))


@pytest.fixture
def second_friend(workspace: Workspace) -> Keyed:
    """Another caller of the same workspace that may do the same."""
    return Keyed(*caller_create(workspace=workspace, name="second-friend", level=Level.ACT, skills=[CHAT]))


@pytest.fixture
def stranger(workspace: Workspace) -> Keyed:
    """A caller to whom nothing is granted."""
    return Keyed(*caller_create(workspace=workspace, name="stranger"))


@pytest.fixture(scope="session")
def product(
    django_db_setup: None, django_db_blocker: object, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Product]:
    """The product as it runs: a web process and a worker, on this test process's database."""
    running = Product(tmp_path_factory.mktemp("product"))
    try:
        running.start()
        yield running
    finally:
        running.stop()


@pytest.fixture
def broker_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """No worker hears of what this process does: other tests may have one running on this database."""

    def refuse(*_args: object, **_options: object) -> None:
        raise OperationalError("the broker is away")

    monkeypatch.setattr("celery.app.task.Task.apply_async", refuse)


@pytest.fixture
def api(transactional_db: None, product: Product, friend: Keyed) -> Iterator[Api]:
    """The product's API, as the friend calls it."""
    product.revive()
    with product.api(friend.key) as client:
        yield client
