"""The HTTP endpoints: authentication, limits, parsing, the methods of the protocol, the agent cards."""
