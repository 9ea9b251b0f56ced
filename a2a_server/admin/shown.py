"""Messages, artifacts and events in the form in which the admin shows them to the owner.

The templates escape all texts. Addresses that callers send are shown as text, never as links.
"""

from collections.abc import Mapping
from typing import Any

from volcanic.admin.transcript import clip, pretty

_ROLES = {"ROLE_USER": "Caller", "ROLE_AGENT": "Assistant"}


def part_shown(part: Any) -> dict[str, Any]:
    """Returns a message part for the template: `text`, `code` (shown as code), and `note` (file name and type)."""
    if not isinstance(part, Mapping):
        return {"text": pretty(part), "code": True, "note": ""}
    note = " · ".join(str(part[key]) for key in ("filename", "mediaType") if part.get(key))
    if "text" in part:
        return {"text": clip(str(part["text"])), "code": False, "note": note}
    if "url" in part:
        return {"text": clip(str(part["url"])), "code": True, "note": note or "file"}
    if "raw" in part:
        size = len(str(part["raw"])) * 3 // 4  # base64
        return {"text": f"{size:,} bytes", "code": True, "note": note or "file"}
    return {"text": pretty(part.get("data", part)), "code": True, "note": note}


def _parts(holder: Mapping[str, Any]) -> list[dict[str, Any]]:
    parts = holder.get("parts")
    return [part_shown(part) for part in parts] if isinstance(parts, list) else []


def message_shown(message: Any) -> dict[str, Any]:
    """Returns a message for the template: its `speaker`, `own` (the assistant wrote it), and its `parts`."""
    if not isinstance(message, Mapping):
        return {"speaker": "Message", "own": False, "parts": [part_shown(message)]}
    role = str(message.get("role", ""))
    return {"speaker": _ROLES.get(role, role), "own": role == "ROLE_AGENT", "parts": _parts(message)}


def artifact_shown(artifact_id: str, payload: Any) -> dict[str, Any]:
    """Returns an artifact for the template: its id, name, description and parts."""
    if not isinstance(payload, Mapping):
        return {"id": artifact_id, "name": "", "description": "", "parts": [part_shown(payload)]}
    return {
        "id": artifact_id,
        "name": str(payload.get("name") or ""),
        "description": str(payload.get("description") or ""),
        "parts": _parts(payload),
    }


def event_shown(payload: Any) -> dict[str, str]:
    """Returns an event for the template: a title, the beginning of its text, and the whole payload."""
    title, text = "event", ""
    match payload:
        case {"statusUpdate": {"status": {"state": str(state), **rest}}}:
            title = state.removeprefix("TASK_STATE_").lower().replace("_", " ")
            text = _first_text(rest.get("message"))
        case {"artifactUpdate": {"artifact": {"artifactId": str(artifact_id), **rest}, **update}}:
            title = f"{artifact_id} {'+' if update.get('append') else ''}".strip()
            text = _first_text(rest)
    return {"title": title, "text": clip(text, 200), "payload": pretty(payload)}


def _first_text(holder: Any) -> str:
    parts = _parts(holder) if isinstance(holder, Mapping) else []
    return " ".join(str(part["text"]) for part in parts)
