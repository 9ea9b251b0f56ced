"""A2A's JSON, as client and server share it: safe file names, updates applied to a snapshot."""

from typing import Any

import pytest

from volcanic.a2a_json import artifact_apply, free_file_name, message_text, response_artifact, safe_file_name


def test_the_text_of_a_message() -> None:
    message = {"parts": [{"text": "Hi"}, {"raw": "aGk="}, {"data": {"a": "ü"}}, {"url": "https://x"}]}
    assert message_text(message) == 'Hi\n{"a": "ü"}'
    assert message_text({}) == ""


@pytest.mark.parametrize(
    ("filename", "url", "safe"),
    [
        ("report.pdf", "", "report.pdf"),
        ("../../etc/passwd", "", "passwd"),
        ("C:\\temp\\a.txt", "", "a.txt"),
        (".bashrc", "", "bashrc"),
        ("a\0b\n.txt", "", "a_b_.txt"),
        ("", "https://x.example/files/My%20File.csv?key=1#top", "My File.csv"),
        ("", "https://x.example/", "x.example"),
        ("...", "", "file"),
        ("", "", "file"),
        (f"{'x' * 300}.pdf", "", f"{'x' * 88}.pdf"),
    ],
)
def test_safe_file_names(filename: str, url: str, safe: str) -> None:
    assert safe_file_name(filename, url) == safe


def test_names_that_clash() -> None:
    taken = {"a.txt"}
    assert [free_file_name(name, taken) for name in ("A.txt", "a.txt", "b", "b")] == ["A-2.txt", "a-3.txt", "b", "b-2"]


def _update(text: str, **members: Any) -> dict[str, Any]:
    return {"artifact": response_artifact(text), **members}


def test_updates_to_a_snapshot() -> None:
    artifacts: dict[str, dict[str, Any]] = {}
    update = _update("one")
    artifact_apply(artifacts, update)
    artifact_apply(artifacts, _update(" two", append=True))
    assert artifacts["response"]["parts"] == [{"text": "one two"}]
    assert update["artifact"]["parts"] == [{"text": "one"}]  # the event itself is not touched
    artifact_apply(artifacts, {"artifact": {"artifactId": "response", "parts": [{"data": 1}]}, "append": True})
    assert artifacts["response"]["parts"][1:] == [{"data": 1}]
    artifact_apply(artifacts, _update("anew"))
    assert artifacts["response"]["parts"] == [{"text": "anew"}]
