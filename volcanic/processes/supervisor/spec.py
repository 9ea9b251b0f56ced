"""What to run, as whom, and how to tell that it is ready and how to end it."""

import os
import signal
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

_LAUNCH = str(Path(__file__).with_name("launch.py"))


class RunAs(Protocol):
    """A user to run as; only root can ask for one."""

    @property
    def uid(self) -> int: ...
    @property
    def gid(self) -> int: ...
    @property
    def groups(self) -> tuple[int, ...]: ...


@dataclass(frozen=True, kw_only=True)
class Spec:
    """One program to keep running.

    prepare     called in a thread before each start; may block, raises to refuse
    probe       called in a thread again and again until it says True: ready. None: see ready_text
    ready_text  the program is ready when a line of its output holds this. Both None: ready once started
    grace       seconds between the stop signal and SIGKILL; hasty_grace once someone is in a hurry
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
        """The command line that starts the program by way of `launch`. argv[0] must be an absolute path.

        The child lives no longer than the calling thread.
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
        """Keyword arguments for subprocess and asyncio alike.

        A session of its own: neither Ctrl-C nor the end of the terminal reaches the child, only we do.
        """
        return {"env": self.env, "cwd": self.cwd, "start_new_session": True}
