"""Helpers for A2A's JSON, shared by server and client: message texts, artifacts, file names, artifact updates.

Messages and artifacts are plain dictionaries in the JSON form of A2A 1.0. This module does not import the A2A SDK.
"""

import json
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote_to_bytes

# Id and name of the artifact that holds an answer.
RESPONSE = "response"
MAX_FILE_NAME = 100
_UNSAFE = re.compile(r"[^\w.() -]+")


def message_text(message: Mapping[str, Any]) -> str:
    """Returns a message's text and data parts as text for the assistant and the owner, one part a line.

    File parts are left out.
    """
    return "\n".join(part_text(part) for part in message.get("parts", ()) if "text" in part or "data" in part)


def part_text(part: Mapping[str, Any]) -> str:
    """Returns a part as text: a text part unchanged, a data part as JSON, any other part as ""."""
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

    With `append`, a text part continues the artifact's last part if that is a text part too. The update is copied, so
    that the snapshot and the update share no lists or dictionaries.
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
    """Returns a file name that is safe in any folder.

    The name has at most MAX_FILE_NAME characters: letters, digits, spaces and `. _ - ( )`, without a leading dot. It is
    made from the last part of `filename`. Without a `filename`, it is made from the path of `url`. The last resort is
    the name "file".
    """
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
    """Returns a name that is not in `taken` (lower-case names), and adds that name to `taken`.

    On a clash, the name gets `-2`, `-3` and so on before the extension.
    """
    stem, dot, extension = name.rpartition(".")
    stem, extension = (stem, dot + extension) if dot and stem else (name, "")
    candidate, number = name, 1
    while candidate.lower() in taken:
        number += 1
        candidate = f"{stem}-{number}{extension}"
    taken.add(candidate.lower())
    return candidate
