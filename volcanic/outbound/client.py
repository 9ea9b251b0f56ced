"""HTTP requests and downloads with checked addresses, time limits and size limits."""

import asyncio
import re
import ssl
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import BinaryIO
from urllib.parse import unquote, unquote_to_bytes, urlsplit

import httpcore

from volcanic.outbound.backend import GuardedBackend, checked_addresses
from volcanic.outbound.targets import OutboundError, Target, parse_url

_CHECK_SECONDS = 10.0
_KEPT_CONNECTIONS = 20
_KEEP_SECONDS = 4.0  # many servers close idle connections after 5 seconds: few requests meet a dead connection
# Headers that only this module sets. Other values would not match the request that is sent.
_OWN_HEADERS = {"host", "content-length", "transfer-encoding", "accept-encoding", "connection"}
_RETRY_STATUSES = {408, 425, 429}


@dataclass(frozen=True)
class Response:
    """A server's response. Header names are in lower case; the body is the raw bytes, not decoded."""

    status: int
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True)
class Downloaded:
    """The result of a download: size in bytes, and the type and name that the server claims.

    The name is not safe: check the name before use.
    """

    size: int
    media_type: str | None
    filename: str | None


async def check_url(url: str) -> None:
    """Raises OutboundError unless `url` may be called. The URL itself is not called.

    Each later connection is checked again, so that a change of DNS after this check opens nothing.
    """
    target = parse_url(url)
    try:
        async with asyncio.timeout(_CHECK_SECONDS):
            await checked_addresses(target.host, target.port)
    except TimeoutError:
        raise OutboundError(f"{target.host} does not resolve", False) from None


async def request(
    method: str,
    url: str,
    *,
    headers: Mapping[str, str] | None = None,
    content: bytes | None = None,
    timeout: float,  # noqa: ASYNC109  spans the whole request, DNS included
    max_response_bytes: int,
) -> Response:
    """Sends one request and returns the response with any status. Redirects are returned, not followed.

    Raises OutboundError if the request fails, takes longer than `timeout` seconds, or if the body has more than
    `max_response_bytes`.
    """
    target = parse_url(url)
    async with _exchange(method, target, headers or {}, content, timeout) as response:
        body = bytearray()
        async for chunk in _chunks(response, max_response_bytes, target.host):
            body += chunk
        return Response(response.status, _headers(response), bytes(body))


async def download(
    url: str,
    *,
    limit: int,
    timeout: float,  # noqa: ASYNC109  spans the whole download, DNS included
    into: BinaryIO | Path,
) -> Downloaded:
    """Streams the body of `url` into a file object, or into a new file at a path, which must not exist yet.

    Raises OutboundError for more than `limit` bytes, for more than `timeout` seconds, and for any status but 200,
    redirects included. After any failure, the new file is deleted; a file object is cut to its old length.
    """
    target = parse_url(url)
    async with _exchange("GET", target, {"accept": "*/*"}, None, timeout) as response:
        _require_ok(response.status, target.host)
        headers = _headers(response)
        if int(headers.get("content-length", "0")) > limit:  # the HTTP parser accepts only a few digits here
            raise _too_large(target.host, limit, permanent=True)
        size = 0
        with _whole_or_nothing(into) as file:
            async for chunk in _chunks(response, limit, target.host, permanent=True):
                file.write(chunk)  # a write to the page cache is quicker than a hand-over to a thread
                size += len(chunk)
    return Downloaded(size, _media_type(headers), _filename(headers, url))


@cache
def ssl_context() -> ssl.SSLContext:
    """Returns the TLS context, which trusts the certificates of the system and of certifi. Tests replace this."""
    return httpcore.default_ssl_context()


_pools: dict[asyncio.AbstractEventLoop, tuple[httpcore.AsyncConnectionPool, AsyncIterator[None]]] = {}


async def _pool() -> httpcore.AsyncConnectionPool:
    """Returns the running loop's connection pool. The address of each kept connection was checked at its connect.

    The number of connections has no limit, so that a server that hangs does not delay requests to other servers.
    """
    loop = asyncio.get_running_loop()
    if loop not in _pools:
        pool = httpcore.AsyncConnectionPool(
            ssl_context=ssl_context(),
            max_connections=None,
            max_keepalive_connections=_KEPT_CONNECTIONS,
            keepalive_expiry=_KEEP_SECONDS,
            network_backend=GuardedBackend(),
        )
        _pools[loop] = pool, _closed_with_loop(loop, pool)
        await anext(_pools[loop][1])
    return _pools[loop][0]


async def _closed_with_loop(loop: asyncio.AbstractEventLoop, pool: httpcore.AsyncConnectionPool) -> AsyncIterator[None]:
    """Closes `pool` when `loop` shuts down its asynchronous generators, which happens before the loop is closed."""
    try:
        yield
    finally:
        _pools.pop(loop, None)
        await pool.aclose()


