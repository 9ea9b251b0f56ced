"""The verbs of skills: what an owner may write, what is refused at which field, and what the audit says."""

from typing import Any

import pytest
from django.core.exceptions import ValidationError
from pytest_django.fixtures import Settings

from tests.conftest import Keyed
from trust.models import CHAT, AuditEntry, Grant, Skill
from trust.services import grant_add, skill_create, skill_delete, skill_set_enabled, skill_update
from trust.signals import grant_revoked
from volcanic.acting import acting_as
from volcanic.models import Workspace

HANDLER = "tests.trust.test_handlers.fine"


def make(workspace: Workspace, slug: str = "book-table", **fields: Any) -> Skill:
    return skill_create(workspace=workspace, slug=slug, name="Book a table", description="Books.", **fields)


def audited() -> list[tuple[str, str, str]]:
    """The lines about skills and grants, in order: action, subject, reason."""
    lines = AuditEntry.objects.filter(action__regex=r"^(skill|grant)\.").order_by("id")
    return list(lines.values_list("action", "subject", "reason"))


def test_a_skill_with_everything(workspace: Workspace, settings: Settings) -> None:
    settings.SKILL_HANDLERS = [HANDLER]
    with acting_as("owner olivia"):
        made = make(
            workspace,
            tags=["dining", "dining", " friends "],
            examples=("A table for two",),
            aliases=["reserve-table"],
            input_modes=["text/plain", "image/*"],
            output_modes=["application/vnd.api+json", "*/*"],
            handler=HANDLER,
            instructions="Ask for the hour.",
            tools={"recall", "read_file"},
            enabled=False,
            advertised=False,
        )
    skill = Skill.objects.get(pk=made.pk)
    assert (skill.workspace, skill.slug, skill.name, skill.description) == (
        workspace,
        "book-table",
        "Book a table",
        "Books.",
    )
    assert (skill.tags, skill.examples, skill.aliases) == (
        ["dining", "friends"],
        ["A table for two"],
        ["reserve-table"],
    )
    assert (skill.input_modes, skill.output_modes) == (
        ["text/plain", "image/*"],
        ["application/vnd.api+json", "*/*"],
    )
    assert (skill.kind, skill.handler, skill.instructions) == (Skill.Kind.HANDLER, HANDLER, "Ask for the hour.")
    assert (sorted(skill.tools or ()), skill.enabled, skill.advertised) == (["read_file", "recall"], False, False)
    line = AuditEntry.objects.get(action="skill.created")
    assert (line.workspace_id, line.actor, line.subject) == (workspace.pk, "owner olivia", "book-table")
    assert f"handler: {HANDLER}; instructions; tools: " in line.reason
    assert "enabled: no; advertised: no" in line.reason


def test_a_skill_with_nothing_more(workspace: Workspace) -> None:
    skill = make(workspace)
    skill.refresh_from_db()
    assert (skill.kind, skill.handler, skill.tools, skill.enabled) == (Skill.Kind.ASSISTANT, "", None, True)
    assert audited() == [("skill.created", "book-table", "")]


@pytest.mark.parametrize(
    ("field", "fields"),
    [
        *[("slug", {"slug": slug}) for slug in ("", "Book", "book table", "-", "a--b", "-a", "é", "x" * 65)],
        *[("slug", {"slug": slug}) for slug in ("chat", "notify-user", "query-availability", "taken", "other-name")],
        *[("aliases", {"aliases": [alias]}) for alias in ("Book", "a b", "a--b", "", "é", "x" * 65)],
        *[("aliases", {"aliases": [alias]}) for alias in ("chat", "taken", "other-name", "book-table")],
        *[
            ("aliases", {"aliases": wrong})
            for wrong in ("chat", [1], {"a": 1}, [["a"]], None, [str(n) for n in range(21)])
        ],
        *[
            ("input_modes", {"input_modes": [mode]})
            for mode in ("text", "text/", "/plain", "text/plain; q=1", "*/plain")
        ],
        *[("output_modes", {"output_modes": [mode]}) for mode in ("a b/c", "text/pl ain", "te*t/x", "x" * 101, "\n")],
        *[
            ("tools", {"tools": wrong})
            for wrong in (["no_such_tool"], ["os.system"], "recall", [1], [["recall"]], {"a": 1})
        ],
        *[("handler", {"handler": path}) for path in ("os.system", "trust.services.skill_delete", HANDLER + " ")],
        ("handler", {"kind": "handler"}),
        ("handler", {"kind": "assistant", "handler": HANDLER}),
        ("kind", {"kind": "built_in"}),
        ("kind", {"kind": "anything"}),
        ("name", {"name": ""}),
        ("name", {"name": "x" * 101}),
        ("description", {"description": ""}),
        ("description", {"description": "x" * 2001}),
        ("instructions", {"instructions": "x" * 20001}),
        ("examples", {"examples": ["x" * 501]}),
        ("tags", {"tags": ["ok", " "]}),
        ("enabled", {"enabled": "perhaps"}),
    ],
)
def test_what_is_refused(workspace: Workspace, settings: Settings, field: str, fields: dict[str, Any]) -> None:
    """At the field that is wrong, of a new skill as of one that is there; nothing is written, nothing audited."""
    settings.SKILL_HANDLERS = [HANDLER]
    make(workspace, "taken", aliases=["other-name"], enabled=False)
    mine = make(workspace, "mine")
    before = Skill.objects.values().get(pk=mine.pk), AuditEntry.objects.count(), Skill.objects.count()
    values = {"slug": "book-table", "name": "x", "description": "x", **fields}
    with pytest.raises(ValidationError) as caught:
        skill_create(workspace=workspace, **values)
    assert list(caught.value.message_dict) == [field]
    if field != "slug" and fields != {"aliases": ["book-table"]}:
        with pytest.raises(ValidationError) as caught:
            skill_update(skill=mine, **fields)
        assert list(caught.value.message_dict) == [field]
    assert before == (Skill.objects.values().get(pk=mine.pk), AuditEntry.objects.count(), Skill.objects.count())


