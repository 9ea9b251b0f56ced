"""Tool `bash`: runs commands in the sandbox, or without it in the owner's turns if OWNER_BASH is `unsafe`."""

import asyncio
import logging
import os
from pathlib import Path

from django.conf import settings
from django.utils import timezone

from volcanic.runtime.base import Inbound
from volcanic.runtime.tools import ToolContext, ToolError
from volcanic.text import clean_text
from volcanic.toolbox import processes
from volcanic.toolbox.paths import WorkspaceFiles
from volcanic.toolbox.processes import Finished, Space
from volcanic.toolbox.sandbox import ENVIRONMENT, isolated, mounts, sandbox
from volcanic.toolbox.space import ensure_space

logger = logging.getLogger(__name__)

# The kernel allows at most 128 kB for one argument.
MAX_COMMAND_BYTES = 100_000
# Characters of a command's output that the model gets: half from the beginning, half from the end.
MAX_SHOWN = 32_000
# Limits of each process: no core files, 512 open files, 2 GB of address space, files of 100 MB, and 256 processes of
# the user, which has no effect if the worker runs as root. processes.py watches the limits of all processes together.
_LIMITS = "ulimit -c 0 -n 512 -v 2097152 -f 102400 -u 256 -t {seconds} || exit 125; "
_RUN = ("/bin/bash", "--noprofile", "--norc", "-c")
_THEN = 'exec /bin/bash --noprofile --norc -c "$1"'


def unsafe() -> bool:
    """Returns whether the owner's own turns run commands without the sandbox."""
    return bool(settings.OWNER_BASH == "unsafe")


def offered(inbound: Inbound | None) -> bool:
    """Returns whether the tool is offered: if the sandbox works, and in the owner's turns if OWNER_BASH is `unsafe`."""
    return (inbound is None and unsafe()) or sandbox().works


async def bash(context: ToolContext, command: str) -> str:
    """Runs a command line with bash and returns what it prints.

    It starts in the workspace (/workspace), with the usual programs, without a network; /tmp is its own and gone
    afterwards. Nothing goes on running after it. When you work for a caller, the top of the workspace, your owner's
    files there (AGENTS.md, MEMORY.md and the like) and what begins with a dot are read-only: write into the folders
    that are there, the caller's own inbox folder for example.

    Args:
        command: The command line, of one or more lines.
    """
    if "\0" in command or len(command.encode(errors="replace")) > MAX_COMMAND_BYTES:
        raise ToolError("The command is too long, or holds a NUL character. Write it to a file and run that.")
    if not await asyncio.to_thread(offered, context.inbound):
        raise ToolError(f"Commands can't be run: {sandbox().problem}.")
    # A turn runs one command at a time, since the limits apply to each command.
    lock: asyncio.Lock = context.state.setdefault("bash", asyncio.Lock())
    async with lock:
        seconds = _seconds(context)
        if seconds <= 0:
            raise ToolError("There is no time left in this turn.")
        if context.inbound is None and unsafe():
            return _told(await _run_unsafe(context, clean_text(command), seconds))
        return _told(await _run_isolated(context, clean_text(command), seconds))


async def _run_isolated(context: ToolContext, command: str, seconds: float) -> Finished:
    space = await _space(context)
    mounted = await asyncio.to_thread(mounts, context.workspace, context.inbound)
    limited = [*_RUN, _LIMITS.format(seconds=max(round(seconds), 1)) + _THEN, "bash", command]
    finished = await processes.run(
        lambda status: isolated(mounted, limited, status=status),
        environment=ENVIRONMENT,
        folder=Path("/"),
        seconds=seconds,
        space=space,
    )
    if finished.exit_code is None and not finished.stopped:
        logger.warning("a command in the sandbox came to nothing: %s", finished.output[:500].decode(errors="replace"))
        raise ToolError("The command could not be started in the sandbox, or was killed by the system.")
    return finished


async def _run_unsafe(context: ToolContext, command: str, seconds: float) -> Finished:
    inherited = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    return await processes.run(
        lambda _status: [*_RUN, command],
        environment=ENVIRONMENT | inherited,
        folder=context.workspace,
        seconds=seconds,
        sandboxed=False,
    )


async def _space(context: ToolContext) -> Space:
    left = await ensure_space(context)
    files = WorkspaceFiles.of(context)
    limit: int = settings.WORKSPACE_MAX_BYTES

    def used() -> int:
        if context.inbound is None:
            return left + 1  # the owner's usage was not measured before, so the lost free space alone decides
        return files.usage(enough=limit + 1) - (limit - left)

    return Space(folder=context.workspace, left=left, used=used)


def _seconds(context: ToolContext) -> float:
    limit = float(settings.BASH_TIMEOUT_SECONDS)
    if context.deadline is None:
        return limit
    return min(limit, (context.deadline - timezone.now()).total_seconds())


def _told(finished: Finished) -> str:
    """Returns the text about a command's result for the model."""
    lines = [_shortened(finished.output).rstrip("\n")]
    if finished.stopped:
        lines.append(f"(The command was stopped: {finished.stopped}.)")
    elif finished.exit_code:
        lines.append(f"(exit code {finished.exit_code})")
    return "\n".join(line for line in lines if line) or "(It printed nothing.)"


def _shortened(output: bytes) -> str:
    text = clean_text(output.decode(errors="replace"))
    if len(text) <= MAX_SHOWN:
        return text
    half = MAX_SHOWN // 2
    return f"{text[:half]}\n… ({len(text) - MAX_SHOWN} characters left out) …\n{text[-half:]}"
