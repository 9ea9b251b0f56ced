"""The owner's channels: addresses that Apprise knows, one a line, and a text sent to one of them.

An address holds tokens and passwords, and Apprise's own way to mask it leaves paths and headers in. So it is shown by
`channel_shown` only, and what Apprise says of a failure passes `_safe`. Apprise reads a hundred modules when the first
address is looked at: it is imported then, and not when Django starts.
"""

import re
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, unquote, urlsplit

from django.core.exceptions import ValidationError

from volcanic.redaction import redact
from volcanic.text import cut, one_line

if TYPE_CHECKING:
    from apprise import AppriseAsset
    from apprise.plugins import NotifyBase

MAX_CHANNELS = 10
MAX_SHOWN = 200
MAX_ERROR = 300
UNKNOWN = "A channel that is no longer known"

# Options by which some plugins read a file of this machine.
_FILES = ("keyfile", "subfile", "pgp_key", "pgp_privkey")


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
    Paths and options are left out, as they can hold tokens too; of an odd address, everything but the service is."""
    plugin = _plugin(url)
    if plugin is None:
        return UNKNOWN
    public = _public(plugin)
    host = f" ({public.scheme}://{public.netloc})" if public else ""
    return cut(f"{plugin.service_name}{host}", MAX_SHOWN)


def channel_send(url: str, title: str, text: str) -> str:
    """Sends a text to one channel, however long that takes: see channel_process.py. Returns what went wrong, "" if
    nothing did."""
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
    if _public(plugin) is None:
        return "a part of this address can't be right: a bracket, or a character that only looks like another."
    return ""


def _public(plugin: "NotifyBase") -> SplitResult | None:
    """Returns the scheme and the host or account that can be shown, None where they can't be told from the rest: what a
    plugin puts together of an odd address can be no address any more."""
    try:
        masked = urlsplit(plugin.url(privacy=True))  # type: ignore[no-untyped-call]
    except Exception:  # noqa: BLE001  a hundred plugins, and all other channels go on without this one
        return None
    return SplitResult(masked.scheme, masked.netloc.rpartition("@")[2], "", "", "")


def _has_attachment(plugin: "NotifyBase") -> bool:
    from apprise import AppriseAttachment

    return any(isinstance(value, AppriseAttachment) and len(value) > 0 for value in vars(plugin).values())


def _safe(said: str, url: str) -> str:
    """Returns what Apprise said without pieces of the address, which can be a token wherever they stand."""
    plugin = _plugin(url)
    public = _public(plugin) if plugin else None
    shown = {public.scheme, public.hostname or ""} if public else set()
    pieces = {piece for whole in (url, unquote(url)) for piece in re.split(r"[/?&=:@,#\s]+", whole) if len(piece) > 3}
    for piece in sorted(pieces - shown, key=len, reverse=True):
        said = said.replace(piece, "…")
    return cut(redact(one_line(said)), MAX_ERROR)
