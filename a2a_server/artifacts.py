"""The artifact that holds an answer."""

from typing import Any

RESPONSE = "response"


def response_artifact(text: str) -> dict[str, Any]:
    """Returns the artifact that holds an answer, in the wire's form."""
    return {"artifactId": RESPONSE, "name": RESPONSE, "parts": [{"text": text}]}
