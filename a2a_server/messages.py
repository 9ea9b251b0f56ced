"""What a message says, as text."""

import json
from collections.abc import Mapping
from typing import Any


def message_text(message: Mapping[str, Any]) -> str:
    """Returns a message's parts as text for the assistant and the owner, a line each; files are none."""
    return "\n".join(part_text(part) for part in message.get("parts", ()) if "text" in part or "data" in part)


def part_text(part: Mapping[str, Any]) -> str:
    """Returns a part as text: text as it is, data as JSON, anything else as nothing."""
    if "text" in part:
        return str(part["text"])
    if "data" in part:
        return json.dumps(part["data"], ensure_ascii=False)
    return ""
