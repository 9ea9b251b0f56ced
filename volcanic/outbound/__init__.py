"""Guarded HTTP client for URLs that other parties choose: webhooks, files, agent cards.

The client uses `https` only, follows no redirects, ignores proxies from the environment, and connects only to public
addresses, which are checked at each connect. The settings `ALLOW_PRIVATE_URLS` and `ALLOWED_PRIVATE_HOSTS` open more.
Every failure raises `OutboundError`.
"""

from volcanic.outbound.client import Downloaded, Response, check_url, download, request
from volcanic.outbound.targets import OutboundError

__all__ = ["Downloaded", "OutboundError", "Response", "check_url", "download", "request"]
