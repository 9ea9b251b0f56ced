"""All HTTP that a stranger's words can aim: webhooks, files, agent cards.

`https` only, no redirects, no proxies from the environment, and only public addresses, checked at each connect.
`ALLOW_PRIVATE_URLS` and `ALLOWED_PRIVATE_HOSTS` open more. Everything that goes wrong is an `OutboundError`.
"""

from volcanic.outbound.client import Downloaded, Response, check_url, download, request
from volcanic.outbound.targets import OutboundError

__all__ = ["Downloaded", "OutboundError", "Response", "check_url", "download", "request"]
