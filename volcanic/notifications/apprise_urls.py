"""Channels of the owner: parses, checks and masks Apprise addresses, and sends a text to one of them.

An address holds tokens and passwords, and Apprise's own masking leaves paths and headers in. Therefore only
`channel_shown` makes an address fit to be shown, and `_safe` cleans Apprise's error texts. Apprise reads a hundred
modules for the first address, so this module imports Apprise on first use and not when Django starts.
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

# Address options that make some plugins read a file of this machine.
_FILES = ("keyfile", "subfile", "pgp_key", "pgp_privkey")


def channel_lines(text: str | None) -> list[str]:
    """Returns the addresses in a text, one a line. Skips empty lines and lines that begin with #."""
    lines = [line.strip() for line in (text or "").splitlines()]
    return [line for line in lines if line and not line.startswith("#")]


def channels_check(text: str) -> list[str]:
    """Returns the addresses in a text.

    Raises ValidationError for an address that is invalid or can't be used here, and for more than MAX_CHANNELS. The
    error gives line numbers and never repeats an address.
    """
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
    """Returns a channel's text for people: the service, and the host or account that Apprise considers public.

    Paths and options are left out, since they can hold tokens. For an unusual address, only the service is shown.
    """
    plugin = _plugin(url)
    if plugin is None:
        return UNKNOWN
    public = _public(plugin)
    host = f" ({public.scheme}://{public.netloc})" if public else ""
    return cut(f"{plugin.service_name}{host}", MAX_SHOWN)


def channel_send(url: str, title: str, text: str) -> str:
    """Sends a text to one channel and returns an error text, "" for success.

    Blocks without a time limit; `volcanic.notifications.sending` runs this function in a process with a time limit.
    """
    from apprise import Apprise, NotifyFormat

    plugin = _plugin(url)
    if plugin is None or _problem(url):
        return "The address can't be used here."
    apprise = Apprise(asset=plugin.asset)
    apprise.add(plugin)
    # A caller may have written the text, so it must not be read as HTML or Markdown.
    result = apprise.notify(title=title, body=text, body_format=NotifyFormat.TEXT)
    if result:
        return ""
    said = "; ".join(entry.message for entry in result.logs())
    return _safe(said, url) or "The service refused the message."


def _asset() -> "AppriseAsset":
    from apprise import AppriseAsset

    # A service_timeout would make Apprise send in a pool of its own. Storage in memory keeps secrets off the disk.
    return AppriseAsset(
        app_id="Volcanic",
        async_mode=False,
        service_timeout=0,
        storage_mode="memory",
        pgp_autogen=False,
        pem_autogen=False,
    )


def _plugin(url: str) -> "NotifyBase | None":
    """Returns Apprise's plugin for an address; None if no plugin accepts the address."""
    from apprise import Apprise, OverflowMode

    plugin = Apprise.instantiate(url, asset=_asset())
    if plugin is not None and plugin.overflow_mode == OverflowMode.UPSTREAM:
        # The service would refuse a text that is too long. The owner's session has the whole text.
        plugin.overflow_mode = OverflowMode.TRUNCATE
    return plugin


def _problem(url: str) -> str:
    """Returns the reason why an address can't be used, "" if the address can be used."""
    from apprise.plugins import N_MGR, url_to_dict

    parsed: dict[str, Any] | None = url_to_dict(url)  # type: ignore[no-untyped-call]
    if parsed is None:
        return "Apprise does not know this kind of address."
    kind = N_MGR[parsed["schema"]]
    # Plugins that notify only this machine (desktop, syslog). Apprise does not mark these plugins, but they, and no
    # others, need neither a host nor an account.
    if any("{" not in template.replace("{schema}", "") for template in kind.templates):
        return "this channel shows notifications on the server itself, where you don't see them."
    plugin = _plugin(url)
    if plugin is None:
        return "this address is incomplete, or its service needs software that is not installed here."
    if any(parsed.get(name) for name in _FILES) or _has_attachment(plugin):
        return "an option of this address names a file."
    if _public(plugin) is None:
        return "this address has an invalid part, such as a bracket or a character that only looks like a letter."
    return ""


def _public(plugin: "NotifyBase") -> SplitResult | None:
    """Returns the scheme and the host or account that can be shown; None if the plugin's masked URL is invalid.

    A plugin can build an invalid URL from an unusual address.
    """
    try:
        masked = urlsplit(plugin.url(privacy=True))  # type: ignore[no-untyped-call]
    except Exception:  # noqa: BLE001  a plugin may raise anything, and other channels must go on
        return None
    return SplitResult(masked.scheme, masked.netloc.rpartition("@")[2], "", "", "")


def _has_attachment(plugin: "NotifyBase") -> bool:
    from apprise import AppriseAttachment

    return any(isinstance(value, AppriseAttachment) and len(value) > 0 for value in vars(plugin).values())


def _safe(said: str, url: str) -> str:
    """Returns Apprise's error text without pieces of the address, any of which can be a token."""
    plugin = _plugin(url)
    public = _public(plugin) if plugin else None
    shown = {public.scheme, public.hostname or ""} if public else set()
    pieces = {piece for whole in (url, unquote(url)) for piece in re.split(r"[/?&=:@,#\s]+", whole) if len(piece) > 3}
    for piece in sorted(pieces - shown, key=len, reverse=True):
        said = said.replace(piece, "…")
    return cut(redact(one_line(said)), MAX_ERROR)
