"""Network backend for httpcore that connects only to checked addresses.

A name is resolved once for each connection. All answers are checked, and the connection uses a checked address. Earlier
or later DNS answers therefore don't matter (DNS rebinding). TLS still checks the certificate against the name.
"""

import asyncio
import socket
import ssl
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from ipaddress import ip_address
from typing import Any

import httpcore

from volcanic.outbound.addresses import IPAddress
from volcanic.outbound.targets import OutboundError, may_reach

# Threads for DNS lookups. A slow name server of another party must not occupy threads that other work needs: uvloop's
# getaddrinfo has four threads, shared with all other work.
_lookups = ThreadPoolExecutor(max_workers=32, thread_name_prefix="dns")
# Time limit in seconds for a connection to each address but the last.
_ATTEMPT_SECONDS = 3.0
_MAX_ATTEMPTS = 8


async def resolve(host: str, port: int) -> list[str]:
    """Returns the addresses of `host` from the system's resolver. Tests replace this function."""
    loop = asyncio.get_running_loop()
    answers = await loop.run_in_executor(
        _lookups, lambda: socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP)
    )
    return [str(answer[4][0]) for answer in answers]


async def checked_addresses(host: str, port: int) -> list[IPAddress]:
    """Returns the addresses of `host` (a name or an address), resolved once.

    Raises OutboundError if `host` has no address, or if one of its addresses is refused.
    """
    try:
        addresses: list[IPAddress] = [ip_address(host)]
        refusal = f"{host} is not a public address"
    except ValueError:
        refusal = f"{host} leads to an address that is not public"
        try:
            answers = await resolve(host, port)
        except (OSError, UnicodeError):
            answers = []
        # A dict removes duplicates and keeps the order. The zone after % names a local interface.
        addresses = list(dict.fromkeys(ip_address(answer.partition("%")[0]) for answer in answers))
    if not addresses:
        raise OutboundError(f"{host} does not resolve", False)
    if not all(may_reach(address, host, port) for address in addresses):
        raise OutboundError(refusal, True)
    return addresses


class _Stream(httpcore.AsyncNetworkStream):
    """A connection that is also closed when its TLS handshake is canceled. httpcore closes it only on an error."""

    def __init__(self, stream: httpcore.AsyncNetworkStream) -> None:
        self._stream = stream
        self.read, self.write, self.aclose = stream.read, stream.write, stream.aclose  # type: ignore[method-assign]
        self.get_extra_info = stream.get_extra_info  # type: ignore[method-assign]

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109  httpcore's signature
    ) -> httpcore.AsyncNetworkStream:
        try:
            return await self._stream.start_tls(ssl_context, server_hostname, timeout)
        except BaseException:
            await self._stream.aclose()
            raise


class GuardedBackend(httpcore.AsyncNetworkBackend):
    """httpcore's network backend with a check of each address before the connection."""

    def __init__(self) -> None:
        self._network = httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109  httpcore's signature
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """Returns a connection to the first checked address of `host` that answers, in the resolver's order.

        Raises OutboundError for refused addresses, and httpcore's errors if no address answers.
        """
        addresses = (await checked_addresses(host, port))[:_MAX_ATTEMPTS]
        for address in addresses[:-1]:
            try:
                return _Stream(await self._network.connect_tcp(str(address), port, _ATTEMPT_SECONDS, local_address))
            except (httpcore.ConnectError, httpcore.ConnectTimeout):
                continue
        return _Stream(await self._network.connect_tcp(str(addresses[-1]), port, timeout, local_address))

    async def connect_unix_socket(
        self,
        path: str,
        timeout: float | None = None,  # noqa: ASYNC109  httpcore's signature
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """Raises OutboundError, since no URL may lead to a socket file."""
        raise OutboundError("unix sockets are refused", True)

    async def sleep(self, seconds: float) -> None:
        """Sleeps for `seconds`."""
        await asyncio.sleep(seconds)
