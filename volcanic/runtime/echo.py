"""Echo runner: answers each turn with the turn's text. It needs no model, no key and no pydantic-ai."""

from volcanic.runtime.base import Outcome, Sink, Turn, TurnState


class EchoRunner:
    """Answers each turn with the turn's own text."""

    async def run(self, turn: Turn, sink: Sink) -> Outcome:
        """Returns `turn.text` as the answer, and the turn's messages in the neutral form that other runners read."""
        await sink.text(turn.text)
        messages = [{"role": "user", "text": turn.text}, {"role": "assistant", "text": turn.text}]
        return Outcome(state=TurnState.COMPLETED, text=turn.text, messages=messages)
