"""Fixtures for the whole suite: a fixed cast of owners and callers, and the product as real processes."""

import functools
import signal
import threading
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import hypothesis
import pytest
from asgiref.sync import SyncToAsync
from blockbuster import BlockBuster, BlockingError
from django.conf import settings as django_settings
from django.contrib.auth.hashers import make_password
from django.contrib.auth.models import User
from django.core.management.commands.flush import Command as FlushCommand
from django.db import OperationalError, connection, transaction
from kombu.exceptions import OperationalError as BrokerError
from psycopg.errors import DeadlockDetected
from pytest_django.fixtures import Settings

from tests.product import Api, Product
from tests.waiting import PATIENCE
from trust.models import CHAT, Caller, Level
from trust.services import builtin_skills_ensure, caller_create
from volcanic.aio import db
from volcanic.models import Workspace
from volcanic.services import workspace_create

FLUSHES = 5
KEPT = {"django_migrations", "django_content_type", "auth_permission"}
"""Tables that migrations fill and no test writes to."""

hypothesis.settings.register_profile("any machine", deadline=None)  # a busy one is no failure
hypothesis.settings.load_profile("any machine")

# What blocks is the product's affair where its code is on the stack. Tests may read a file while their loop stands.
_guard = BlockBuster(["volcanic", "trust", "a2a_server", "a2a_client"])
for where, names in (
    ("logging/__init__.py", {"emit", "flush"}),  # lines go to a pipe or a terminal; here pytest has them in a file
    ("<frozen importlib._bootstrap>", {"_find_and_load"}),  # once for a process, in whichever test is the first
    ("volcanic/processes/embedded/instance.py", {"__init__", "start"}),  # the start: nothing else runs in the loop yet
    ("volcanic/toolbox/processes.py", {"_crowded"}),  # /proc is no disk, and a fork bomb waits for no thread
    ("volcanic/outbound/client.py", {"download", "_whole_or_nothing"}),  # into the page cache: quicker than a thread
):
    for blocking in _guard.functions.values():
        blocking.can_block_in(where, names)


@pytest.fixture(autouse=True)
def _workspaces_in_tmp(tmp_path: Path, settings: Settings) -> None:
    settings.WORKSPACES_DIR = str(tmp_path / "workspaces")


@pytest.fixture(autouse=True)
def blocked(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Where the product's code blocks an event loop, the test's own or the one that this process has in a thread, it
    gets a BlockingError. The test fails even if that error is caught: this holds the places."""
    noted: list[str] = []
    if "page" in request.fixturenames:  # Playwright has a loop running in this thread, under all that the test does
        yield noted
        return

    class Noted(BlockingError):
        def __init__(self, func: str) -> None:
            super().__init__(func)
            noted.append(f"{self}\n{''.join(traceback.format_stack(limit=25)[:-1])}")

    monkeypatch.setattr("blockbuster.blockbuster.BlockingError", Noted)
    _guard.activate()
    yield noted
    _guard.deactivate()
    assert not noted, "\n".join(noted)


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None) -> Iterator[None]:
    """Closes the connections of the database threads before the database is dropped."""
    yield
    barrier = threading.Barrier(django_settings.DB_THREADS)

    def close() -> None:
        barrier.wait(PATIENCE)
        connection.close()

    futures = [db._executor().submit(close) for _ in range(django_settings.DB_THREADS)]
    futures.append(SyncToAsync.single_thread_executor.submit(lambda: connection.close()))
    for future in futures:
        future.result()


@pytest.fixture(scope="session", autouse=True)
def _signals_are_heard() -> None:
    """Lets the processes of the tests hear SIGHUP and SIGINT, which under nohup or in the background are ignored.

    A handler ends where a program starts, but an ignored signal stays ignored.
    """
    for number in (signal.SIGHUP, signal.SIGINT):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, lambda *_: None)


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

    monkeypatch.setattr("celery.Celery.send_task", refuse)


@pytest.fixture
def api(transactional_db: None, product: Product, friend: Keyed) -> Iterator[Api]:
    """Gives the product's API for the caller `friend`."""
    product.revive()
    with product.api(friend.key) as client:
        yield client
