"""The runner behind `make up`: mostly with small programs in place of the product's own, once with the real ones."""

import os
import signal
import socket
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.product import free_port
from tests.waiting import PATIENCE, wait_for
from volcanic.processes import embedded
from volcanic.processes.supervisor import launch

pytestmark = pytest.mark.xdist_group("embedded")

PROJECT = Path(__file__).resolve().parents[2]
NAMES = ("database", "worker", "beat", "web")


class Product:
    """A running fake product and what it has said so far."""

    def __init__(self, folder: Path, fault: str = "", port: int | None = None) -> None:
        self.folder = folder
        self.port = port or free_port()
        command = [sys.executable, "-m", "tests.volcanic.fake_product", str(self.port), str(folder), fault]
        self.process = subprocess.Popen(command, cwd=PROJECT, stdout=subprocess.PIPE, text=True, start_new_session=True)
        self.lines: list[str] = []
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line.rstrip("\n"))

    def wait_ready(self) -> None:
        wait_for(lambda: f"ready: http://localhost:{self.port}" in self.lines)

    def wait_end(self, timeout: float = PATIENCE) -> int:
        code = self.process.wait(timeout)
        self._reader.join(PATIENCE)
        return code

    def pid(self, name: str) -> int:
        return int((self.folder / f"{name}.pid").read_text())

    def events(self) -> list[str]:
        return (self.folder / "events").read_text().splitlines()

    def left(self) -> list[str]:
        """The programs that still run."""
        return [name for name in NAMES if (self.folder / f"{name}.pid").exists() and alive(self.pid(name))]

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.wait_end()
        assert self.process.stdout is not None
        self.process.stdout.close()


