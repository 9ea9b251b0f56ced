"""The smallest runner: it answers with what it was told. No model, no key, no pydantic-ai."""

from volcanic.runtime.base import Outcome, Sink, Turn, TurnState


class EchoRunner:
    """Answers each turn with the turn's own text."""

    async def run(self, turn: Turn, sink: Sink) -> Outcome:
        """Returns `turn.text` as the answer, and as the turn's messages in the neutral form other runners read."""
        await sink.text(turn.text)
        messages = [{"role": "user", "text": turn.text}, {"role": "assistant", "text": turn.text}]
        return Outcome(state=TurnState.COMPLETED, text=turn.text, messages=messages)
