"""A2A's JSON, as both halves say it: the text of messages, artifacts, safe file names, updates applied to a snapshot.

Plain dictionaries in the wire's 1.0 form; nothing here imports the A2A SDK.
"""

import json
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote_to_bytes

# The artifact that holds an answer.
RESPONSE = "response"
MAX_FILE_NAME = 100
_UNSAFE = re.compile(r"[^\w.() -]+")


def message_text(message: Mapping[str, Any]) -> str:
    """Returns a message's text and data parts as text for the assistant and the owner, a line each. Files are left
    out."""
    return "\n".join(part_text(part) for part in message.get("parts", ()) if "text" in part or "data" in part)


def part_text(part: Mapping[str, Any]) -> str:
    """Returns a part as text: text as it is, data as JSON, anything else as ""."""
    if "text" in part:
        return str(part["text"])
    if "data" in part:
        return json.dumps(part["data"], ensure_ascii=False)
    return ""


def response_artifact(text: str) -> dict[str, Any]:
    """Returns the artifact that holds an answer."""
    return {"artifactId": RESPONSE, "name": RESPONSE, "parts": [{"text": text}]}


def artifact_apply(artifacts: dict[str, dict[str, Any]], update: Mapping[str, Any]) -> None:
    """Applies a TaskArtifactUpdateEvent (specification 4.2.2) to a snapshot's artifacts, which are kept by their ids.

    An appended text part goes on with a text part at the end. The update is copied, not kept.
    """
    artifact = json.loads(json.dumps(update["artifact"]))
    known = artifacts.get(artifact["artifactId"])
    if known is None or not update.get("append"):
        artifacts[artifact["artifactId"]] = artifact
        return
    for part in artifact["parts"]:
        last = known["parts"][-1] if known["parts"] else {}
        if part.keys() == {"text"} == last.keys():
            last["text"] += part["text"]
        else:
            known["parts"].append(part)


def safe_file_name(filename: str, url: str = "") -> str:
    """Returns a name that is safe in any folder, of at most MAX_FILE_NAME characters: letters, digits and `. _ - ( )`,
    no leading dot. Made of the last part of `filename`, else of the path of `url`, else "file"."""
    name = filename.replace("\\", "/").rpartition("/")[2]
    if not name and url:
        path = url.partition("?")[0].partition("#")[0].rstrip("/")
        name = unquote_to_bytes(path.rpartition("/")[2]).decode("utf-8", "replace")
    name = _UNSAFE.sub("_", name).strip(". ") or "file"
    stem, dot, extension = name.rpartition(".")
    if len(name) > MAX_FILE_NAME:
        name = f"{(stem or extension)[: MAX_FILE_NAME - 12]}{dot}{extension[:10]}" if dot else name[:MAX_FILE_NAME]
    return name


def free_file_name(name: str, taken: set[str]) -> str:
    """Returns a name that is not among `taken` (lower-case names), and adds it there: `-2`, `-3` before the extension
    on a clash."""
    stem, dot, extension = name.rpartition(".")
    stem, extension = (stem, dot + extension) if dot and stem else (name, "")
    candidate, number = name, 1
    while candidate.lower() in taken:
        number += 1
        candidate = f"{stem}-{number}{extension}"
    taken.add(candidate.lower())
    return candidate
