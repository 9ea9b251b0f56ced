"""Extension of Celery's worker that wakes the worker's event loop."""

import os
from typing import Any

from celery import bootsteps


class WakeHub(bootsteps.StartStopStep):
    """Wakes the worker's event loop when a pool thread asks it for something.

    A pool thread that takes a message asks the loop to acknowledge the message. `Hub.call_soon` does not wake a loop
    that waits for its sockets. At the prefetch limit the loop does not wait for messages either. Without this step, the
    loop would sleep until its next timer, seconds away, with messages waiting and every thread idle.
    """

    requires = ("celery.worker.consumer.tasks:Tasks",)

    def __init__(self, parent: Any, **kwargs: Any) -> None:
        super().__init__(parent, **kwargs)
        self._pipe: tuple[int, int] | None = None

    def start(self, parent: Any) -> None:
        """Begins to listen to the pipe. Called again after each reconnect to the broker, which resets the readers."""
        if parent.hub is None:
            return
        if self._pipe is None:
            self._pipe = os.pipe()
            for end in self._pipe:
                os.set_blocking(end, False)
            parent.hub.call_soon = self._waking(parent.hub.call_soon)
        parent.hub.add_reader(self._pipe[0], self._drain)

    def _waking(self, call_soon: Any) -> Any:
        def call_and_wake(callback: Any, *args: Any) -> Any:
            made = call_soon(callback, *args)
            try:
                os.write(self._pipe[1], b"\0")  # type: ignore[index]
            except BlockingIOError:
                return made  # a full pipe wakes the loop anyway
            return made

        return call_and_wake

    def _drain(self) -> None:
        try:
            os.read(self._pipe[0], 4096)  # type: ignore[index]
        except BlockingIOError:
            return
