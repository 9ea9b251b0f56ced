"""The owner's channels: addresses that Apprise knows, one a line, and a text sent to one of them.

An address holds tokens and passwords, and Apprise's own way to mask it leaves paths and headers in. So it is shown by
`channel_shown` only, and what Apprise says of a failure passes `_safe`. Apprise reads a hundred modules when the first
address is looked at: it is imported then, and not when Django starts.
"""

import re
import threading
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from django.core.exceptions import ValidationError

from volcanic.redaction import redact

if TYPE_CHECKING:
    from apprise import AppriseAsset
    from apprise.plugins import NotifyBase

MAX_CHANNELS = 10
MAX_ERROR = 300
# Texts on their way at a time, with those of channels that hang.
MAX_SENDING = 64
UNKNOWN = "A channel that is no longer known"

# Options by which some plugins read a file of this machine.
_FILES = ("keyfile", "subfile", "pgp_key", "pgp_privkey")
_sending = threading.BoundedSemaphore(MAX_SENDING)


def channel_lines(text: str | None) -> list[str]:
    """Returns the addresses in a text, one a line. Empty lines and those that begin with # are none."""
    lines = [line.strip() for line in (text or "").splitlines()]
    return [line for line in lines if line and not line.startswith("#")]


def channels_check(text: str) -> list[str]:
    """Returns the addresses in a text. Raises ValidationError for what is none, or is none to be used here; it names
    lines by their number and never repeats them."""
    problems = []
    for number, line in enumerate(text.splitlines(), 1):
        if channel_lines(line) and (problem := _problem(line.strip())):
            problems.append(f"Line {number}: {problem}")
    urls = channel_lines(text)
    if len(urls) > MAX_CHANNELS:
        problems.append(f"There can be {MAX_CHANNELS} channels at most.")
    if problems:
        raise ValidationError(problems)
    return urls


def channel_shown(url: str) -> str:
    """Returns how a channel is shown: the service, and the host or account as far as Apprise takes it for public.
    Paths and options are left out, as they can hold tokens too."""
    plugin = _plugin(url)
    if plugin is None:
        return UNKNOWN
    masked = urlsplit(plugin.url(privacy=True))  # type: ignore[no-untyped-call]
    return f"{plugin.service_name} ({masked.scheme}://{masked.netloc.rpartition('@')[2]})"[:200]


def channel_send(url: str, title: str, text: str) -> str:
    """Sends a text to one channel, however long that takes. Returns what went wrong, "" if nothing did."""
    from apprise import Apprise, NotifyFormat

    plugin = _plugin(url)
    if plugin is None or _problem(url):
        return "The address is none that can be used here."
    apprise = Apprise(asset=plugin.asset)
    apprise.add(plugin)
    # The text may hold a caller's words: it is text, and neither HTML nor Markdown.
    result = apprise.notify(title=title, body=text, body_format=NotifyFormat.TEXT)
    if result:
        return ""
    said = "; ".join(entry.message for entry in result.logs())
    return _safe(said, url) or "The service did not take it."


def channel_send_aside(url: str, title: str, text: str) -> "Future[str]":
    """Sends a text in a thread of its own, and returns the future of what `channel_send` returns.

    Whoever waits for it stops when they like: sockets have time limits, but a service that sends a byte now and then
    passes them all. A thread of a pool would be lost to others for so long.
    """
    future: Future[str] = Future()
    if not _sending.acquire(blocking=False):
        future.set_result("Too much is being sent at the moment.")
        return future

    def run() -> None:
        future.set_running_or_notify_cancel()  # from here on nobody cancels it: giving up waiting is all they can
        try:
            future.set_result(channel_send(url, title, text))
        except BaseException as error:  # noqa: BLE001  told to whoever waits
            future.set_exception(RuntimeError(type(error).__name__))
        finally:
            _sending.release()

    threading.Thread(target=run, name="channel", daemon=True).start()
    return future


def _asset() -> "AppriseAsset":
    from apprise import AppriseAsset

    # No time limit of Apprise's: it would send in a pool of its own. Nothing is kept on the disk either.
    return AppriseAsset(
        app_id="Volcanic",
        async_mode=False,
        service_timeout=0,
        storage_mode="memory",
        pgp_autogen=False,
        pem_autogen=False,
    )


def _plugin(url: str) -> "NotifyBase | None":
    """Returns Apprise's plugin for an address, None if there is none that works here."""
    from apprise import Apprise, OverflowMode

    plugin = Apprise.instantiate(url, asset=_asset())
    if plugin is not None and plugin.overflow_mode == OverflowMode.UPSTREAM:
        # A longer text than the service takes would be refused there. All of it is in the owner's session.
        plugin.overflow_mode = OverflowMode.TRUNCATE
    return plugin


def _problem(url: str) -> str:
    """Returns why an address can't be used, "" if it can."""
    from apprise.plugins import N_MGR, url_to_dict

    parsed: dict[str, Any] | None = url_to_dict(url)  # type: ignore[no-untyped-call]
    if parsed is None:
        return "this is no address that Apprise knows."
    kind = N_MGR[parsed["schema"]]
    # Apprise has no word for it, but these plugins, and no others, need neither a host nor an account.
    if any("{" not in template.replace("{schema}", "") for template in kind.templates):
        return "this channel shows something on the server itself, where you don't see it."
    plugin = _plugin(url)
    if plugin is None:
        return "this address is incomplete, or needs software that is not installed here."
    if any(parsed.get(name) for name in _FILES) or _has_attachment(plugin):
        return "an option of this address names a file."
    return ""


def _has_attachment(plugin: "NotifyBase") -> bool:
    from apprise import AppriseAttachment

    return any(isinstance(value, AppriseAttachment) and len(value) > 0 for value in vars(plugin).values())


def _safe(said: str, url: str) -> str:
    """Returns what Apprise said without pieces of the address, which can be a token wherever they stand."""
    shown = urlsplit(channel_shown(url).rpartition("(")[2].rstrip(")"))
    pieces = {piece for whole in (url, unquote(url)) for piece in re.split(r"[/?&=:@,#\s]+", whole) if len(piece) > 3}
    for piece in sorted(pieces - {shown.scheme, shown.hostname or ""}, key=len, reverse=True):
        said = said.replace(piece, "…")
    return redact(" ".join(said.split()))[:MAX_ERROR]
