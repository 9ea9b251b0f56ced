"""Recording of the wire: requests, answers and events, with names in place of values that differ from run to run.

The names make the recordings of two test runs comparable. Ids and page tokens are numbered in order of their first
appearance, `<task-1>`, `<context-1>`, `<page-token-1>`, so that equal values get equal names. Times become `<time>`.
The addresses of the run become `<product>` and `<receiver>`.
"""

import copy
import json
import re
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import httpx
from syrupy.extensions.json import JSONSnapshotExtension

from tests.receiver import Received

Json = Any

# Headers that are left out: the server and HTTP add them to every answer, and the clock decides the date.
_UNTOLD = frozenset({"connection", "content-length", "date", "server", "transfer-encoding"})
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{3}|\.\d{6})?Z")
_HTTP_DATE = re.compile(r"[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d GMT")
_WAIT = re.compile(r"\b(?:[1-9]|[1-5]\d|60)( ?s)\b")
_KINDS = {
    "taskId": "task",
    "contextId": "context",
    "messageId": "message",
    "artifactId": "artifact",
    "pushNotificationConfigId": "config",
    "name": "config",  # the resource name of a webhook in REST 0.3
}
_COLUMNS = 100
_TOKENS = frozenset({"pageToken", "nextPageToken"})


class Names:
    """The names of values that differ from run to run, numbered in order of their first appearance."""

    def __init__(self, **addresses: str) -> None:
        self._addresses = {address: f"<{name}>" for name, address in addresses.items()}
        self._names: dict[str, str] = {}
        self._counts: dict[str, int] = {}

    def replaced(self, value: Json, kind: str = "id") -> Json:
        """Returns a JSON value with names in it. Visits the members in the order in which they are shown."""
        if isinstance(value, dict):
            members = value.items() if isinstance(value, OrderedDict) else sorted(value.items())
            return {key: self._member(value, key, member) for key, member in members}
        if isinstance(value, list):
            return [self.replaced(item, kind) for item in value]
        return self._text(value, kind) if isinstance(value, str) else value

    def _member(self, holder: Mapping[str, Json], key: str, value: Json) -> Json:
        if key in _TOKENS and value:
            return self._name(str(value), "page-token")
        if key == "retryDelay":
            return _WAIT.sub(r"<wait>\1", value)
        kind = _KINDS.get(key, "id")
        if key == "id":
            kind = "task" if "contextId" in holder else "config" if "url" in holder else "id"
        return self.replaced(value, kind)

    def _text(self, text: str, kind: str) -> str:
        for address, name in self._addresses.items():
            text = text.replace(address, name)
        if _TIME.fullmatch(text):
            return "<time>"
        if "Try again in" in text:
            text = _WAIT.sub(r"<wait>\1", text)
        return _UUID.sub(lambda found: self._name(found[0], kind), text)

    def _name(self, value: str, kind: str) -> str:
        if value not in self._names:
            number = self._counts[kind] = self._counts.get(kind, 0) + 1
            self._names[value] = f"<{kind}-{number}>"
        return self._names[value]

    def headers(self, headers: Iterable[tuple[str, str]]) -> dict[str, str]:
        """Returns the headers that the recording keeps, by name."""
        told = {name.lower(): value for name, value in headers if name.lower() not in _UNTOLD}
        return {name: self._header(name, told[name]) for name in sorted(told)}

    def _header(self, name: str, value: str) -> str:
        match name:
            case "etag" | "if-none-match":
                return self._name(value, "etag")
            case "last-modified" if _HTTP_DATE.fullmatch(value):
                return "<time>"
            case "retry-after" if _WAIT.fullmatch(f"{value}s"):
                return "<wait>"
            case "host":
                return self._text(f"http://{value}", "id")
            case "webhook-id":
                return re.sub(r"\d+", lambda found: self._name(found[0], "delivery"), value)
            case "webhook-timestamp" if value.isdigit():
                return "<time>"
            case "webhook-signature":
                return re.sub(r"[A-Za-z0-9+/]{43}=", "<signature>", value)
        return self._text(value, "id")


