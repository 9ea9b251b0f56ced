"""Requests and downloads through the guard."""

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
_KEEP_SECONDS = 4.0  # less than the five after which many servers hang up, so that few requests meet a dead connection
# Set here alone: what else they say would be about another request than the one that is sent.
_OWN_HEADERS = {"host", "content-length", "transfer-encoding", "accept-encoding", "connection"}
_RETRY_STATUSES = {408, 425, 429}


@dataclass(frozen=True)
class Response:
    """A server's answer. Header names are in lower case; the body is as it came, in whatever encoding."""

    status: int
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True)
class Downloaded:
    """What a download brought. Type and name are the server's claims; the name still needs a look before use."""

    size: int
    media_type: str | None
    filename: str | None


async def check_url(url: str) -> None:
    """Raises OutboundError unless `url` may be called, as far as can be said without calling it.

    Each connection is checked again when it is made, so a later change of DNS opens nothing.
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
    timeout: float,  # noqa: ASYNC109  it spans everything, the name's resolution too
    max_response_bytes: int,
) -> Response:
    """Sends one request and returns the answer, a redirect or an error too, or raises OutboundError.

    No redirect is followed. The answer is in within `timeout` seconds and `max_response_bytes`, or it's an error.
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
    timeout: float,  # noqa: ASYNC109  as above
    into: BinaryIO | Path,
) -> Downloaded:
    """Streams what `url` holds into a file object, or into a new file at a path where nothing must be yet.

    Raises OutboundError for more than `limit` bytes, for any status but 200, and for a redirect. After any failure the
    file is gone again, or the file object as long as before.
    """
    target = parse_url(url)
    async with _exchange("GET", target, {"accept": "*/*"}, None, timeout) as response:
        _require_ok(response.status, target.host)
        headers = _headers(response)
        if int(headers.get("content-length", "0")) > limit:  # the HTTP parser takes digits only, and not many
            raise _too_large(target.host, limit, permanent=True)
        size = 0
        with _whole_or_nothing(into) as file:
            async for chunk in _chunks(response, limit, target.host, permanent=True):
                file.write(chunk)  # into the page cache: quicker than handing it to a thread
                size += len(chunk)
    return Downloaded(size, _media_type(headers), _filename(headers, url))


@cache
def ssl_context() -> ssl.SSLContext:
    """The certificates we trust: the system's, and certifi's. Tests put their own in its place."""
    return httpcore.default_ssl_context()


_pools: dict[asyncio.AbstractEventLoop, tuple[httpcore.AsyncConnectionPool, AsyncIterator[None]]] = {}


async def _pool() -> httpcore.AsyncConnectionPool:
    """Returns the running loop's connections. Kept ones were checked when they were made.

    Their number has no limit: a server that hangs must not make requests to others wait.
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
    """A started generator: whoever ends a loop in good order finishes its generators first."""
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
    timeout: float,  # noqa: ASYNC109  httpcore's own limits are for each read; a drip of bytes outlives them
) -> AsyncIterator[httpcore.Response]:
    """Opens a request and turns all that goes wrong on the network into OutboundError."""
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
    """The headers to send. Compression is declined: a few bytes of it can become gigabytes."""
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
    """The raw body, as long as it stays within `limit` bytes."""
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
    """Opens what a download goes into, and undoes what was written if it fails."""
    if isinstance(into, Path):
        with into.open("xb") as file:  # x: neither a file that is there is lost, nor a planted link followed
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
    """The name the server gives, else the last part of the URL's path: without folders and control characters."""
    disposition = headers.get("content-disposition", "")
    if match := re.search(r"""filename\*\s*=\s*utf-8'[^']*'([^;\s]+)""", disposition, re.IGNORECASE):
        name = unquote_to_bytes(match[1]).decode("utf-8", "replace")
    elif match := re.search(r'filename\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^;\s"]+))', disposition, re.IGNORECASE):
        quoted = re.sub(r"\\(.)", r"\1", match[1] or match[2] or "")
        # Headers are latin-1 by the book; names in them are UTF-8 in practice.
        name = quoted.encode("latin-1").decode("utf-8", "replace")
    else:
        name = unquote(urlsplit(url).path)
    name = re.split(r"[/\\]", name)[-1]
    return "".join(character for character in name if character.isprintable()).strip() or None
