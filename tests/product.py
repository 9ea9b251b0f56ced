"""The product as real processes, uvicorn and a Celery worker, and a client for its API."""

import json
import os
import signal
import socket
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import httpx
from django.db import connection

from tests.waiting import PATIENCE, wait_for

_reserved: list[socket.socket] = []


def free_port() -> int:
    """Returns a TCP port that nothing listens on.

    The port stays bound until this process ends, so that the system gives it to no other process. A server that asks
    for the port by number with SO_REUSEADDR still gets it.
    """
    reserving = socket.socket()
    reserving.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    reserving.bind(("127.0.0.1", 0))
    _reserved.append(reserving)
    port: int = reserving.getsockname()[1]
    return port


class Product:
    """One web process and one worker, on the database of the test process that starts them."""

    def __init__(self, folder: Path, **environment: str) -> None:
        self.folder = folder
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._environment = environment
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    @property
    def environment(self) -> dict[str, str]:
        """Returns the environment of the processes."""
        url = urlsplit(os.environ["DATABASE_URL"])
        return {
            **os.environ,
            "DATABASE_URL": urlunsplit(url._replace(path=f"/{connection.settings_dict['NAME']}")),
            "PUBLIC_URL": self.url,
            "WORKSPACES_DIR": str(self.folder / "workspaces"),
            "LEASE_SECONDS": "3",
            "SHUTDOWN_GRACE_SECONDS": "1",
            "ALLOWED_PRIVATE_HOSTS": "127.0.0.1",
            "LOG_FORMAT": "json",
            # Tests poll the server, so the rate limits are high.
            "REQUESTS_PER_MINUTE": "100000",
            "BAD_KEYS_PER_MINUTE": "1000",
            "PYTHONWARNINGS": "default",
            **self._environment,
        }

    def start(self) -> None:
        """Starts both processes and returns when both are ready."""
        self.start_web()
        self.start_worker()

    def start_web(self) -> None:
        """Starts the web process and returns when it answers."""
        self._spawn("web", "uvicorn", "volcanic.asgi:application", "--port", str(self.port), "--log-level", "warning")
        self._wait_for("web", self._web_answers)

    def start_worker(self) -> None:
        """Starts the worker and returns when it is ready."""
        (self.folder / "worker.log").write_bytes(b"")
        options = "-P threads -c 8 -l INFO -Q turns,watches,push,default --without-gossip --without-mingle"
        self._spawn("worker", "celery", "-A", "volcanic", "worker", *options.split(" "), "--without-heartbeat")
        self._wait_for("worker", lambda: " ready." in self.log("worker"))

    def _spawn(self, name: str, module: str, *arguments: str) -> None:
        with open(self.folder / f"{name}.log", "ab") as log:
            self._processes[name] = subprocess.Popen(
                [sys.executable, "-m", module, *arguments],
                env={**self.environment, "PGAPPNAME": self._mark(name)},
                stdout=log,
                stderr=log,
            )

    def _wait_for(self, name: str, ready: Callable[[], bool]) -> None:
        """Waits until a process is ready. Fails with its log after START_SECONDS, or when the process has ended."""
        try:
            wait_for(lambda: ready() or not self.runs(name), PATIENCE)
            assert self.runs(name), f"the {name} process ended"
        except AssertionError as error:
            error.add_note(self.log(name))
            raise

    def _web_answers(self) -> bool:
        try:
            return httpx.get(f"{self.url}/healthz").status_code == 200
        except httpx.TransportError:
            return False

    def log(self, name: str) -> str:
        """Returns the log of a process."""
        return (self.folder / f"{name}.log").read_text()

    def signal(self, name: str, number: signal.Signals) -> None:
        """Sends a signal to a process; waits for its end after SIGKILL."""
        self._processes[name].send_signal(number)
        if number is signal.SIGKILL:
            self._processes[name].wait(PATIENCE)

    def runs(self, name: str) -> bool:
        """Returns whether a process is running."""
        return self._processes[name].poll() is None

    def revive(self) -> None:
        """Starts the processes again that a test has killed."""
        for name, process in list(self._processes.items()):
            if process.poll() is not None:
                (self.start_web if name == "web" else self.start_worker)()

    def lets_go_of(self, task_id: str) -> None:
        """Returns when the worker has given up a run that is not its own any more: it writes nothing after that."""
        ends = (f"{task_id} stopped: its lease was lost", f"{task_id} ended too late")
        wait_for(lambda: any(end in self.log("worker") for end in ends))

    def connections(self, name: str) -> int:
        """Returns how many connections to the database a process holds."""
        with connection.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM pg_stat_activity WHERE application_name = %s", [self._mark(name)])
            return int(cursor.fetchone()[0])

    def _mark(self, name: str) -> str:
        return f"{self.port} {name}"

    def sweep(self) -> None:
        """Has the worker do the sweep that beat asks for every two seconds."""
        from a2a_server.tasks import sweep

        sweep.delay()

    def stop(self) -> None:
        """Stops both processes. A process that does not end does not keep the other from being stopped."""
        with ExitStack() as ends:
            for process in self._processes.values():
                process.kill()
                ends.callback(process.wait, PATIENCE)

    @contextmanager
    def api(self, key: str) -> Iterator["Api"]:
        """Returns a client for a caller's key."""
        with httpx.Client(base_url=self.url, headers={"X-API-Key": key}, timeout=PATIENCE) as http:
            yield Api(http)


