"""Redaction of secrets in all text that leaves the process: log lines, error texts, tool results."""

import re
from collections.abc import MutableMapping
from typing import Any

MASK = "[redacted]"

# Texts that look like a credential. API keys of this product start with `vk_`.
_PATTERNS = re.compile(
    r"(?P<keep>\b(?:bearer|basic)\s+|\bx-api-key['\"]?\s*[:=]\s*['\"]?|"
    r"\b(?:api[_-]?key|access[_-]?token|password|secret)['\"]?\s*[:=]\s*['\"]?|\b[a-z+]{2,20}://[^/\s:@]{0,100}:)"
    r"(?P<value>[^\s'\",;@]{4,})"
    r"|\b(?:vk_|sk-|sk_)[A-Za-z0-9_-]{8,}",
    re.IGNORECASE,
)


def redact(text: str) -> str:
    """Returns `text` with `[redacted]` in place of everything that looks like a key, a token or a password."""
    return _PATTERNS.sub(lambda match: (match.group("keep") or "") + MASK, text)


def redact_event(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Redacts every text of a log event, tracebacks included. A structlog processor."""
    for name, value in event.items():
        if isinstance(value, str):
            event[name] = redact(value)
        elif name == "exception":
            event[name] = _redact_deep(value)
    return event


def _redact_deep(value: Any) -> Any:
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, dict):
        return {key: _redact_deep(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_redact_deep(item) for item in value]
    return value