def test_other_workspaces_have_the_same_names(workspace: Workspace, other_workspace: Workspace) -> None:
    make(workspace, aliases=["reserve-table"])
    make(other_workspace, aliases=["reserve-table"])
    assert Skill.objects.filter(slug="book-table").count() == 2


def test_texts_are_made_fit_to_be_kept(workspace: Workspace) -> None:
    skill = make(workspace, instructions="a\x00b", examples=["c\ud800"])
    skill.refresh_from_db()
    assert (skill.instructions, skill.examples) == ("a\ufffdb", ["c\ufffd"])


def test_a_change_writes_what_it_changes_and_no_more(workspace: Workspace) -> None:
    skill = make(workspace)
    stale = Skill.objects.get(pk=skill.pk)
    assert skill_update(skill=skill, name="Reserve", aliases=["reserve"], tools=[])
    assert skill_update(skill=stale, description="Reserves.")
    assert (stale.name, stale.tools) == ("Reserve", [])
    skill.refresh_from_db()
    assert (skill.name, skill.description, skill.aliases, skill.tools) == ("Reserve", "Reserves.", ["reserve"], [])
    assert not skill_update(skill=skill, name="Reserve", tools=[])
    assert skill_update(skill=skill, tools=None)
    assert audited()[1:] == [
        ("skill.changed", "book-table", "name; aliases; tools: none"),
        ("skill.changed", "book-table", "description"),
        ("skill.changed", "book-table", "tools: those of chat"),
    ]


def test_the_kind_goes_with_the_handler(workspace: Workspace, settings: Settings) -> None:
    settings.SKILL_HANDLERS = [HANDLER]
    skill = make(workspace)
    skill_update(skill=skill, handler=HANDLER)
    assert skill.kind == Skill.Kind.HANDLER
    settings.SKILL_HANDLERS = []
    with pytest.raises(ValidationError, match="does not offer this handler"):
        skill_update(skill=skill, name="x")
    assert skill_set_enabled(skill=skill, enabled=False)
    skill_update(skill=skill, handler="", name="x")
    assert (skill.kind, skill.name) == (Skill.Kind.ASSISTANT, "x")


def test_enabling_and_disabling(workspace: Workspace) -> None:
    skill = make(workspace)
    assert [skill_set_enabled(skill=skill, enabled=enabled) for enabled in (True, False, False, True)] == [
        *(False, True, False, True)
    ]
    assert audited()[1:] == [("skill.disabled", "book-table", ""), ("skill.enabled", "book-table", "")]


def test_deleting_revokes_and_tells(friend: Keyed, workspace: Workspace) -> None:
    skill = make(workspace)
    grant_add(caller=friend.caller, slug="book-table")
    told: list[Any] = []

    def receive(**kwargs: Any) -> None:
        told.append((kwargs["caller_id"], kwargs["skill"], kwargs["stop"]))

    grant_revoked.connect(receive)
    try:
        assert skill_delete(skill=Skill.objects.get(pk=skill.pk))
    finally:
        grant_revoked.disconnect(receive)
    assert told == [(friend.caller.pk, "book-table", False)]
    assert [grant.skill.slug for grant in Grant.objects.all()] == [CHAT]
    assert audited()[-2:] == [
        ("grant.revoked", "book-table", "The skill was deleted."),
        ("skill.deleted", "book-table", ""),
    ]
    assert not skill_delete(skill=skill)
    with pytest.raises(ValidationError, match="gone"):
        skill_update(skill=skill, name="x")
    with pytest.raises(ValidationError, match="gone"):
        skill_set_enabled(skill=skill, enabled=False)


def test_built_in_skills_stay(db: None) -> None:
    for skill in Skill.objects.filter(workspace=None):
        with pytest.raises(ValidationError, match="Built-in"):
            skill_update(skill=skill, name="x")
        with pytest.raises(ValidationError, match="Built-in"):
            skill_set_enabled(skill=skill, enabled=False)
        with pytest.raises(ValidationError, match="Built-in"):
            skill_delete(skill=skill)
    assert Skill.objects.filter(workspace=None, enabled=True).exclude(name="x").count() == 3
    assert audited() == []
