"""Supervision of several programs together."""

import asyncio

from volcanic.processes.supervisor.child import Child, Emit
from volcanic.processes.supervisor.spec import Spec


class Supervisor:
    """Several programs, started in order and stopped in the opposite order."""

    def __init__(self, emit: Emit) -> None:
        self.children: list[Child] = []
        self._emit = emit
        self._hasty = False

    def start(self, *specs: Spec) -> list[Child]:
        """Starts the programs, all at the same time. Must be called in the event loop's thread."""
        started = [Child(spec, self._emit) for spec in specs]
        self.children += started
        return started

    async def wait_ready(self) -> None:
        """Returns when every child is ready. Raises GaveUp as soon as a child was given up."""
        waiters = [asyncio.create_task(child.wait_ready()) for child in self.children]
        try:
            for waiter in asyncio.as_completed(waiters):
                await waiter
        finally:
            for task in waiters:
                task.cancel()
            await asyncio.gather(*waiters, return_exceptions=True)

    async def supervise(self) -> None:
        """Waits while the children are kept alive. Raises GaveUp when a child died too often."""
        tasks = {child.task for child in self.children}
        if not tasks:
            await asyncio.get_running_loop().create_future()
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()

    async def stop(self) -> None:
        """Stops the children one after the other, the last started first. May be called again."""
        while self.children:
            child = self.children[-1]
            if self._hasty:
                child.hasten()
            await child.stop()
            self.children.pop()

    def hasten(self) -> None:
        """Shortens the grace periods of the current or next stop."""
        self._hasty = True
        for child in self.children:
            child.hasten()
