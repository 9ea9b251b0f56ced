"""`manage.py up`: the whole product in the foreground, as `make up` runs it."""

import http.client
import os
import signal
import sys
from pathlib import Path
from typing import Any, cast

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import connection

from volcanic.processes import embedded
from volcanic.processes.supervisor.launch import die_with_parent
from volcanic.processes.supervisor.log import Log
from volcanic.processes.supervisor.runner import Plan, run
from volcanic.processes.supervisor.spec import Spec
from volcanic.settings.env import BASE_DIR, VAR_DIR

_WORKER_GRACE = 10.0  # seconds that a worker gets to stop, in addition to SHUTDOWN_GRACE_SECONDS for its turns
# The background worker takes short work, since turns may hold all threads of their worker while a model thinks.
_TURNS, _BACKGROUND = "turns", "watches,push,default"
_BACKGROUND_THREADS = 4


class Command(BaseCommand):
    """Starts services, migrations, web, workers and beat, and keeps them running until a signal stops the command."""

    help = "Runs the whole product in the foreground. PORT sets the port, VOLCANIC_VAR the folder of the data."
    requires_system_checks: list[str] = []  # bootstrap runs the checks while the programs start

    def handle(self, *_args: Any, **_options: Any) -> None:
        """Exits with 0 after a stop signal, with 1 when a program cannot be kept running."""
        if os.environ.get("MAKELEVEL"):
            die_with_parent(signal.SIGTERM)  # a killed `make` sends no signal
        var = VAR_DIR.resolve()
        embedded.make_var(var)
        log = Log(sys.stdout)
        postgres, valkey = embedded.needed()
        try:
            services = embedded.Embedded(var, postgres=postgres, valkey=valkey, emit=log)
        except embedded.EmbeddedError as error:
            raise CommandError(str(error)) from error
        host, port = settings.HOST, settings.PORT
        env = {**os.environ, "PORT": str(port), "VOLCANIC_VAR": str(var), "PYTHONUNBUFFERED": "1"}
        plan = Plan(
            host=host,
            port=port,
            services=services,
            must_migrate=must_migrate,
            migrate=_manage("migrate", "--no-input", env=env),
            first_run=_manage("bootstrap", env=env),
            programs=(
                worker(env, "worker", _TURNS, settings.WORKER_THREADS),
                worker(env, "background", _BACKGROUND, _BACKGROUND_THREADS),
                beat(env, var),
                web(env, host, port),
            ),
        )
        sys.exit(run(plan, log))


def must_migrate() -> bool:
    """Returns whether a migration is not applied yet. To start `migrate` for nothing would cost seconds."""
    from django.db.migrations.executor import MigrationExecutor

    try:
        executor = MigrationExecutor(connection)
        return bool(executor.migration_plan(executor.loader.graph.leaf_nodes()))
    finally:
        connection.close()
        getattr(connection, "close_pool", lambda: None)()


def web(env: dict[str, str], host: str, port: int) -> Spec:
    """Returns the spec of the ASGI server, which is ready when its health check answers."""
    return _python(
        "web",
        *("-m", "daphne", "-b", host, "-p", str(port), "volcanic.asgi:application"),
        env=env,
        probe=lambda: answers(host, port),
    )


def worker(env: dict[str, str], name: str, queues: str, threads: int) -> Spec:
    """Returns the spec of a Celery worker that takes messages from `queues` (a list with commas).

    A stop lets the worker finish its work. The death of the runner kills the worker, because a worker that gets a stop
    signal without a broker never ends.
    """
    logged = settings.LOG_LEVEL in ("DEBUG", "INFO")
    return _python(
        name,
        *("-m", "celery", "--quiet", "-A", "volcanic", "worker", "-n", f"{name}@%h", "-P", "threads"),
        *(
            "-c",
            str(threads),
            "-Q",
            queues,
            "--without-gossip",
            "--without-mingle",
            "--without-heartbeat",
            "-l",
            "INFO",
        ),
        env=env,
        grace=settings.SHUTDOWN_GRACE_SECONDS + _WORKER_GRACE,
        ready_text=" ready." if logged else None,
        probe=None if logged else consumes,
    )


def beat(env: dict[str, str], var: Path) -> Spec:
    """Returns the spec of Celery beat, which schedules the sweeps."""
    schedule = str(var / "celerybeat-schedule")
    return _python("beat", "-m", "celery", "-A", "volcanic", "beat", "-s", schedule, "-l", "WARNING", env=env)


def answers(host: str, port: int) -> bool:
    """Returns whether the health check answers 200."""
    address = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104
    request = http.client.HTTPConnection(address, port, timeout=5)
    try:
        request.request("GET", "/healthz", headers={"Host": f"localhost:{port}"})
        return request.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        request.close()


def consumes() -> bool:
    """Returns whether a client waits for messages, which shows that a worker without log output is ready."""
    import redis

    client = redis.Redis.from_url(settings.REDIS_URL)
    try:
        return any(one["cmd"] == "brpop" for one in cast(list[dict[str, str]], client.client_list()))
    except redis.RedisError:
        return False
    finally:
        client.close()


def _manage(*arguments: str, env: dict[str, str]) -> Spec:
    return _python(arguments[0], str(BASE_DIR / "manage.py"), *arguments, env=env)


def _python(name: str, *arguments: str, env: dict[str, str], **more: Any) -> Spec:
    return Spec(
        name=name,
        argv=(sys.executable, *arguments),
        env=env,
        cwd=BASE_DIR,
        death_signal=signal.SIGKILL,
        **more,
    )
