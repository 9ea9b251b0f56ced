"""Runtime of agent turns: the Runner protocol and its implementations."""

from volcanic.runtime.base import Inbound, Outcome, PastTurn, Runner, Sink, Turn, TurnFailedError, TurnState

__all__ = ["Inbound", "Outcome", "PastTurn", "Runner", "Sink", "Turn", "TurnFailedError", "TurnState"]
