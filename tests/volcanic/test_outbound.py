"""The guard of outbound requests: what is refused, what can be opened, and TLS; with a resolver that lies."""

import asyncio
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpcore
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from pytest_django.fixtures import Settings

from tests.volcanic.peers import (
    PUBLIC,
    Names,
    answer,
    get,
    refused,
    serving,
)
from tests.waiting import PATIENCE
from volcanic import outbound
from volcanic.outbound import OutboundError, backend, client

pytestmark = pytest.mark.usefixtures("names")
opened = pytest.mark.usefixtures("peer_opened")


@pytest.fixture
def dialled(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """Where connections would have gone; none is made."""
    dialled: list[tuple[str, int]] = []

    async def connect_tcp(self: object, host: str, port: int, *_: object) -> httpcore.AsyncNetworkStream:
        dialled.append((host, port))
        raise httpcore.ConnectError("this test has no network")

    monkeypatch.setattr(httpcore.AnyIOBackend, "connect_tcp", connect_tcp)
    return dialled


# What is refused before anything is sent.

INWARD = [
    *["http://169.254.169.254/latest/meta-data", "https://169.254.169.254/", "http://127.0.0.1:8000/admin"],
    *["https://[::ffff:10.0.0.1]/", "https://0/", "https://2130706433/", "https://0x7f.1/", "https://0177.0.0.1/"],
    *["https://127.1/", "https://localhost/", "https://10.0.0.1./", "https://[::1]/", "https://[fe80::1%25eth0]/"],
    *["https://１２７.０.０.１/", "https://[64:ff9b::7f00:1]/", "https://[::127.0.0.1]/", "https://inside.test/"],  # noqa: RUF001
    *["https://mixed.test/", "https://mixed6.test/", "ftp://public.test/", "file:///etc/passwd", "public.test"],
    *["https://user@public.test/", "https://public.test:0/", "https://public.test:65536/", "https:///x", "https://"],
    *["https://public.test\\@inside.test/", "https://public.test /", "https://public.test/\r\nX: y", "//public.test/"],
    *["https://100.64.0.1/", "https://198.18.0.1/", "https://168.63.129.16/", "https://255.255.255.255/"],
    *["http://public.test/", "https://public.test/" + "a" * 2048, "unix:///run/docker.sock", "data:,x", ""],
]


@pytest.mark.parametrize("url", INWARD)
async def test_inward_urls_are_refused_when_registered_and_when_called(
    url: str, names: Names, dialled: list[tuple[str, int]], tmp_path: Path
) -> None:
    names.answers |= {
        "localhost": [["::1", "127.0.0.1"]],
        "inside.test": [["10.1.2.3"]],
        "mixed.test": [[PUBLIC, "192.168.1.1"]],
        "mixed6.test": [["2606:4700::1111", "fd00::1"]],
        "public.test": [[PUBLIC]],
    }
    for attempt in (
        outbound.check_url(url),
        get(url),
        outbound.download(url, limit=10, timeout=PATIENCE, into=tmp_path / "file"),
    ):
        with pytest.raises(OutboundError) as caught:
            await attempt
        assert caught.value.permanent
        for secret in ("10.1.2.3", "192.168", "fd00", "user@", "\r", "aaa"):
            assert secret not in str(caught.value)
    assert not dialled
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("url", ["https://public.test/a?b#c", "https://public.test:8443", f"https://{PUBLIC}/"])
async def test_public_urls_pass(url: str, names: Names) -> None:
    names.answers["public.test"] = [[PUBLIC, "2606:4700::1111"]]
    await outbound.check_url(url)


async def test_a_name_that_does_not_resolve_may_do_so_later(names: Names) -> None:
    names.answers["empty.test"] = [[]]
    await refused(outbound.check_url("https://nowhere.test/"), "nowhere.test does not resolve", permanent=False)
    await refused(get("https://empty.test/"), "empty.test does not resolve", permanent=False)


async def test_a_resolver_that_hangs(names: Names, monkeypatch: pytest.MonkeyPatch) -> None:
    async def resolve(host: str, port: int) -> list[str]:
        await asyncio.Event().wait()
        return []

    monkeypatch.setattr(backend, "resolve", resolve)
    monkeypatch.setattr(client, "_CHECK_SECONDS", 0.02)
    await refused(outbound.check_url("https://slow.test/"), "slow.test does not resolve", permanent=False)
    await refused(get("https://slow.test/", timeout=0.02), "did not answer within 0.02 seconds", permanent=False)


async def test_a_name_that_turns_inward_after_the_check(names: Names) -> None:
    """Both ways: the answer of the connection itself counts, and it is asked for once."""
    async with serving(answer(b"secret")) as server:
        names.answers["rebind.test"] = [[PUBLIC], ["127.0.0.1"]]
        url = f"https://rebind.test:{server.port}/"
        await outbound.check_url(url)
        await refused(get(url), "rebind.test leads to an address that is not public", permanent=True)
    assert server.connections == 0
    assert names.asked == ["rebind.test", "rebind.test"]


async def test_the_checked_address_is_dialled(names: Names, dialled: list[tuple[str, int]]) -> None:
    names.answers["rebind.test"] = [["2606:4700::1111", PUBLIC, PUBLIC], ["127.0.0.1"]]
    await refused(get("https://rebind.test:8443/"), "rebind.test can't be reached", permanent=False)
    assert dialled == [("2606:4700::1111", 8443), (PUBLIC, 8443)]
    assert names.asked == ["rebind.test"]


async def test_the_system_s_resolver(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the tests replace elsewhere: literals and /etc/hosts need no network."""
    monkeypatch.undo()
    assert await backend.resolve("127.1", 443) == ["127.0.0.1"]
    await refused(get("https://localhost/"), "localhost leads to an address that is not public", permanent=True)


async def test_unix_sockets_are_refused(tmp_path: Path) -> None:
    attempt = backend.GuardedBackend().connect_unix_socket(str(tmp_path / "socket"))
    await refused(attempt, "unix sockets are refused", permanent=True)


# What the operator can open.


async def test_private_urls_can_be_opened(settings: Settings, names: Names) -> None:
    settings.ALLOW_PRIVATE_URLS = True
    names.answers["metadata.test"] = [["127.0.0.1", "169.254.169.254"]]
    async with serving(answer(b"hello")) as server:
        for host in ("127.0.0.1", "peer.test", "2130706433"):
            url = f"http://{host}:{server.port}/"
            await outbound.check_url(url)
            assert (await get(url)).body == b"hello"
        for host in ("0.0.0.0", "[::]", "169.254.169.254", "[fd00:ec2::254]", "metadata.test", "224.0.0.1"):
            await refused(outbound.check_url(f"http://{host}:{server.port}/"), "not public|not a public", True)


async def test_a_named_host_can_be_opened_for_one_port(settings: Settings, names: Names) -> None:
    names.answers["other.test"] = [["127.0.0.1"]]
    async with serving(answer(b"hello")) as server, serving(answer(b"closed")) as closed:
        settings.ALLOWED_PRIVATE_HOSTS = [f"Peer.test:{server.port}"]
        assert (await get(f"http://peer.test:{server.port}/")).body == b"hello"
        for host, port in (("peer.test", closed.port), ("other.test", server.port), ("127.0.0.1", server.port)):
            await refused(get(f"http://{host}:{port}/"), "must begin with https", permanent=True)
            await refused(get(f"https://{host}:{port}/"), "public", permanent=True)
    assert (len(server.requests), closed.connections) == (1, 0)


@pytest.mark.parametrize(
    ("url", "text"),
    [
        ("http://public.test/", "the URL must begin with https://"),
        ("https://user:password@public.test/", "the URL must not hold a user name or password"),
        ("https://public.test:0/", "the URL's port is not valid"),
        ("https://public.test/" + "a" * 2048, "the URL is longer than 2048 characters"),
        ("https://public.test/\n", "the URL holds blanks, control characters or backslashes"),
        ("https:///path", "the URL has no valid host"),
        ("https://0x0a000001/?token=secret", "10.0.0.1 is not a public address"),
        ("https://inside.test/?token=secret", "inside.test leads to an address that is not public"),
    ],
)
async def test_refusals_say_what_is_wrong_and_no_more(url: str, text: str, names: Names) -> None:
    names.answers |= {"public.test": [[PUBLIC]], "inside.test": [["10.0.0.1"]]}
    with pytest.raises(OutboundError) as caught:
        await outbound.check_url(url)
    assert str(caught.value) == text


# TLS.


@pytest.fixture(scope="session")
def certified(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A certificate for peer.test that vouches for itself, and its key."""
    folder = tmp_path_factory.mktemp("tls")
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test authority")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("peer.test")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    (folder / "cert.pem").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    (folder / "key.pem").write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return folder / "cert.pem", folder / "key.pem"


@pytest.fixture
def tls(certified: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> ssl.SSLContext:
    """The server's context; the client trusts its certificate."""
    trusting = ssl.create_default_context(cafile=str(certified[0]))
    monkeypatch.setattr(client, "ssl_context", lambda: trusting)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(*certified)
    return context


@opened
async def test_tls_is_about_the_name_not_the_address(tls: ssl.SSLContext, names: Names, settings: Settings) -> None:
    async with serving(answer(b"hello"), tls) as server:
        assert (await get(f"https://peer.test:{server.port}/")).body == b"hello"
        assert server.server_names == ["peer.test"]
        assert f"Host: peer.test:{server.port}".lower().encode() in server.requests[0].lower()
        settings.ALLOWED_PRIVATE_HOSTS = ["other.test"]
        names.answers["other.test"] = [["127.0.0.1"]]
        attempt = get(f"https://other.test:{server.port}/")
        await refused(attempt, "the certificate of other.test is not valid", permanent=False)
    assert len(server.requests) == 1


@opened
async def test_unknown_certificates_are_refused(tls: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "ssl_context", httpcore.default_ssl_context)
    async with serving(answer(b"hello"), tls) as server:
        attempt = get(f"https://peer.test:{server.port}/")
        await refused(attempt, "the certificate of peer.test is not valid", permanent=False)
    assert not server.requests


@opened
async def test_a_handshake_that_is_never_answered() -> None:
    """The connection is closed when the time is up; else strangers could use up our file descriptors."""
    async with serving(answer(b"hello")) as server:
        await refused(get(f"https://peer.test:{server.port}/", timeout=0.05), "did not answer within", False)
        async with asyncio.timeout(1):
            await asyncio.gather(*server.handlers)  # they end when the client hangs up
    assert server.connections == 1
    assert not server.requests


@opened
async def test_a_server_without_tls() -> None:
    async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"220 mail.example ESMTP\r\n")
        await reader.read()
        writer.close()

    server = await asyncio.start_server(greet, "127.0.0.1", 0)
    async with server:
        url = f"https://peer.test:{server.sockets[0].getsockname()[1]}/"
        await refused(get(url), "peer.test can't be reached", permanent=False)