class Wire:
    """One caller's connection, which records every request and its answer."""

    def __init__(self, http: httpx.Client, **addresses: str) -> None:
        self.http = http
        self._addresses = {"product": str(http.base_url).rstrip("/"), **addresses}
        self._exchanges: list[tuple[OrderedDict[str, Json], OrderedDict[str, Json]]] = []

    def rpc(self, method: str, params: Json = None, **members: Any) -> Json:
        """Makes a JSON-RPC call in the version that has the method, and returns the answer's result or error."""
        answer = self.request("POST", "/a2a", body=_envelope(method, params) | members)
        return answer.get("result", answer.get("error"))

    def request(
        self,
        verb: str,
        path: str,
        *,
        body: Json = None,
        content: str | None = None,
        query: dict[str, str] | None = None,
        headers: dict[str, str] | None = None,
    ) -> Json:
        """Makes a request and returns the answer's JSON, None for an answer without a body.

        `content` is a request body that is no JSON.
        """
        noted = self._note(verb, path, body if content is None else content, query, headers)
        response = self.http.request(verb, path, json=body, content=content, params=query, headers=headers)
        noted["status"], noted["headers"] = response.status_code, response.headers
        if response.content:
            noted["body"] = response.json()
        return noted.get("body")

    @contextmanager
    def rpc_stream(self, method: str, params: Json) -> Iterator[Iterator[Json]]:
        """Opens a JSON-RPC stream; yields an iterator of the data of its events."""
        with self.stream("POST", "/a2a", body=_envelope(method, params)) as events:
            yield events

    @contextmanager
    def stream(self, verb: str, path: str, *, body: Json = None) -> Iterator[Iterator[Json]]:
        """Opens a stream; yields an iterator of the data of its events. Records the events that are read."""
        noted = self._note(verb, path, body, None, None)
        with self.http.stream(verb, path, json=body) as response:
            noted["status"], noted["headers"] = response.status_code, response.headers
            assert response.headers["content-type"].startswith("text/event-stream"), response.read()
            noted["events"] = []
            yield self._events(response, noted["events"])

    def _events(self, response: httpx.Response, noted: list[Json]) -> Iterator[Json]:
        fields: OrderedDict[str, Json] = OrderedDict()
        for line in response.iter_lines():
            name, _, value = line.partition(":")
            if name:  # a comment, which keeps the connection open
                fields[name] = fields.get(name, "") + value.removeprefix(" ")
            elif not line and fields:
                fields["data"] = json.loads(fields["data"])
                noted.append(fields)
                yield fields["data"]
                fields = OrderedDict()

    def _note(self, verb: str, path: str, *rest: Json) -> OrderedDict[str, Json]:
        asked: OrderedDict[str, Json] = OrderedDict(request=f"{verb} {path}")
        members = zip(("body", "query", "headers"), rest, strict=True)
        asked |= {name: copy.deepcopy(value) for name, value in members if value is not None}
        noted: OrderedDict[str, Json] = OrderedDict()
        self._exchanges.append((asked, noted))
        return noted

    def exchanges(self) -> list[Json]:
        """Returns all recorded requests and answers, with names."""
        names = Names(**self._addresses)
        told = []
        for asked, noted in self._exchanges:
            if "headers" in asked:
                asked["headers"] = names.headers(asked["headers"].items())
            asked = names.replaced(asked)
            answer: OrderedDict[str, Json] = OrderedDict(status=noted["status"])
            answer["headers"] = names.headers(noted["headers"].items())
            if "body" in noted:
                answer["body"] = names.replaced(noted["body"])
            if "events" in noted:
                answer["events"] = names.replaced(joined(noted["events"]))
            told.append(OrderedDict(asked=asked, answered=answer))
        return told


def notifications(received: Iterable[Received], **addresses: str) -> list[Json]:
    """Returns the requests that a receiver got, with names."""
    names = Names(**addresses)
    return [
        OrderedDict(
            request=names.replaced(f"POST {request.path}"),
            headers=names.headers(request.headers.items()),
            body=names.replaced(request.json),
        )
        for request in received
    ]


def joined(events: list[Json]) -> list[Json]:
    """Returns the events of a stream with the appended chunks of a text joined.

    Timing decides how a text is cut into chunks. So all appended chunks become one event, or no event where nothing was
    appended.
    """
    kept: list[Json] = []
    for event in json.loads(json.dumps(events)):
        update, before = _artifact_update(event), _artifact_update(kept[-1]) if kept else None
        if update is None or before is None or not update.get("append") or _id_of(update) != _id_of(before):
            kept.append(event)
            continue
        (part,), (part_before,) = update["artifact"]["parts"], before["artifact"]["parts"]
        if before.get("append"):
            part_before["text"] = _rest(part_before["text"][len(_REST) : -1] + part["text"])
        elif part["text"]:
            part["text"], part_before["text"] = _rest(part_before["text"] + part["text"]), "<beginning>"
            kept.append(event)
            continue
        before |= {name: value for name, value in update.items() if name not in ("append", "artifact")}
    return kept


_REST = "<rest of: "


def _rest(whole: str) -> str:
    return f"{_REST}{whole}>"


def _artifact_update(event: Json) -> dict[str, Json] | None:
    """Returns the artifact update that an event holds in either version, None if it holds something else."""
    data = event["data"]
    update = data.get("result", data)
    update = update.get("artifactUpdate", update)
    return update if "artifact" in update else None


def _id_of(update: dict[str, Json]) -> Json:
    return update["artifact"]["artifactId"]


def _envelope(method: str, params: Json) -> dict[str, Json]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": {} if params is None else params}


class WireFile(JSONSnapshotExtension):
    """A snapshot as JSON, with short values on one line each."""

    def serialize(self, data: Json, **_filters: Any) -> str:
        """Returns the text of the file."""
        return _shown(data, "") + "\n"


def _shown(value: Json, indent: str) -> str:
    line = json.dumps(value, ensure_ascii=False)
    if not isinstance(value, dict | list) or len(indent) + len(line) <= _COLUMNS:
        return line
    inner = indent + "  "
    if isinstance(value, dict):
        items = [f"{json.dumps(key)}: {_shown(item, inner)}" for key, item in value.items()]
    else:
        items = [_shown(item, inner) for item in value]
    start, end = "{}" if isinstance(value, dict) else "[]"
    return f"{start}\n{inner}" + f",\n{inner}".join(items) + f"\n{indent}{end}"
