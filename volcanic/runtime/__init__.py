"""How the assistant thinks: the Runner protocol and what implements it."""

from volcanic.runtime.base import Inbound, Outcome, PastTurn, Runner, Sink, Turn, TurnFailedError, TurnState

__all__ = ["Inbound", "Outcome", "PastTurn", "Runner", "Sink", "Turn", "TurnFailedError", "TurnState"]
