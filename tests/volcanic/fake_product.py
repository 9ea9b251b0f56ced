"""A small product for the runner's tests: python -m tests.volcanic.fake_product PORT FOLDER [FAULT].

Every program writes its name and pid to FOLDER/<name>.pid when it starts and appends a line to FOLDER/events when it
starts and when it ends properly. FAULT: `crashing` makes the web program die at once, `busy` makes the worker take a
second to stop, `stuck` makes it never stop, `migrate` makes the migration fail.
"""

import signal
import sys
import textwrap
from pathlib import Path

from volcanic.processes.supervisor import Spec, Supervisor
from volcanic.processes.supervisor.log import Log
from volcanic.processes.supervisor.runner import Plan, run

PROGRAM = textwrap.dedent(
    """
    import os, signal, sys, time
    folder, name, fault = sys.argv[1:4]
    def note(what):
        with open(f"{folder}/events", "a") as events:
            events.write(f"{name} {what}\\n")
    def stop(number, frame):
        if fault == "stuck":
            return
        if fault == "busy":
            time.sleep(1)
        note("stopped")
        sys.exit(0)
    signal.signal(signal.SIGTERM, stop)
    note("started")
    with open(f"{folder}/{name}.pid", "w") as file:
        file.write(str(os.getpid()))
    if fault == "crashing":
        sys.exit(3)
    print("I am ready.", flush=True)
    while True:
        signal.pause()
    """
)


class Services:
    """Stands for database and broker: one program."""

    def __init__(self, log: Log, spec: Spec) -> None:
        self._group = Supervisor(log)
        self._spec = spec

    async def start(self) -> None:
        self._group.start(self._spec)
        await self._group.wait_ready()

    async def stop(self) -> None:
        await self._group.stop()

    async def supervise(self) -> None:
        await self._group.supervise()

    def hasten(self) -> None:
        self._group.hasten()


def main(port: str, folder: str, fault: str = "") -> int:
    log = Log(sys.stdout)

    def program(name: str, its_fault: str = "", grace: float = 3600.0) -> Spec:
        argv = (sys.executable, "-c", PROGRAM, folder, name, its_fault)
        return Spec(name=name, argv=argv, ready_text=" ready.", grace=grace, death_signal=signal.SIGKILL)

    def step(name: str, script: str) -> Spec:
        return Spec(name=name, argv=(sys.executable, "-c", script, folder))

    note = "import sys; open(sys.argv[1] + '/events', 'a').write('{} done\\n'); print('{} says hello')"
    plan = Plan(
        host="127.0.0.1",
        port=int(port),
        services=Services(log, program("database")),
        must_migrate=lambda: not Path(folder, "migrated").exists(),
        migrate=step("migrate", "raise SystemExit(5)" if fault == "migrate" else note.format("migrate", "migrate")),
        first_run=step("bootstrap", note.format("bootstrap", "bootstrap")),
        programs=(
            program("worker", fault if fault in ("busy", "stuck") else ""),
            program("beat"),
            program("web", fault if fault == "crashing" else ""),
        ),
    )
    return run(plan, log)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
