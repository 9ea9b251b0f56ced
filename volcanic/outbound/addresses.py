"""Policy for IP addresses: public, private or closed to outgoing connections.

`ipaddress.is_global` can't replace this policy: it treats multicast, 6to4, site-local and IPv4-compatible addresses as
global.
"""

import re
from enum import Enum
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

IPAddress = IPv4Address | IPv6Address


class Verdict(Enum):
    """The policy's verdict on an address."""

    PUBLIC = "public"
    PRIVATE = "private"  # opened by ALLOW_PRIVATE_URLS and ALLOWED_PRIVATE_HOSTS
    CLOSED = "closed"  # never reached


# Metadata services of clouds, which give credentials to any client inside. They lie in private ranges. Private ranges
# can be opened by settings, these addresses can't.
_METADATA_4 = (
    IPv4Network("169.254.169.0/24"),
    IPv4Network("169.254.170.0/24"),  # AWS: credentials of containers
    IPv4Network("169.254.0.23/32"),  # Tencent
    IPv4Network("100.100.100.200/32"),  # Alibaba
)
_METADATA_6 = (
    IPv6Network("fd00:ec2::/32"),  # AWS
    IPv6Network("fd20:ce::254/128"),  # Google
    IPv6Network("fd00:42::42/128"),  # Scaleway
)
_PRIVATE_4 = (
    IPv4Network("10.0.0.0/8"),
    IPv4Network("100.64.0.0/10"),  # carrier-grade NAT, and tailnets
    IPv4Network("127.0.0.0/8"),
    IPv4Network("169.254.0.0/16"),
    IPv4Network("172.16.0.0/12"),
    IPv4Network("192.168.0.0/16"),
)
_PRIVATE_6 = (
    IPv6Network("::1/128"),
    IPv6Network("fc00::/7"),  # unique local
    IPv6Network("fe80::/10"),  # link-local
)
_CLOSED_4 = (
    IPv4Network("0.0.0.0/8"),  # "this host", another name of loopback
    IPv4Network("168.63.129.16/32"),  # Azure's host, inside a public range
    IPv4Network("192.0.0.0/24"),  # protocol assignments
    IPv4Network("192.0.2.0/24"),  # documentation
    IPv4Network("192.88.99.0/24"),  # 6to4 relays
    IPv4Network("198.18.0.0/15"),  # benchmarking
    IPv4Network("198.51.100.0/24"),  # documentation
    IPv4Network("203.0.113.0/24"),  # documentation
    IPv4Network("224.0.0.0/4"),  # multicast
    IPv4Network("240.0.0.0/4"),  # reserved, and broadcast
)
# Closed networks inside 2000::/3. All IPv6 space outside 2000::/3 is closed too, except for the other lists here.
_CLOSED_6 = (
    IPv6Network("2001::/23"),  # protocol assignments: Teredo, benchmarking, ORCHID
    IPv6Network("2001:db8::/32"),  # documentation
    IPv6Network("2002::/16"),  # 6to4
    IPv6Network("3fff::/20"),  # documentation
)
_GLOBAL_UNICAST = IPv6Network("2000::/3")
# Networks with an IPv4 address in the last 32 bits. A connection reaches that IPv4 address.
_CARRIES_4 = (
    IPv6Network("::ffff:0:0/96"),  # mapped
    IPv6Network("64:ff9b::/96"),  # NAT64
    # NAT64 of the local network. The rest of its /48 may hold the IPv4 address in other bits, so the rest is closed.
    IPv6Network("64:ff9b:1::/96"),
    IPv6Network("::/96"),  # compatible
)


def judge(address: IPAddress) -> Verdict:
    """Returns whether `address` is public, private or closed."""
    if isinstance(address, IPv4Address):
        return _judge_4(address)
    if any(address in network for network in _METADATA_6):
        return Verdict.CLOSED
    if any(address in network for network in _PRIVATE_6):
        return Verdict.PRIVATE
    if any(address in network for network in _CARRIES_4):
        return _judge_4(IPv4Address(int(address) & 0xFFFFFFFF))
    if address not in _GLOBAL_UNICAST or any(address in network for network in _CLOSED_6):
        return Verdict.CLOSED
    return Verdict.PUBLIC


def _judge_4(address: IPv4Address) -> Verdict:
    if any(address in network for network in _METADATA_4 + _CLOSED_4):
        return Verdict.CLOSED
    if any(address in network for network in _PRIVATE_4):
        return Verdict.PRIVATE
    return Verdict.PUBLIC


def parse_ipv4(host: str) -> IPv4Address | None:
    """Returns the IPv4 address that `host` spells in any form that the C library or a browser accepts; None for a name.

    `host` must be lower-case ASCII. A host whose last label is a number must be an address; raises ValueError if such a
    host is not a valid address.
    """
    parts = host.split(".")
    if not re.fullmatch(r"[0-9]+|0x[0-9a-f]*", parts[-1]):
        return None
    if len(parts) > 4:
        raise ValueError("too many parts")
    *leading, last = [_number(part) for part in parts]
    if any(number > 255 for number in leading) or last >= 256 ** (5 - len(parts)):
        raise ValueError("part out of range")
    return IPv4Address(sum(number << (24 - 8 * place) for place, number in enumerate(leading)) + last)


def _number(part: str) -> int:
    if part.startswith("0x"):
        return int(part[2:] or "0", 16)
    return int(part, 8 if part.startswith("0") else 10)
