"""The guard: connections go to addresses that were checked, and to no others.

A name is resolved once for each connection; all its answers are judged, and the judged address is the one dialled. So
it does not matter what DNS said earlier, or says a moment later. TLS still checks the certificate against the name.
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

# A stranger's name server may take its time: its lookups must not occupy the threads that others need (uvloop's
# getaddrinfo has four of them, shared with all else).
_lookups = ThreadPoolExecutor(max_workers=32, thread_name_prefix="dns")
# How long one of several addresses may keep the others waiting.
_ATTEMPT_SECONDS = 3.0
_MAX_ATTEMPTS = 8


async def resolve(host: str, port: int) -> list[str]:
    """Asks the system's resolver for the addresses of `host`. Tests put their own in its place."""
    loop = asyncio.get_running_loop()
    answers = await loop.run_in_executor(
        _lookups, lambda: socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP)
    )
    return [str(answer[4][0]) for answer in answers]


async def checked_addresses(host: str, port: int) -> list[IPAddress]:
    """Resolves `host` (a name or an address) once; OutboundError if it has no address, or one that is refused."""
    try:
        addresses: list[IPAddress] = [ip_address(host)]
        refusal = f"{host} is not a public address"
    except ValueError:
        refusal = f"{host} leads to an address that is not public"
        try:
            answers = await resolve(host, port)
        except (OSError, UnicodeError):
            answers = []
        # dict: in order, each once. The zone of a link-local answer is the local interface's name.
        addresses = list(dict.fromkeys(ip_address(answer.partition("%")[0]) for answer in answers))
    if not addresses:
        raise OutboundError(f"{host} does not resolve", False)
    if not all(may_reach(address, host, port) for address in addresses):
        raise OutboundError(refusal, True)
    return addresses


class _Stream(httpcore.AsyncNetworkStream):
    """A connection that is closed when its TLS handshake is given up: httpcore closes it only when that fails."""

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
    """httpcore's way to the network, with the guard in front."""

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
        """Connects to one of the checked addresses of `host`, trying them in the resolver's order."""
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
        """Refuses: no URL leads to a socket file."""
        raise OutboundError("unix sockets are refused", True)

    async def sleep(self, seconds: float) -> None:
        """Waits."""
        await asyncio.sleep(seconds)
