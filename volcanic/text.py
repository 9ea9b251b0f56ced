"""Text that PostgreSQL and JSON can hold, whoever wrote it."""

import re
from typing import Any

# U+0000, which jsonb refuses, and lone surrogates, which are no text at all. A JSON parser has already joined pairs.
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
REPLACEMENT = "\ufffd"


def clean_text(text: str) -> str:
    """Returns `text` with U+0000 and lone surrogates replaced by U+FFFD."""
    return _UNSTORABLE.sub(REPLACEMENT, text)


def cut(text: str, most: int) -> str:
    """Returns `text` with at most so many characters; where some are left out, the last one is an ellipsis."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def one_line(text: str, most: int | None = None) -> str:
    """Returns `text` on one line; of at most `most` characters where that is given, as `cut` does."""
    line = " ".join(text.split())
    return line if most is None else cut(line, most)


def clean_json(value: Any) -> Any:
    """Returns a parsed JSON value with every text in it, keys included, cleaned as `clean_text` does."""
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, dict):
        return {clean_text(key): clean_json(item) for key, item in value.items()}
    if isinstance(value, list):
        return [clean_json(item) for item in value]
    return value
