"""The guard's policy: which addresses are public, and every way to write one down."""

from ipaddress import IPv4Address, IPv6Address, ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytest_django.fixtures import Settings

from volcanic.outbound import OutboundError
from volcanic.outbound.addresses import IPAddress, Verdict, judge, parse_ipv4
from volcanic.outbound.targets import is_opened, may_reach, parse_url

# Ranges by their first and last address, public space in between. Written from the registries of special-purpose
# addresses, without a look at the code.
RANGES_4 = """
closed  0.0.0.0         0.255.255.255
private 10.0.0.0        10.255.255.255
private 100.64.0.0      100.100.100.199
closed  100.100.100.200 100.100.100.200
private 100.100.100.201 100.127.255.255
private 127.0.0.0       127.255.255.255
closed  168.63.129.16   168.63.129.16
private 169.254.0.0     169.254.0.22
closed  169.254.0.23    169.254.0.23
private 169.254.0.24    169.254.168.255
closed  169.254.169.0   169.254.170.255
private 169.254.171.0   169.254.255.255
private 172.16.0.0      172.31.255.255
closed  192.0.0.0       192.0.0.255
closed  192.0.2.0       192.0.2.255
closed  192.88.99.0     192.88.99.255
private 192.168.0.0     192.168.255.255
closed  198.18.0.0      198.19.255.255
closed  198.51.100.0    198.51.100.255
closed  203.0.113.0     203.0.113.255
closed  224.0.0.0       255.255.255.255
"""
RANGES_6 = """
inside  ::                     ::
private ::1                    ::1
inside  ::2                    ::ffff:ffff
closed  ::1:0:0                ::fffe:ffff:ffff
inside  ::ffff:0:0             ::ffff:ffff:ffff
closed  ::1:0:0:0              64:ff9a:ffff:ffff:ffff:ffff:ffff:ffff
inside  64:ff9b::              64:ff9b::ffff:ffff
closed  64:ff9b::1:0:0         64:ff9b:0:ffff:ffff:ffff:ffff:ffff
inside  64:ff9b:1::            64:ff9b:1::ffff:ffff
closed  64:ff9b:1::1:0:0       1fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff
closed  2001::                 2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff
closed  2001:db8::             2001:db8:ffff:ffff:ffff:ffff:ffff:ffff
closed  2002::                 2002:ffff:ffff:ffff:ffff:ffff:ffff:ffff
closed  3fff::                 3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff
closed  4000::                 fbff:ffff:ffff:ffff:ffff:ffff:ffff:ffff
private fc00::                 fd00:41:ffff:ffff:ffff:ffff:ffff:ffff
private fd00:42::              fd00:42::41
closed  fd00:42::42            fd00:42::42
private fd00:42::43            fd00:ec1:ffff:ffff:ffff:ffff:ffff:ffff
closed  fd00:ec2::             fd00:ec2:ffff:ffff:ffff:ffff:ffff:ffff
private fd00:ec3::             fd20:ce::253
closed  fd20:ce::254           fd20:ce::254
private fd20:ce::255           fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff
closed  fe00::                 fe7f:ffff:ffff:ffff:ffff:ffff:ffff:ffff
private fe80::                 febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff
closed  fec0::                 ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff
"""


def _ranges(table: str) -> list[tuple[str, int, int]]:
    rows = [line.split() for line in table.split("\n") if line]
    return [(verdict, int(ip_address(first)), int(ip_address(last))) for verdict, first, last in rows]


ORACLE_4, ORACLE_6 = _ranges(RANGES_4), _ranges(RANGES_6)


def _oracle(address: IPAddress) -> str:
    number = int(address)
    ranges = ORACLE_4 if address.version == 4 else ORACLE_6
    verdicts = [verdict for verdict, first, last in ranges if first <= number <= last]
    assert len(verdicts) <= 1, "the oracle contradicts itself"
    if verdicts == ["inside"]:
        return _oracle(IPv4Address(number % 2**32))
    return verdicts[0] if verdicts else "public"


