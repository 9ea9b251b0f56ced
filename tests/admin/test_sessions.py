"""Sessions with their transcripts, and workspaces."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from tests.admin.conftest import Rows
from volcanic.admin import sessions
from volcanic.admin.transcript import LONGEST, Line, clip, lines
from volcanic.models import Turn, Workspace

PYDANTIC = [
    {
        "kind": "request",
        "parts": [
            {"part_kind": "system-prompt", "content": "Be kind."},
            {"part_kind": "user-prompt", "content": "Hello"},
        ],
    },
    {
        "kind": "response",
        "parts": [
            {"part_kind": "thinking", "content": "Hm."},
            {"part_kind": "tool-call", "tool_name": "search", "args": '{"q": 1}'},
        ],
    },
    {"kind": "request", "parts": [{"part_kind": "tool-return", "tool_name": "search", "content": ["a"]}]},
    {"kind": "response", "parts": [{"part_kind": "text", "content": "Hi <b>you</b>"}]},
]


def _turn(rows: Rows, prompt: str, messages: Any, **values: Any) -> Turn:
    return Turn.objects.create(
        session=rows.session, prompt=prompt, messages=messages, state="completed", started_at=timezone.now(), **values
    )


def _page(client: Client, rows: Rows, query: str = "") -> str:
    response = client.get(reverse("admin:volcanic_session_change", args=[rows.session.pk]) + query)
    assert response.status_code == 200
    return response.content.decode()


def test_both_forms_of_messages_are_readable(as_owner: Client, rows: Rows) -> None:
    _turn(rows, "Framed: Hello", PYDANTIC, origin=f"task:{rows.task.pk}")
    _turn(rows, "Second", [{"role": "user", "text": "Echo"}, {"role": "assistant", "text": "Echo!"}], pending={"q": 1})
    text = _page(as_owner, rows)
    for part in ("Framed: Hello", "Be kind.", "Thinking", "Tool call", "search", "Echo!", "Waits for an answer"):
        assert part in text, part
    assert "Hi &lt;b&gt;you&lt;/b&gt;" in text
    assert reverse("admin:a2a_server_task_change", args=[rows.task.pk]) in text


def test_a_prompt_is_shown_once(as_owner: Client, rows: Rows) -> None:
    _turn(rows, "only once", [{"role": "user", "text": "only once"}])
    assert _page(as_owner, rows).count("only once") == 1


def test_long_transcripts_go_page_by_page(as_owner: Client, rows: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "TURNS_PER_PAGE", 2)
    turns = [_turn(rows, f"prompt {number}", []) for number in range(3)]
    newest = _page(as_owner, rows)
    assert "prompt 2" in newest
    assert "prompt 0" not in newest
    older = f"?before={turns[1].pk}"
    assert older in newest
    assert "prompt 0" in _page(as_owner, rows, older)
    assert "prompt 2" in _page(as_owner, rows, "?before=x")
    assert "No older turns" in _page(as_owner, rows, "?before=0")


def test_lines_of_pydantic_ai() -> None:
    assert lines(PYDANTIC) == [
        Line(speaker="Instructions", text="Be kind."),
        Line(speaker="Prompt", text="Hello"),
        Line(speaker="Thinking", text="Hm."),
        Line(speaker="Tool call", detail="search", text='{\n  "q": 1\n}', code=True),
        Line(speaker="Tool result", detail="search", text='[\n  "a"\n]', code=True),
        Line(speaker="Assistant", text="Hi <b>you</b>"),
    ]


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ("odd", '"odd"'),
        ({"kind": "request", "parts": ["odd"]}, '"odd"'),
        ({"kind": "request", "parts": [{"part_kind": "new"}]}, '{\n  "part_kind": "new"\n}'),
        ({"kind": "request", "parts": [{"part_kind": "user-prompt", "content": None}]}, ""),
        ({"kind": "request", "parts": [{"part_kind": "tool-return", "content": "{broken"}]}, "{broken"),
        (
            {"kind": "request", "parts": [{"part_kind": "user-prompt", "content": ["a", {"kind": "binary"}, 3]}]},
            "a\n[binary]\n3",
        ),
    ],
)
def test_odd_messages_are_shown_as_they_are(message: Any, text: str) -> None:
    assert [line.text for line in lines([message])] == [text]


def test_what_is_no_list_is_shown_too() -> None:
    assert lines({"a": 1})[0].text == '{\n  "a": 1\n}'


def test_long_texts_are_cut_with_a_note() -> None:
    assert clip("x" * (LONGEST + 5)).endswith("(5 more characters)")


def test_an_owner_changes_the_card_only(as_owner: Client, rows: Rows, other_owner: User) -> None:
    url = reverse("admin:volcanic_workspace_change", args=[rows.workspace.pk])
    text = as_owner.get(url).content.decode()
    assert str(rows.workspace.path) in text
    assert "/admin/auth/user/" not in text
    values = {"card_name": "Olivia's", "card_description": "d", "owner": other_owner.pk, "slug": "stolen"}
    assert as_owner.post(url, values).status_code == 302
    rows.workspace.refresh_from_db()
    assert (rows.workspace.card_name, rows.workspace.card_description) == ("Olivia's", "d")
    assert (rows.workspace.slug, rows.workspace.owner) == ("main", rows.caller.workspace.owner)


def test_a_superuser_makes_a_workspace_and_gives_it_away(as_superuser: Client, owner: User, other_owner: User) -> None:
    values = {"slug": "fresh", "owner": owner.pk, "card_name": "Fresh", "card_description": ""}
    assert as_superuser.post(reverse("admin:volcanic_workspace_add"), values).status_code == 302
    fresh = Workspace.objects.get(slug="fresh")
    assert fresh.card_name == "Fresh"
    assert (fresh.path / "inbox").is_dir()
    url = reverse("admin:volcanic_workspace_change", args=[fresh.pk])
    assert as_superuser.post(url, {**values, "owner": other_owner.pk}).status_code == 302
    fresh.refresh_from_db()
    assert fresh.owner == other_owner


def test_an_owner_is_somebody_who_can_log_in(as_superuser: Client) -> None:
    customer = User.objects.create_user("carl")
    values = {"slug": "fresh", "owner": customer.pk}
    assert as_superuser.post(reverse("admin:volcanic_workspace_add"), values).status_code == 200
    assert not Workspace.objects.exists()
