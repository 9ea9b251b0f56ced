"""Strict parser for URLs that other parties choose, and the check of hosts and addresses against the settings."""

import re
import string
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import IPv6Address, ip_address
from urllib.parse import SplitResult, quote, urlsplit

import idna
from django.conf import settings

from volcanic.outbound.addresses import IPAddress, Verdict, judge, parse_ipv4

MAX_URL_LENGTH = 2048
_PORTS = {"https": 443, "http": 80}


class OutboundError(Exception):
    """A request that was refused, or that failed.

    The text may be shown to the other side: it names only the URL's host, and no address from DNS. If `permanent` is
    true, the same request will fail again; if false, a retry may succeed.
    """

    def __init__(self, message: str, permanent: bool) -> None:
        super().__init__(message, permanent)
        self.message = message
        self.permanent = permanent

    def __str__(self) -> str:
        return self.message


@dataclass(frozen=True)
class Target:
    """The target of a request. `host` is a lower-case ASCII name without a final dot, or a normalized IP address."""

    scheme: str
    host: str
    port: int
    path: str  # with the query

    @property
    def authority(self) -> str:
        """Value of the Host header."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"


def parse_url(url: str) -> Target:
    """Returns the parsed target of `url`. Raises a permanent OutboundError for an invalid URL.

    IP addresses are not checked here. Characters that parsers read differently are refused: blanks, control characters,
    backslashes, userinfo.
    """
    if len(url) > MAX_URL_LENGTH:
        raise OutboundError(f"the URL is longer than {MAX_URL_LENGTH} characters", True)
    if any(character.isspace() or character == "\\" or not character.isprintable() for character in url):
        raise OutboundError("the URL holds blanks, control characters or backslashes", True)
    try:
        parts = urlsplit(url)
    except ValueError:
        raise OutboundError("the URL has no valid host", True) from None
    if parts.scheme not in _PORTS:
        raise OutboundError("the URL must begin with https://", True)
    if "@" in parts.netloc:
        raise OutboundError("the URL must not hold a user name or password", True)
    host, port = _split_authority(parts.netloc)
    target = Target(parts.scheme, normal_host(host), port or _PORTS[parts.scheme], _path(parts))
    if target.scheme == "http" and not is_opened(target.host, target.port):
        raise OutboundError("the URL must begin with https://", True)
    return target


def _split_authority(netloc: str) -> tuple[str, int | None]:
    """Returns host and port; the port is None if the URL names no port. Raises OutboundError if one is invalid."""
    match = re.fullmatch(r"(?a:(\[[^\[\]]*\]|[^:\[\]]+)(?::(\d*))?)", netloc)
    if match is None:
        raise OutboundError("the URL has no valid host", True)
    digits = match[2]
    if not digits:
        return match[1], None
    if len(digits) > 5 or not 1 <= int(digits) <= 65535:
        raise OutboundError("the URL's port is not valid", True)
    return match[1], int(digits)


def normal_host(host: str) -> str:
    """Returns the normal form of a URL's host, a name or an address. Raises OutboundError for an invalid host."""
    try:
        if "%" in host:
            raise ValueError("a zone, or percent-encoding")
        if host.startswith("["):
            return str(IPv6Address(host[1:-1]))
        name = host.lower() if host.isascii() else idna.encode(host, uts46=True).decode()
        name = name.removesuffix(".")
        if literal := parse_ipv4(name):
            return str(literal)
    except ValueError:  # includes IDNAError
        raise OutboundError("the URL has no valid host", True) from None
    if len(name) > 253 or not re.fullmatch(r"(?:[a-z0-9_-]{1,63}\.)*[a-z0-9_-]{1,63}", name):
        raise OutboundError("the URL has no valid host", True)
    return name


def _path(parts: SplitResult) -> str:
    # The path stays unchanged, since a URL may be signed. Only characters outside ASCII are encoded.
    path = parts.path or "/"
    return quote(f"{path}?{parts.query}" if parts.query else path, safe=string.punctuation)


def is_opened(host: str, port: int) -> bool:
    """Returns whether the settings open plain HTTP and private addresses for `host`, given in normal form."""
    if settings.ALLOW_PRIVATE_URLS:
        return True
    opened = _opened_hosts(tuple(settings.ALLOWED_PRIVATE_HOSTS))
    return (host, None) in opened or (host, port) in opened


@lru_cache(maxsize=8)
def _opened_hosts(entries: tuple[str, ...]) -> frozenset[tuple[str, int | None]]:
    """Returns the parsed entries of ALLOWED_PRIVATE_HOSTS as pairs of host and port; None stands for every port.

    An entry is `host`, `host:port` or an address, IPv6 with or without brackets. Invalid entries are skipped.
    """
    opened: set[tuple[str, int | None]] = set()
    for entry in entries:
        try:
            opened.add((str(ip_address(entry.strip())), None))
            continue
        except ValueError:
            pass
        try:
            host, port = _split_authority(entry.strip())
            opened.add((normal_host(host), port))
        except OutboundError:
            continue  # an invalid entry opens nothing
    return frozenset(opened)


def may_reach(address: IPAddress, host: str, port: int) -> bool:
    """Returns whether a connection for `host` and `port` may go to `address`."""
    verdict = judge(address)
    return verdict is Verdict.PUBLIC or (verdict is Verdict.PRIVATE and is_opened(host, port))