_EDGES_4 = [edge + step for _, *edges in ORACLE_4 for edge in edges for step in (-1, 0, 1)]
_EDGES_6 = [edge + step for _, *edges in ORACLE_6 for edge in edges for step in (-1, 0, 1)]
_ANY_4 = st.one_of(
    st.integers(0, 2**32 - 1),
    st.sampled_from(_EDGES_4),
    *(st.integers(first, last) for _, first, last in ORACLE_4),
).map(lambda number: IPv4Address(number % 2**32))
_CARRIED = st.builds(
    lambda prefix, inner: int(IPv6Address(prefix)) + int(inner),
    st.sampled_from(["::", "::ffff:0:0", "64:ff9b::", "64:ff9b:1::", "64:ff9b:1:1::", "64:ff9b:1::1:0:0"]),
    _ANY_4,
)
_ANY_6 = st.one_of(
    st.integers(0, 2**128 - 1),
    st.integers(2**125, 2**126 - 1),  # 2000::/3
    st.sampled_from(_EDGES_6),
    *(st.integers(first, last) for _, first, last in ORACLE_6),
    _CARRIED,
).map(lambda number: IPv6Address(number % 2**128))


@given(st.one_of(_ANY_4, _ANY_6))
def test_the_policy_is_the_table_s(address: IPAddress) -> None:
    assert judge(address).value == _oracle(address)


@pytest.mark.parametrize(("edges", "kind"), [(_EDGES_4, IPv4Address), (_EDGES_6, IPv6Address)])
def test_every_edge_of_every_range(edges: list[int], kind: type[IPAddress]) -> None:
    for number in edges:
        if 0 <= number < 2 ** kind(0).max_prefixlen:
            assert judge(kind(number)).value == _oracle(kind(number)), kind(number)


@given(st.one_of(_ANY_4, _ANY_6))
def test_no_more_is_public_than_the_standard_library_says(address: IPAddress) -> None:
    """`is_global` lets through too much, but what it stops is stopped, except where an IPv4 address is inside."""
    if judge(address) is Verdict.PUBLIC and not (address.version == 6 and int(address) >> 125 == 0):
        assert address.is_global
        assert not address.is_multicast


@given(_ANY_4, st.data())
def test_every_spelling_of_an_ipv4_address_is_that_address(address: IPv4Address, data: st.DataObject) -> None:
    """One to four parts, each decimal, octal or hexadecimal, with and without leading zeros."""
    packed = list(address.packed)
    count = data.draw(st.integers(1, 4))
    numbers = [*packed[: count - 1], int.from_bytes(bytes(packed[count - 1 :]))]
    forms = st.sampled_from(["{:d}", "0{:o}", "000{:o}", "0x{:x}", "0x00{:x}"])
    spelling = ".".join(data.draw(forms).format(number) for number in numbers)
    assert parse_ipv4(spelling) == address
    assert parse_url(f"https://{spelling.upper()}/").host == str(address)


@pytest.mark.parametrize(
    ("host", "form"),
    [
        ("0", "0.0.0.0"),
        ("127.1", "127.0.0.1"),
        ("127.0.0.1.", "127.0.0.1"),
        ("2130706433", "127.0.0.1"),
        ("0x7f000001", "127.0.0.1"),
        ("0X7F.1", "127.0.0.1"),
        ("017700000001", "127.0.0.1"),
        ("0x", "0.0.0.0"),
        ("１２７.０.０.１", "127.0.0.1"),  # noqa: RUF001
        ("①②⑦。⓪。⓪。①", "127.0.0.1"),
        ("xn--", "xn--"),
        ("1.2.3.0xg", "1.2.3.0xg"),
        ("[::ffff:10.0.0.1]", "::ffff:a00:1"),
        ("[0:0:0:0:0:FFFF:0A00:0001]", "::ffff:a00:1"),
        ("[::]", "::"),
        ("[::1]", "::1"),
        ("EXAMPLE.com.", "example.com"),
        ("1.2.3.4.example.com", "1.2.3.4.example.com"),
        ("0x7f.example", "0x7f.example"),
        ("bücher.example", "xn--bcher-kva.example"),
        ("db_1", "db_1"),
    ],
)
def test_hosts_have_one_form(host: str, form: str) -> None:
    assert parse_url(f"https://{host}/").host == form


