"""Reference peer under load: the SDK's server with its in-memory store or its database store."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import unquote, urlsplit

import psycopg

from bench.processes import web_server
from bench.product import LISTED_TASKS, VAR

_DATABASE = "peer"

# Inserts completed tasks like the tasks of the peer's echo agent, one second apart, into the SDK's own table.
_FILL = """
    INSERT INTO tasks (id, context_id, kind, owner, last_updated, status, artifacts, history, protocol_version)
    SELECT gen_random_uuid(), gen_random_uuid(), 'task', (SELECT owner FROM tasks LIMIT 1),
           now() at time zone 'UTC' - number * interval '1 s',
           json_build_object('state', 'TASK_STATE_COMPLETED', 'timestamp', '2026-01-01T00:00:00Z'),
           json_build_array(json_build_object('artifactId', gen_random_uuid(), 'name', 'response',
               'parts', json_build_array(json_build_object('text', 'hi there')))),
           json_build_array(json_build_object('messageId', 'm' || number, 'role', 'ROLE_USER',
               'parts', json_build_array(json_build_object('text', 'hi there')))), '1.0'
    FROM generate_series(1, %s) AS number
"""


@contextmanager
def peer(*, database_url: str | None) -> Iterator[tuple[int, int]]:
    """Runs the peer on uvicorn, like the product. Yields its process id and its port."""
    env = {name: value for name, value in os.environ.items() if name != "PEER_DATABASE"}
    if database_url:
        parts = urlsplit(database_url)  # postgresql://USER@SOCKETS/DATABASE, the sockets' folder quoted
        user, _, sockets = parts.netloc.rpartition("@")
        env["PEER_DATABASE"] = f"postgresql+asyncpg://{user}@/{_DATABASE}?host={unquote(sockets)}"
    with web_server("uvicorn", "bench.peer_a2a_sdk:app", env=env, log=VAR / "peer.log") as running:
        yield running


def make_database(database_url: str) -> None:
    """Creates the peer's own database on the product's PostgreSQL, if it is missing."""
    with psycopg.connect(database_url, autocommit=True) as connection:
        found = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [_DATABASE]).fetchone()
        if not found:
            connection.execute(f"CREATE DATABASE {_DATABASE}")


def fill_database(database_url: str) -> None:
    """Inserts the tasks for ListTasks. The peer must have answered once, which created its table and one task."""
    with psycopg.connect(database_url, dbname=_DATABASE, autocommit=True) as connection:
        connection.execute(_FILL, [LISTED_TASKS])
        connection.execute("VACUUM ANALYZE")
        connection.execute("CHECKPOINT")
