"""Description of a supervised program: command line, user, readiness, signals."""

import os
import signal
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

_LAUNCH = str(Path(__file__).with_name("launch.py"))


class RunAs(Protocol):
    """The user that a program runs as. Only root can choose another user."""

    @property
    def uid(self) -> int: ...
    @property
    def gid(self) -> int: ...
    @property
    def groups(self) -> tuple[int, ...]: ...


@dataclass(frozen=True, kw_only=True)
class Spec:
    """One supervised program.

    prepare     called in a thread before each start; may block; an exception prevents the start
    probe       called in a thread repeatedly until it returns True, which means ready; None: see ready_text
    ready_text  the program is ready when a line of its output contains this text; if probe and ready_text are None,
                the program is ready once it is started
    grace       seconds between the stop signal and SIGKILL; hasty_grace applies after `hasten`
    """

    name: str
    argv: tuple[str, ...]
    env: Mapping[str, str] | None = None
    cwd: Path | None = None
    account: RunAs | None = None
    stop_signal: signal.Signals = signal.SIGTERM
    death_signal: signal.Signals = signal.SIGKILL
    grace: float = 10.0
    hasty_grace: float = 1.0
    prepare: Callable[[], None] | None = None
    probe: Callable[[], bool] | None = None
    ready_text: str | None = None

    def command(self) -> list[str]:
        """Returns the command line that starts the program through `launch`. argv[0] must be an absolute path.

        The child ends with the calling thread.
        """
        account = self.account
        who = (str(account.uid), str(account.gid), ",".join(map(str, account.groups))) if account else ("-", "-", "-")
        return [
            sys.executable,
            "-I",
            "-S",
            _LAUNCH,
            str(os.getpid()),
            str(int(self.death_signal)),
            *who,
            *self.argv,
        ]

    def options(self) -> dict[str, Any]:
        """Returns keyword arguments for subprocess and asyncio alike.

        The child gets a session of its own, so that neither Ctrl-C nor the end of the terminal reaches the child.
        """
        return {"env": self.env, "cwd": self.cwd, "start_new_session": True}
