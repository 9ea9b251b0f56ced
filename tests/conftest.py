"""Fixtures for the whole suite: a fixed cast of owners and callers, and the product as real processes."""

import functools
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from asgiref.sync import SyncToAsync
from django.conf import settings as django_settings
from django.contrib.auth.hashers import make_password
from django.contrib.auth.models import User
from django.core.management.commands.flush import Command as FlushCommand
from django.db import OperationalError, connection, transaction
from kombu.exceptions import OperationalError as BrokerError
from psycopg.errors import DeadlockDetected
from pytest_django.fixtures import Settings

from tests.product import Api, Product
from trust.models import CHAT, Caller, Level
from trust.services import builtin_skills_ensure, caller_create
from volcanic.aio import db
from volcanic.models import Workspace
from volcanic.services import workspace_create

FLUSHES = 5
KEPT = {"django_migrations", "django_content_type", "auth_permission"}
"""Tables that migrations fill and no test writes to."""


@pytest.fixture(autouse=True)
def _workspaces_in_tmp(tmp_path: Path, settings: Settings) -> None:
    settings.WORKSPACES_DIR = str(tmp_path / "workspaces")


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None) -> Iterator[None]:
    """Closes the connections of the database threads before the database is dropped."""
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
def _quick_flush() -> None:
    """Empties the database after a test with `transactional_db` by deleting the rows of filled tables.

    Django's `flush` truncates every table and writes all permissions again, which takes ten times as long.
    """

    def handle(self: FlushCommand, **options: object) -> None:
        for attempt in range(1, FLUSHES + 1):
            try:
                _delete_all_rows()
                return
            except OperationalError as error:
                # A worker still uses two of the tables. PostgreSQL has ended this transaction to resolve the deadlock.
                if not isinstance(error.__cause__, DeadlockDetected) or attempt == FLUSHES:
                    raise

    FlushCommand.handle = handle  # type: ignore[method-assign]


def _delete_all_rows() -> None:
    tables = [name for name in connection.introspection.table_names() if name not in KEPT]
    quoted = [connection.ops.quote_name(name) for name in tables]
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(f"LOCK TABLE {', '.join(quoted)} IN EXCLUSIVE MODE")
        cursor.execute(" UNION ALL ".join(f"SELECT '{name}' WHERE EXISTS (SELECT FROM {name})" for name in quoted))
        filled = [name for (name,) in cursor.fetchall()]
        # As a replica the session runs no foreign key checks and no triggers, so rows can be deleted in any order.
        cursor.execute("SET LOCAL session_replication_role = replica")
        cursor.execute("; ".join(f"DELETE FROM {name}" for name in filled) or "SELECT")
    builtin_skills_ensure()


@dataclass(frozen=True)
class Keyed:
    """A caller and its key."""

    caller: Caller
    key: str


hashed = functools.cache(make_password)
"""A password as it is stored: hashing takes long on purpose, so it is done once for all tests."""


@pytest.fixture
def owner(db: None) -> User:
    """Gives the owner of `workspace`."""
    return User.objects.create(username="olivia", password=hashed("olivia-password"), is_staff=True)


@pytest.fixture
def other_owner(db: None) -> User:
    """Gives the owner of `other_workspace`."""
    return User.objects.create(username="oscar", password=hashed("oscar-password"), is_staff=True)


@pytest.fixture
def superuser(db: None) -> User:
    """Gives a superuser, who may see everything."""
    return User.objects.create(username="root", password=hashed("root-password"), is_staff=True, is_superuser=True)


@pytest.fixture
def workspace(owner: User) -> Workspace:
    """Gives the owner's workspace."""
    return workspace_create(slug="main", owner=owner)


@pytest.fixture
def other_workspace(other_owner: User) -> Workspace:
    """Gives another owner's workspace."""
    return workspace_create(slug="other", owner=other_owner)


@pytest.fixture
def friend(workspace: Workspace) -> Keyed:
    """Gives a caller at the level Act with a grant of `chat`."""
    return Keyed(*caller_create(workspace=workspace, name="friend", level=Level.ACT, skills=[CHAT]))


@pytest.fixture
def second_friend(workspace: Workspace) -> Keyed:
    """Gives another caller of the same workspace with the same level and grant."""
    return Keyed(*caller_create(workspace=workspace, name="second-friend", level=Level.ACT, skills=[CHAT]))


@pytest.fixture
def stranger(workspace: Workspace) -> Keyed:
    """Gives a caller without grants."""
    return Keyed(*caller_create(workspace=workspace, name="stranger"))


@pytest.fixture(scope="session")
def product(
    django_db_setup: None, django_db_blocker: object, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Product]:
    """Gives the running product: a web process and a worker, on the database of this test process."""
    running = Product(tmp_path_factory.mktemp("product"))
    try:
        running.start()
        yield running
    finally:
        running.stop()


@pytest.fixture
def broker_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes all Celery messages of this process fail, since other tests may have a worker running on this database."""

    def refuse(*_args: object, **_options: object) -> None:
        raise BrokerError("the broker is away")

    monkeypatch.setattr("celery.app.task.Task.apply_async", refuse)


@pytest.fixture
def api(transactional_db: None, product: Product, friend: Keyed) -> Iterator[Api]:
    """Gives the product's API for the caller `friend`."""
    product.revive()
    with product.api(friend.key) as client:
        yield client