def alive(pid: int) -> bool:
    """True while a process runs that is no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


@pytest.fixture
def products(tmp_path: Path) -> Iterator[list[Product]]:
    made: list[Product] = []
    yield made
    for product in made:
        product.close()
        wait_for(lambda product=product: not product.left())  # type: ignore[misc]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_starts_in_order_and_a_signal_stops_in_the_opposite_order(
    tmp_path: Path, products: list[Product], number: signal.Signals
) -> None:
    products.append(product := Product(tmp_path))
    product.wait_ready()
    events = product.events()
    assert events[:2] == ["database started", "migrate done"]
    assert sorted(events[2:]) == ["beat started", "bootstrap done", "web started", "worker started"]
    product.process.send_signal(number)
    assert product.wait_end() == 0
    assert product.events()[6:] == ["web stopped", "beat stopped", "worker stopped", "database stopped"]
    assert product.left() == []
    ready = product.lines.index(f"ready: http://localhost:{product.port}")
    assert product.lines[ready + 1] == "bootstrap says hello"
    assert "migrate   | migrate says hello" in product.lines[:ready]
    assert "worker    | I am ready." in product.lines[:ready]


def test_migrations_are_skipped_when_there_are_none(tmp_path: Path, products: list[Product]) -> None:
    (tmp_path / "migrated").touch()
    products.append(product := Product(tmp_path))
    product.wait_ready()
    assert "migrate done" not in product.events()


def test_failed_migration_stops_everything(tmp_path: Path, products: list[Product]) -> None:
    products.append(product := Product(tmp_path, "migrate"))
    assert product.wait_end() == 1
    assert product.events() == ["database started", "database stopped"]
    assert "stopping: migrate ended with code 5" in product.lines


def test_killed_program_comes_back(tmp_path: Path, products: list[Product]) -> None:
    products.append(product := Product(tmp_path))
    product.wait_ready()
    first = product.pid("web")
    os.kill(first, signal.SIGKILL)
    wait_for(lambda: product.pid("web") != first and alive(product.pid("web")))
    assert product.process.poll() is None
    assert "web       | ended by SIGKILL" in product.lines


def test_third_death_within_a_minute_stops_everything(tmp_path: Path, products: list[Product]) -> None:
    products.append(product := Product(tmp_path, "crashing"))
    assert product.wait_end() == 1
    events = product.events()
    assert events.count("web started") == 3
    assert events[-3:] == ["beat stopped", "worker stopped", "database stopped"]
    assert product.left() == []
    assert not any(line.startswith("ready:") for line in product.lines)


def test_death_of_the_runner_leaves_nothing(tmp_path: Path, products: list[Product]) -> None:
    products.append(product := Product(tmp_path, "stuck"))
    product.wait_ready()
    product.process.kill()
    wait_for(lambda: not product.left())


def test_program_that_is_busy_may_finish(tmp_path: Path, products: list[Product]) -> None:
    products.append(product := Product(tmp_path, "busy"))
    product.wait_ready()
    product.process.send_signal(signal.SIGINT)
    assert product.wait_end() == 0
    assert "worker stopped" in product.events()


def test_second_signal_hastens(tmp_path: Path, products: list[Product]) -> None:
    products.append(product := Product(tmp_path, "stuck"))
    product.wait_ready()
    product.process.send_signal(signal.SIGINT)
    wait_for(lambda: "beat stopped" in product.events())
    product.process.send_signal(signal.SIGINT)
    assert product.wait_end() == 0  # its grace is an hour
    assert product.events()[-1] == "database stopped"


def test_stop_while_starting(tmp_path: Path, products: list[Product]) -> None:
    products.append(product := Product(tmp_path))
    wait_for(lambda: (tmp_path / "events").exists())
    product.process.send_signal(signal.SIGTERM)
    assert product.wait_end() == 0
    assert product.left() == []


def test_port_that_is_taken_is_refused_before_anything_starts(tmp_path: Path, products: list[Product]) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = int(other.getsockname()[1])
        products.append(product := Product(tmp_path, port=port))
        assert product.wait_end() == 1
    assert product.lines == [
        f"cannot listen on 127.0.0.1:{port}: Address already in use. Choose another port: make up PORT=8001"
    ]
    assert not (tmp_path / "events").exists()


def test_reader_that_goes_away_stops_everything(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.volcanic.fake_product", str(free_port()), str(tmp_path)]
    process = subprocess.Popen(command, cwd=PROJECT, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    wait_for(lambda: (tmp_path / "web.pid").exists())
    process.stdout.close()
    assert process.wait(PATIENCE) == 0
    assert not any(alive(int(path.read_text())) for path in tmp_path.glob("*.pid"))


def test_hung_up_terminal_stops_everything(tmp_path: Path) -> None:
    terminal, ours = os.openpty()
    command = [sys.executable, "-m", "tests.volcanic.fake_product", str(free_port()), str(tmp_path)]
    process = subprocess.Popen(command, cwd=PROJECT, stdout=ours, stderr=ours)
    os.close(ours)
    wait_for(lambda: (tmp_path / "web.pid").exists())
    assert b"\033[" in os.read(terminal, 65536)
    os.close(terminal)
    assert process.wait(PATIENCE) == 0
    assert not any(alive(int(path.read_text())) for path in tmp_path.glob("*.pid"))


def children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGKILL, -signal.SIGKILL)])
def test_real_product_is_ready_when_it_says_so_and_leaves_nothing(
    tmp_path: Path, number: signal.Signals, code: int
) -> None:
    port, var = free_port(), tmp_path / "its var"
    environment = {k: v for k, v in os.environ.items() if k not in ("DATABASE_URL", "REDIS_URL", "MAKELEVEL")}
    environment |= {"PORT": str(port), "VOLCANIC_VAR": str(var)}
    command = [sys.executable, "manage.py", "up"]
    process = subprocess.Popen(command, cwd=PROJECT, stdout=subprocess.PIPE, text=True, env=environment)
    assert process.stdout is not None
    try:
        lines = [line.rstrip("\n") for line in iter(process.stdout.readline, f"ready: http://localhost:{port}\n")]
        assert process.poll() is None, lines
        with urllib.request.urlopen(f"http://localhost:{port}/healthz", timeout=PATIENCE) as answer:
            assert answer.status == 200
        running = children(process.pid)
        assert len(running) == 6
        process.send_signal(number)
        process.stdout.read()
        assert process.wait(PATIENCE) == code
        wait_for(lambda: not any(map(alive, running)))
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
        embedded.remove(var)


def test_launch_does_not_run_for_a_parent_that_is_gone() -> None:
    nobody = str(2**22 + 1)  # above the highest pid there is
    command = [sys.executable, "-I", "-S", launch.__file__, nobody, "9", "-", "-", "-", "/bin/echo", "ran"]
    done = subprocess.run(command, capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (launch.FAILED, b"")
