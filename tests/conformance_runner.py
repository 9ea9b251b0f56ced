"""A runner for the A2A conformance kit (a2aproject/a2a-tck): a message's id selects the scenario of its turn.

The kit's `scenarios/*.feature` name the ids' prefixes. Serve it with RUNNER=tests.conformance_runner.ConformanceRunner.
"""

import asyncio
import base64
import os
from collections.abc import Awaitable, Callable
from typing import Any

from volcanic.runtime.base import Outcome, Sink, Turn, TurnState

# The conformance kit's own variable. A task that the kit subscribes to again has to run for twice this time.
_STREAMING_TIMEOUT_SECONDS = float(os.environ.get("TCK_STREAMING_TIMEOUT", "2"))
# Long enough for the sink to write each piece of text in an event of its own.
_BETWEEN_CHUNKS_SECONDS = 0.4
_FILE = {"filename": "output.txt", "mediaType": "text/plain"}

Scenario = Callable[[Sink], Awaitable[Outcome]]


def _completed(text: str, message: str = "") -> Outcome:
    return Outcome(state=TurnState.COMPLETED, text=text, message=message)


def _answer(text: str, message: str = "") -> Scenario:
    """Returns a scenario that completes at once, with an answer and optionally a status message."""

    async def run(sink: Sink) -> Outcome:
        return _completed(text, message)

    return run


def _end(state: TurnState, text: str) -> Scenario:
    """Returns a scenario that ends in another state than completed, with `text` as the status message."""

    async def run(sink: Sink) -> Outcome:
        return Outcome(state=state, text=text)

    return run


def _artifact(part: dict[str, Any]) -> Scenario:
    """Returns a scenario that writes one artifact of one part, then completes."""

    async def run(sink: Sink) -> Outcome:
        await sink.artifact({"artifactId": "output", "name": "output", "parts": [part]})
        return _completed("The artifact is ready.")

    return run


def _chunks(*chunks: str) -> Scenario:
    """Returns a scenario that answers in pieces, which a stream shows one by one."""

    async def run(sink: Sink) -> Outcome:
        for chunk in chunks:
            await sink.text(chunk)
            await asyncio.sleep(_BETWEEN_CHUNKS_SECONDS)
        return _completed("".join(chunks))

    return run


async def _stay_active(sink: Sink) -> Outcome:
    """Works for the time that the kit needs to subscribe again, and half a second longer."""
    await asyncio.sleep(2 * _STREAMING_TIMEOUT_SECONDS + 0.5)
    return _completed("Resubscription is over")


_FILE_PART = {"raw": base64.b64encode(b"Generated file content").decode(), **_FILE}
_DATA_PART = {"data": {"key": "value", "count": 42}}
_HELLO = _answer("Hello from TCK", message="Hello from TCK")

# The first matching prefix decides, so a longer prefix stands before a shorter one that begins the same.
SCENARIOS: dict[str, Scenario] = {
    "tck-complete-task": _HELLO,
    "tck-artifact-text": _artifact({"text": "Generated text content"}),
    "tck-artifact-file-url": _artifact({"url": "https://example.com/output.txt", **_FILE}),
    "tck-artifact-file": _artifact(_FILE_PART),
    "tck-artifact-data": _artifact(_DATA_PART),
    # The kit asks for a message without a task here. This server answers every message with a task.
    "tck-message-response": _answer("Direct message response", message="Direct message response"),
    "tck-input-required": _end(TurnState.INPUT_REQUIRED, "Input required"),
    "tck-reject-task": _end(TurnState.REJECTED, "rejected"),
    "tck-stream-001": _chunks("Stream hello from TCK"),
    "tck-stream-002": _answer("Completed"),
    "tck-stream-003": _chunks("Stream task lifecycle"),
    "tck-stream-ordering-001": _chunks("Ordered output"),
    "tck-stream-artifact-text": _chunks("Streamed text content"),
    "tck-stream-artifact-file": _artifact(_FILE_PART),
    "tck-stream-artifact-chunked": _chunks("chunk-1 ", "chunk-2"),
    "test-resubscribe-message-id": _stay_active,
}


class ConformanceRunner:
    """Runs the scenario that the conformance kit expects for the id of the turn's message."""

    async def run(self, turn: Turn, sink: Sink) -> Outcome:
        """Runs the scenario of the message's id; any other message is completed like `tck-complete-task`."""
        message_id = str(turn.message["messageId"])
        scenario = next((found for prefix, found in SCENARIOS.items() if message_id.startswith(prefix)), _HELLO)
        return await scenario(sink)
