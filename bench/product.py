"""Product under load: creates and fills its database, and starts its programs."""

import os
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.processes import PROJECT, BenchError, program, web_server
from bench.receiver import HOST
from volcanic.processes import embedded

VAR = PROJECT / "var" / "bench"
LISTED_TASKS = 100_000
# The two workers of `manage.py up`: their queues, and their threads (None: WORKER_THREADS).
_WORKERS = {"worker": ("turns", None), "background": ("watches,push,default", 4)}

# Inserts completed tasks like the tasks of echo turns, each in a session of its own, one second apart.
_FILL = """
    WITH session AS (
        INSERT INTO volcanic_session (workspace_id, kind, scope, title, created_at, last_active_at)
        SELECT %(workspace)s, 'inbound', 'a2a-%(caller)s_' || number, '', now(), now()
        FROM generate_series(1, %(count)s) AS number
        RETURNING id),
    task AS (
        INSERT INTO a2a_server_task (
            id, caller_id, session_id, context_id, state, status_at, history, accepted_output_modes, hops, seq, attempt,
            worker, enqueued_at, created_at)
        SELECT gen_random_uuid(), %(caller)s, id, gen_random_uuid()::text, 'completed', now() - id * interval '1 s',
               jsonb_build_array(jsonb_build_object(
                   'messageId', 'm' || id, 'role', 'ROLE_USER', 'parts',
                   jsonb_build_array(jsonb_build_object('text', 'hi there')))),
               '[]', 0, 4, 1, '', now(), now()
        FROM session
        RETURNING id)
    INSERT INTO a2a_server_artifact (task_id, artifact_id, payload)
    SELECT id, 'response', jsonb_build_object('artifactId', 'response', 'name', 'response', 'parts',
                           jsonb_build_array(jsonb_build_object('text', 'hi there')))
    FROM task
"""


@dataclass(frozen=True)
class Keys:
    """The API keys of two callers at Act with the skill `chat`: a sender, and a caller with LISTED_TASKS tasks."""

    sender: str
    lister: str


@contextmanager
def services() -> Iterator[embedded.Urls]:
    """Runs the embedded servers in a new folder during the block, durable as in production. Yields their URLs."""
    try:
        embedded.remove(VAR)
        shutil.rmtree(VAR, ignore_errors=True)
        embedded.make_var(VAR)
        with embedded.running(VAR) as urls:
            yield urls
        embedded.remove(VAR)  # the logs stay
    except embedded.EmbeddedError as error:
        raise BenchError(str(error)) from error


def prepare_environment() -> None:
    """Sets the environment for the product's settings, in this process and in the programs.

    Settings of the user's own installation are removed, so that the benchmark never touches an existing database.
    """
    for name in ("DATABASE_URL", "REDIS_URL", "REDIS_PREFIX", "VOLCANIC_ENV"):
        os.environ.pop(name, None)
        os.environ.pop(f"{name}_FILE", None)
    os.environ["DJANGO_SETTINGS_MODULE"] = "volcanic.settings"
    os.environ["VOLCANIC_VAR"] = str(VAR)
    os.environ["ALLOWED_PRIVATE_HOSTS"] = HOST  # where the receiver of webhooks listens
    os.environ["MAX_UNREAD_MESSAGES"] = "0"  # nobody reads what notify-user leaves here
    os.environ["RUNNER"] = "volcanic.runtime.echo.EchoRunner"


def prepare_database() -> Keys:
    """Migrates the new database, creates the callers, inserts the tasks for ListTasks, and returns the API keys."""
    import django

    django.setup()
    from django.contrib.auth.models import User
    from django.core.management import call_command
    from django.db import connection

    from trust.limits import COLUMNS
    from trust.models import CHAT, Level
    from trust.services import caller_create, caller_set_limits
    from volcanic.services import workspace_create

    call_command("migrate", verbosity=0)
    workspace = workspace_create(slug="bench", owner=User.objects.create_user("bench"))
    sending, sender = caller_create(workspace=workspace, name="sender", level=Level.ACT, skills=[CHAT])
    caller, lister = caller_create(workspace=workspace, name="lister", level=Level.ACT, skills=[CHAT])
    for unlimited in (sending, caller):
        caller_set_limits(caller=unlimited, **dict.fromkeys(COLUMNS, 0))
    with connection.cursor() as cursor:
        cursor.execute(_FILL, {"workspace": workspace.pk, "caller": caller.pk, "count": LISTED_TASKS})
        cursor.execute("VACUUM ANALYZE")
        cursor.execute("CHECKPOINT")
    return Keys(sender, lister)


def check_all_done() -> None:
    """Raises BenchError when a task is not completed."""
    from django.db import connection

    give_up = time.monotonic() + 10
    while True:
        with connection.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM a2a_server_task WHERE state <> 'completed'")
            (left,) = cursor.fetchone()
        if not left:
            return
        if time.monotonic() > give_up:
            raise BenchError(f"{left} tasks were accepted and are not completed")
        time.sleep(0.1)


@contextmanager
def workers(threads: int | None) -> Iterator[dict[str, int]]:
    """Runs the Celery workers of `manage.py up` during the block. `threads`, if given, replaces WORKER_THREADS.

    Yields the process id of each worker by name.
    """
    from django.conf import settings

    turns = threads or settings.WORKER_THREADS
    env = {**os.environ, "WORKER_THREADS": str(turns)}
    with ExitStack() as running:
        pids = {}
        for name, (queues, count) in _WORKERS.items():
            arguments = (
                *("-m", "celery", "--quiet", "-A", "volcanic", "worker", "-n", f"{name}@%h", "-P", "threads"),
                *("-c", str(count or turns), "-Q", queues, "--without-gossip", "--without-mingle"),
                *("--without-heartbeat", "-l", "INFO"),
            )
            pids[name] = running.enter_context(program(name, *arguments, env=env, log=VAR / f"{name}.log"))
        yield pids


@contextmanager
def web(server: str) -> Iterator[tuple[int, int]]:
    """Runs the web process on `server` during the block. Yields its process id and its port."""
    with web_server(server, "volcanic.asgi:application", env=os.environ, log=VAR / "web.log") as running:
        yield running


def complaints() -> list[str]:
    """Returns the errors that the product's programs logged. The benchmark fails if there are any."""
    found = []
    for name in ("web.log", *(f"{worker}.log" for worker in _WORKERS)):
        path = Path(VAR / name)
        if path.exists():
            lines = path.read_text(errors="replace").splitlines()
            found += [f"{name}: {line}" for line in lines if re.search(r"\[(error|critical) *\]|Traceback", line)]
    return found
