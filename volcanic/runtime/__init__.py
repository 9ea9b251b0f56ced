"""How the assistant thinks: the Runner protocol and what implements it."""

from volcanic.runtime.base import Outcome, PastTurn, Runner, Sink, Turn, TurnFailedError, TurnState

__all__ = ["Outcome", "PastTurn", "Runner", "Sink", "Turn", "TurnFailedError", "TurnState"]
