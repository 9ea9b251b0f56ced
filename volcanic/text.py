"""Text that PostgreSQL and JSON can hold, whoever wrote it."""

import re
from typing import Any

# U+0000, which jsonb refuses, and lone surrogates, which are no text at all. A JSON parser has already joined pairs.
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
# What turns the words after it around, U+202E for example.
_DIRECTIONS = re.compile("[\u202a-\u202e\u2066-\u2069]")
REPLACEMENT = "\ufffd"
# What begins or ends a quotation, but for marks that are apostrophes too.
_QUOTATION_MARKS = re.compile('["\u201c\u201d\u201e\u201f\u00ab\u00bb\u301d\u301e\u301f\uff02]')


def clean_text(text: str) -> str:
    """Returns `text` with U+0000 and lone surrogates replaced by U+FFFD."""
    return _UNSTORABLE.sub(REPLACEMENT, text)


def one_way(text: str) -> str:
    """Returns others' words for a line that has ours in it too, without the marks that would turn ours around."""
    return _DIRECTIONS.sub("", text)


def cut(text: str, most: int) -> str:
    """Returns `text` with at most so many characters; where some are left out, the last one is an ellipsis."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def one_line(text: str, most: int | None = None) -> str:
    """Returns `text` on one line; of at most `most` characters where that is given, as `cut` does."""
    line = " ".join(text.split())
    return line if most is None else cut(line, most)


def quoted(text: str, most: int | None = None) -> str:
    """Returns another's words as a quotation that they can't end: on one line, of at most `most` characters as `cut`
    does, with an apostrophe for each quotation mark in them."""
    return f"“{_QUOTATION_MARKS.sub(chr(39), one_line(text, most))}”"


def clean_json(value: Any) -> Any:
    """Returns a parsed JSON value with every text in it, keys included, cleaned as `clean_text` does."""
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, dict):
        return {clean_text(key): clean_json(item) for key, item in value.items()}
    if isinstance(value, list):
        return [clean_json(item) for item in value]
    return value
