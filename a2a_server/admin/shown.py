"""Messages, artifacts and events of the wire, as the owner reads them in the admin. Texts stay texts: the templates
escape them, and addresses that callers name are no links."""

from collections.abc import Mapping
from typing import Any

from volcanic.admin.transcript import clip, pretty

_ROLES = {"ROLE_USER": "Caller", "ROLE_AGENT": "Assistant"}


def part_shown(part: Any) -> dict[str, Any]:
    """Returns a part: its text, whether that is code, and what kind of file it is if it is one."""
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
    """Returns who wrote a message, and its parts."""
    if not isinstance(message, Mapping):
        return {"speaker": "Message", "own": False, "parts": [part_shown(message)]}
    role = str(message.get("role", ""))
    return {"speaker": _ROLES.get(role, role), "own": role == "ROLE_AGENT", "parts": _parts(message)}


def artifact_shown(artifact_id: str, payload: Any) -> dict[str, Any]:
    """Returns an artifact's names and parts."""
    if not isinstance(payload, Mapping):
        return {"id": artifact_id, "name": "", "description": "", "parts": [part_shown(payload)]}
    return {
        "id": artifact_id,
        "name": str(payload.get("name") or ""),
        "description": str(payload.get("description") or ""),
        "parts": _parts(payload),
    }


def event_shown(payload: Any) -> dict[str, str]:
    """Returns what an event tells in a line, and all of it."""
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