@asynccontextmanager
async def _exchange(
    method: str,
    target: Target,
    headers: Mapping[str, str],
    content: bytes | None,
    timeout: float,  # noqa: ASYNC109  httpcore's own limits apply to each read: a drip of bytes outlives them
) -> AsyncIterator[httpcore.Response]:
    """Sends a request and yields the response. Turns all network errors into OutboundError."""
    host = target.host
    try:
        async with (
            asyncio.timeout(timeout),
            (await _pool()).stream(
                method,
                httpcore.URL(scheme=target.scheme, host=host, port=target.port, target=target.path),
                headers=_request_headers(method, target, headers, content),
                content=content,
            ) as response,
        ):
            yield response
    except TimeoutError:
        raise OutboundError(f"{host} did not answer within {timeout:g} seconds", False) from None
    except httpcore.ConnectError as error:
        if any(isinstance(cause, ssl.SSLCertVerificationError) for cause in error.args):
            raise OutboundError(f"the certificate of {host} is not valid", False) from error
        raise OutboundError(f"{host} can't be reached", False) from error
    except httpcore.LocalProtocolError as error:
        raise OutboundError("the request's method or headers are not valid", True) from error
    except httpcore.ProtocolError as error:
        raise OutboundError(f"{host} broke off, or does not speak HTTP", False) from error
    except (httpcore.NetworkError, httpcore.TimeoutException, ssl.SSLError) as error:
        raise OutboundError(f"the connection to {host} broke", False) from error


def _request_headers(
    method: str, target: Target, headers: Mapping[str, str], content: bytes | None
) -> list[tuple[bytes, bytes]]:
    """Returns the headers to send. They decline compression, since a few compressed bytes can become gigabytes."""
    given = {name.lower(): value for name, value in headers.items() if name.lower() not in _OWN_HEADERS}
    own = {"host": target.authority, "accept-encoding": "identity"}
    if content is not None or method in {"POST", "PUT", "PATCH"}:
        own["content-length"] = str(len(content or b""))
    try:
        return [
            (name.encode("ascii"), value.encode("ascii"))
            for name, value in (own | {"user-agent": "Volcanic"} | given).items()
        ]
    except UnicodeEncodeError:
        raise OutboundError("the request's method or headers are not valid", True) from None


def _headers(response: httpcore.Response) -> dict[str, str]:
    headers: dict[str, str] = {}
    for raw_name, raw_value in response.headers:
        name, value = raw_name.decode("latin-1").lower(), raw_value.decode("latin-1")
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    return headers


async def _chunks(response: httpcore.Response, limit: int, host: str, permanent: bool = False) -> AsyncIterator[bytes]:
    """Yields the raw body in pieces. Raises OutboundError after more than `limit` bytes."""
    size = 0
    async for chunk in response.aiter_stream():
        size += len(chunk)
        if size > limit:
            raise _too_large(host, limit, permanent)
        yield chunk


def _too_large(host: str, limit: int, permanent: bool) -> OutboundError:
    return OutboundError(f"{host} sends more than {limit} bytes", permanent)


def _require_ok(status: int, host: str) -> None:
    if 300 <= status < 400:
        raise OutboundError(f"{host} answered {status}, and redirects are not followed", True)
    if status != 200:
        raise OutboundError(f"{host} answered {status}", 400 <= status < 500 and status not in _RETRY_STATUSES)


@contextmanager
def _whole_or_nothing(into: BinaryIO | Path) -> Iterator[BinaryIO]:
    """Yields the file for a download, and undoes all writes if the block raises."""
    if isinstance(into, Path):
        with into.open("xb") as file:  # x neither overwrites an existing file nor follows a planted link
            try:
                yield file
                file.flush()
            except BaseException:
                into.unlink(missing_ok=True)
                raise
        return
    start = into.tell() if into.seekable() else None
    try:
        yield into
    except BaseException:
        if start is not None:
            into.seek(start)
            into.truncate()
        raise


def _media_type(headers: Mapping[str, str]) -> str | None:
    media_type = headers.get("content-type", "").partition(";")[0].strip().lower()
    return media_type if re.fullmatch(r"[a-z0-9!#$&^_.+-]{1,127}/[a-z0-9!#$&^_.+-]{1,127}", media_type) else None


def _filename(headers: Mapping[str, str], url: str) -> str | None:
    """Returns the name from the server's headers, else the last part of the URL's path; None if both are empty.

    The name comes without folders and control characters.
    """
    disposition = headers.get("content-disposition", "")
    if match := re.search(r"""filename\*\s*=\s*utf-8'[^']*'([^;\s]+)""", disposition, re.IGNORECASE):
        name = unquote_to_bytes(match[1]).decode("utf-8", "replace")
    elif match := re.search(r'filename\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^;\s"]+))', disposition, re.IGNORECASE):
        quoted = re.sub(r"\\(.)", r"\1", match[1] or match[2] or "")
        # Headers are latin-1 by the standard, but names in headers are UTF-8 in practice.
        name = quoted.encode("latin-1").decode("utf-8", "replace")
    else:
        name = unquote(urlsplit(url).path)
    name = re.split(r"[/\\]", name)[-1]
    return "".join(character for character in name if character.isprintable()).strip() or None
