"""Text helpers: make other people's text safe for PostgreSQL, for JSON and for lines shown to people."""

import re
from typing import Any

# U+0000, which jsonb refuses, and lone surrogates, which are not valid text. A JSON parser has joined surrogate pairs.
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
# Marks that change the direction of the text after the mark, U+202E for example.
_DIRECTIONS = re.compile("[\u202a-\u202e\u2066-\u2069]")
REPLACEMENT = "\ufffd"
# Characters that begin or end a quotation, without marks that also serve as apostrophes.
_QUOTATION_MARKS = re.compile('["\u201c\u201d\u201e\u201f\u00ab\u00bb\u301d\u301e\u301f\uff02]')


def clean_text(text: str) -> str:
    """Returns `text` with U+0000 and lone surrogates replaced by U+FFFD."""
    return _UNSTORABLE.sub(REPLACEMENT, text)


def one_way(text: str) -> str:
    """Returns another person's text without direction marks, which would reorder our own words on the same line."""
    return _DIRECTIONS.sub("", text)


def cut(text: str, most: int) -> str:
    """Returns `text` cut to at most `most` characters. A cut text ends with an ellipsis."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def one_line(text: str, most: int | None = None) -> str:
    """Returns `text` on one line, cut to at most `most` characters as `cut` does. Without `most`, nothing is cut."""
    line = " ".join(text.split())
    return line if most is None else cut(line, most)


def quoted(text: str, most: int | None = None) -> str:
    """Returns another person's text as a quotation that the text itself can't end.

    The text is put on one line and cut to at most `most` characters as `cut` does. An apostrophe replaces each
    quotation mark in the text.
    """
    return f"“{_QUOTATION_MARKS.sub(chr(39), one_line(text, most))}”"


def clean_json(value: Any) -> Any:
    """Returns a parsed JSON value with all its texts, keys included, cleaned by `clean_text`."""
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, dict):
        return {clean_text(key): clean_json(item) for key, item in value.items()}
    if isinstance(value, list):
        return [clean_json(item) for item in value]
    return value