@pytest.mark.parametrize(
    "host",
    [
        *["", ".", "..", "a..b", "-" * 64, "a." * 130 + "a", "%31%32%37.0.0.1", "a b", "a\tb", "a\\b", "exa\u00admple"],
        *["256.1.1.1", "1.2.3.4.5", "1.2.3.08", "4294967296", "1.2.3.４５６", "1..1"],  # noqa: RUF001
        *["[fe80::1%eth0]", "[fe80::1%251]", "[::1", "::1", "[]", "[127.0.0.1]", "[::1].", "[v1.a]", "[[::1]]"],
        *["ａ／ｂ", "ex℀mple", "a\u200bb", "a*b", "a:b:c"],  # noqa: RUF001
    ],
)
def test_what_is_no_host_is_refused(host: str) -> None:
    with pytest.raises(OutboundError) as caught:
        parse_url(f"https://{host}/")
    assert caught.value.permanent


@pytest.mark.parametrize(
    ("url", "path", "authority"),
    [
        ("https://a.example", "/", "a.example"),
        ("HTTPS://A.example:443/x", "/x", "a.example"),
        ("https://a.example:8443?q=1#part", "/?q=1", "a.example:8443"),
        ("https://a.example:/ä?ü='b'&[c]=%20", "/%C3%A4?%C3%BC='b'&[c]=%20", "a.example"),
        ("https://[2606:4700::1111]:8443/", "/", "[2606:4700::1111]:8443"),
        ("https://a.example#@b.example/", "/", "a.example"),
        ("https://a.example/..//@b.example", "/..//@b.example", "a.example"),
    ],
)
def test_what_is_sent(url: str, path: str, authority: str) -> None:
    target = parse_url(url)
    assert (target.path, target.authority) == (path, authority)


@pytest.mark.parametrize(
    ("entry", "host", "ports"),
    [
        ("Peer.Internal", "peer.internal", [80, 8080]),
        ("peer.internal.:8080", "peer.internal", [8080]),
        ("10.0.0.5", "10.0.0.5", [80, 8080]),
        ("0x0a.0.0.5:80", "10.0.0.5", [80]),
        ("fd00::5", "fd00::5", [80, 8080]),
        ("[FD00:0::5]:8080", "fd00::5", [8080]),
        ("https://peer.internal", "", []),
        ("*.internal", "", []),
        ("peer.internal:99999", "", []),
        ("", "", []),
    ],
)
def test_opened_hosts_are_matched_exactly(settings: Settings, entry: str, host: str, ports: list[int]) -> None:
    settings.ALLOWED_PRIVATE_HOSTS = [entry]
    hosts = ["peer.internal", "sub.peer.internal", "internal", "10.0.0.5", "10.0.0.6", "fd00::5", "*.internal"]
    opened = [(name, port) for name in hosts for port in (80, 8080) if is_opened(name, port)]
    assert opened == [(host, port) for port in ports]


@pytest.mark.parametrize("setting", [("ALLOW_PRIVATE_URLS", True), ("ALLOWED_PRIVATE_HOSTS", ["peer.internal"])])
def test_opening_opens_private_ranges_only(settings: Settings, setting: tuple[str, object]) -> None:
    opened = ["127.0.0.1", "10.1.2.3", "172.20.0.1", "192.168.1.1", "100.64.0.1", "169.254.1.1", "::1", "fd12::1"]
    opened += ["fe80::1", "::ffff:10.0.0.1", "64:ff9b::10.0.0.1"]
    closed = ["169.254.169.254", "::ffff:169.254.169.254", "fd00:ec2::254", "0.0.0.0", "::", "224.0.0.1", "ff02::1"]
    closed += ["255.255.255.255", "168.63.129.16", "198.18.0.1", "192.0.2.1", "fec0::1", "2002:a00:1::", "2001::1"]
    assert not any(may_reach(ip_address(text), "peer.internal", 443) for text in opened + closed)
    setattr(settings, *setting)
    assert all(may_reach(ip_address(text), "peer.internal", 443) for text in opened)
    assert not any(may_reach(ip_address(text), "peer.internal", 443) for text in closed)
