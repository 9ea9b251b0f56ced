"""The HTTP endpoints of A2A: authentication, rate limits, parsing, the protocol's methods, and the agent cards."""
