"""Transcript of a turn: converts stored model messages to lines for people.

Two forms are stored: pydantic-ai's message JSON (`kind`, `parts`) and the neutral form (`role`, `text`) of other
runners. This module imports neither pydantic-ai nor a runner. A message of unknown form is shown as JSON.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

LONGEST = 20_000

_NEUTRAL = {"user": "Prompt", "assistant": "Assistant", "system": "Instructions", "tool": "Tool"}
# pydantic-ai's parts: the speaker's label, and the member with the text.
_PARTS = {
    "system-prompt": ("Instructions", "content"),
    "user-prompt": ("Prompt", "content"),
    "text": ("Assistant", "content"),
    "thinking": ("Thinking", "content"),
    "tool-call": ("Tool call", "args"),
    "tool-return": ("Tool result", "content"),
    "retry-prompt": ("Sent back to the model", "content"),
}


@dataclass(frozen=True, kw_only=True)
class Line:
    """One entry of a transcript. `code` asks for a fixed-width font; `detail` is the name of a tool."""

    speaker: str
    text: str
    detail: str = ""
    code: bool = False


def clip(text: str, longest: int = LONGEST) -> str:
    """Returns `text` cut to `longest` characters, with a note of the number of missing ones, to keep the page small."""
    if len(text) <= longest:
        return text
    return f"{text[:longest]}\n… ({len(text) - longest:,} more characters)"


def pretty(value: Any) -> str:
    """Returns a JSON value as indented text, clipped."""
    return clip(json.dumps(value, ensure_ascii=False, indent=2, default=str))


def lines(messages: Any) -> list[Line]:
    """Returns a turn's messages line by line, in order."""
    if not isinstance(messages, list):
        return [_unknown(messages)]
    return [line for message in messages for line in _message_lines(message)]


def _message_lines(message: Any) -> Iterator[Line]:
    match message:
        case {"kind": str(), "parts": list(parts)}:
            yield from (_part_line(part) for part in parts)
        case {"role": str(role), "text": str(text)}:
            yield Line(speaker=_NEUTRAL.get(role, role), text=clip(text))
        case _:
            yield _unknown(message)


def _part_line(part: Any) -> Line:
    kind = part.get("part_kind") if isinstance(part, Mapping) else None
    if not isinstance(kind, str) or kind not in _PARTS:
        return _unknown(part)
    speaker, member = _PARTS[kind]
    value = part.get(member)
    code = kind in {"tool-call", "tool-return"}
    return Line(speaker=speaker, detail=str(part.get("tool_name") or ""), text=_text(value, code=code), code=code)


def _text(value: Any, *, code: bool) -> str:
    if isinstance(value, str):
        return clip(_reindented(value) if code else value)
    if isinstance(value, list) and not code:  # a prompt of several pieces
        return clip("\n".join(_pieces(value)))
    return "" if value is None else pretty(value)


def _reindented(text: str) -> str:
    """Returns text that holds JSON as indented JSON, other text unchanged. Tool arguments come in both forms."""
    if text[:1] in {"{", "["}:
        try:
            return pretty(json.loads(text))
        except ValueError:
            pass
    return text


def _pieces(values: Iterable[Any]) -> Iterator[str]:
    for value in values:
        if isinstance(value, str):
            yield value
        elif isinstance(value, Mapping) and isinstance(value.get("content"), str) and value.get("kind") == "text":
            yield value["content"]
        elif isinstance(value, Mapping) and "kind" in value:
            yield f"[{value['kind']} {value.get('media_type') or ''}".rstrip() + "]"
        else:
            yield pretty(value)


def _unknown(value: Any) -> Line:
    return Line(speaker="Message", text=pretty(value), code=True)