def message(text: str = "hi", **members: Any) -> dict[str, Any]:
    """Returns a message in the 1.0 wire form, with a new id."""
    return {"role": "ROLE_USER", "messageId": str(uuid.uuid4()), "parts": [{"text": text}], **members}


class Api:
    """A caller's client for the product's API."""

    def __init__(self, http: httpx.Client) -> None:
        self.http = http

    def rpc(self, method: str, params: Any = None, **members: Any) -> dict[str, Any]:
        """Makes a JSON-RPC call and returns the envelope of the answer. `members` overrides the request's."""
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params or {}, **members}
        headers = {"A2A-Version": "1.0"} if "/" not in method else {}
        answer: dict[str, Any] = self.http.post("/a2a", json=body, headers=headers).json()
        return answer

    def result(self, method: str, params: Any = None) -> Any:
        """Makes a JSON-RPC call that must succeed, and returns its result."""
        answer = self.rpc(method, params)
        assert "error" not in answer, answer
        return answer["result"]

    def error(self, method: str, params: Any = None) -> int:
        """Makes a JSON-RPC call that must fail, and returns the error's code."""
        answer = self.rpc(method, params)
        assert "result" not in answer, answer
        code: int = answer["error"]["code"]
        return code

    def send(self, text: str = "hi", *, at_once: bool = False, **members: Any) -> dict[str, Any]:
        """Sends a message and returns the task."""
        params = {"message": message(text, **members), "configuration": {"returnImmediately": at_once}}
        task: dict[str, Any] = self.result("SendMessage", params)["task"]
        return task

    def get(self, task_id: str, **params: Any) -> dict[str, Any]:
        """Returns a task."""
        task: dict[str, Any] = self.result("GetTask", {"id": task_id, **params})
        return task

    def wait(self, task_id: str, state: str, seconds: float = PATIENCE) -> dict[str, Any]:
        """Returns a task as soon as it is in `state`, given without its prefix."""
        return wait_for(
            lambda: (task := self.get(task_id))["status"]["state"] == f"TASK_STATE_{state}" and task, seconds
        )

    @contextmanager
    def stream(self, method: str, params: Any, request_id: Any = 1) -> Iterator[Iterator[dict[str, Any]]]:
        """Opens a JSON-RPC stream; yields an iterator of the results of its events."""
        body = {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}
        with self.http.stream("POST", "/a2a", json=body, headers={"A2A-Version": "1.0"}) as response:
            assert response.headers["content-type"].startswith("text/event-stream"), response.read()
            yield (envelope["result"] for envelope in sse(response))


def sse(response: httpx.Response) -> Iterator[dict[str, Any]]:
    """Yields the JSON of each server-sent event of a response."""
    data: list[str] = []
    for line in response.iter_lines():
        if line.startswith("data:"):
            data.append(line.removeprefix("data:").strip())
        elif not line and data:
            yield json.loads("\n".join(data))
            data = []


def state_of(task: dict[str, Any]) -> str:
    """Returns the state of a task or status update, without its prefix."""
    state: str = task["status"]["state"]
    return state.removeprefix("TASK_STATE_")


def last_state(events: Sequence[dict[str, Any]]) -> str:
    """Returns the state that a stream ends with: of a status update, or of the task where it was over by the first
    look."""
    return state_of(events[-1].get("statusUpdate") or events[-1]["task"])


def text_of(task: dict[str, Any]) -> str:
    """Returns the text of a task's `response` artifact."""
    (artifact,) = [artifact for artifact in task.get("artifacts", []) if artifact["artifactId"] == "response"]
    return "".join(part["text"] for part in artifact["parts"])


def question_of(task: dict[str, Any]) -> str:
    """Returns the text of a task's status message."""
    return "".join(part["text"] for part in task["status"]["message"]["parts"])
