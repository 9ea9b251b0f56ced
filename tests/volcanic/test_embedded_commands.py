"""Embedded servers as commands and settings see them: addresses, imports, the folder. No server is started."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import redis
from environs import Env

from volcanic.processes import embedded
from volcanic.processes.embedded import paths

PROJECT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.xdist_group("embedded")


def test_urls_are_read_by_django_and_are_the_same_every_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    odd = tmp_path / "a b,%41"
    found = embedded.urls(odd)
    monkeypatch.setenv("SOME_DATABASE", found.database_url)
    config = Env().dj_db_url("SOME_DATABASE")
    assert (config["HOST"], config["NAME"], config["USER"]) == (str(paths.find(odd).sockets), "volcanic", "volcanic")
    assert redis.ConnectionPool.from_url(found.redis_url).connection_kwargs["path"] == str(
        paths.find(odd).sockets / "valkey.sock"
    )
    assert embedded.urls(odd) == found
    assert not odd.exists()


def test_importing_costs_nothing_that_settings_would_feel() -> None:
    script = (
        "import sys, volcanic.processes.embedded;"
        "print([m for m in ('asyncio', 'subprocess', 'django') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, cwd=PROJECT, check=True)
    assert done.stdout == b"[]\n"


@pytest.mark.parametrize(
    ("command", "given", "expected"),
    [
        (["manage.py", "migrate"], {}, [(True, True)]),
        (["manage.py", "migrate"], {"DATABASE_URL": "postgresql://x/y"}, [(False, True)]),
        (["manage.py", "migrate"], {"REDIS_URL_FILE": "/run/secrets/redis"}, [(True, False)]),
        (["manage.py", "migrate"], {"DATABASE_URL": "postgresql://x/y", "REDIS_URL": "redis://x"}, []),
        (["manage.py", "migrate", "--help"], {}, []),
        (["manage.py", "check", "--deploy"], {}, []),
        (["manage.py", "up"], {}, []),
        (["manage.py"], {}, []),
    ],
)
def test_for_command_brings_what_the_command_lacks(
    command: list[str],
    given: dict[str, str],
    expected: list[tuple[bool, bool]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("DATABASE_URL", "REDIS_URL"):
        monkeypatch.delenv(name, raising=False)
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    asked: list[tuple[bool, bool]] = []

    @contextmanager
    def running(_var: Path, *, postgres: bool, valkey: bool) -> Iterator[None]:
        asked.append((postgres, valkey))
        yield

    monkeypatch.setattr(embedded, "running", running)
    with embedded.for_command(command):
        pass
    assert asked == expected


def test_the_folder_is_the_project_s_wherever_a_command_is_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VOLCANIC_VAR", raising=False)
    assert embedded.var_folder() == PROJECT / "var"
    monkeypatch.setenv("VOLCANIC_VAR", "elsewhere")
    assert embedded.var_folder() == PROJECT / "elsewhere"
    done = subprocess.run(
        [sys.executable, "-m", "volcanic.processes.embedded", "remove", str(PROJECT)], capture_output=True, cwd=PROJECT
    )
    assert done.returncode == 2
    assert b"not deleted" in done.stderr
