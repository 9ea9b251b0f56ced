"""Recordings of the wire: the clock and generated ids do not show in them."""

import uuid
from typing import Any

import pytest

from tests.recording import Names, joined


def _chunk(text: str, **members: Any) -> dict[str, Any]:
    artifact = {"artifactId": "response", "parts": [{"text": text}]}
    return {"data": {"result": {"artifactUpdate": {"artifact": artifact, **members}}}}


END: dict[str, Any] = {"data": {"result": {"statusUpdate": {}}}}


@pytest.mark.parametrize(
    "events",
    [
        [_chunk("hello", lastChunk=True), END],
        [_chunk("hello"), _chunk("", append=True, lastChunk=True), END],
    ],
)
def test_a_short_text_is_one_chunk(events: list[Any]) -> None:
    assert joined(events) == [_chunk("hello", lastChunk=True), END]


@pytest.mark.parametrize(
    "texts", [["a", "b c"], ["a b", " c"], ["a", " b", " c"], ["a b", " c", ""], ["a", " b", "", " c"]]
)
def test_chunks_are_put_together(texts: list[str]) -> None:
    chunks = [_chunk(text, append=True) for text in texts]
    del chunks[0]["data"]["result"]["artifactUpdate"]["append"]
    chunks[-1]["data"]["result"]["artifactUpdate"]["lastChunk"] = True
    whole = "".join(texts)
    rest = _chunk(f"<rest of: {whole}>", append=True, lastChunk=True)
    assert joined([*chunks, END]) == [_chunk("<beginning>"), rest, END]


def test_an_answer_that_begins_anew_is_not_joined() -> None:
    assert joined([_chunk("a"), _chunk("b", lastChunk=True)]) == [_chunk("a"), _chunk("b", lastChunk=True)]


def test_equal_ids_stay_equal_and_others_differ() -> None:
    """In order of appearance, each kind by itself, wherever they stand."""
    first, second, context = (str(uuid.uuid4()) for _ in range(3))
    names = Names(product="http://127.0.0.1:1234")
    told = [{"id": task, "contextId": context, "n": 7, "at": "2026-01-01T00:00:00.123456Z"} for task in (first, second)]
    assert names.replaced(told) == [
        {"at": "<time>", "contextId": "<context-1>", "id": f"<task-{number}>", "n": 7} for number in (1, 2)
    ]
    assert names.replaced(f"http://127.0.0.1:1234/tasks/{second}") == "<product>/tasks/<task-2>"
    assert names.replaced({"nextPageToken": "abc", "x": ""}) == {"nextPageToken": "<page-token-1>", "x": ""}
