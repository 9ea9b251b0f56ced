"""Actions on selected callers, and the levels and reasons on a caller's page."""

import pytest
from django.contrib.admin.models import LogEntry
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from tests.admin.conftest import Rows
from trust.admin.caller_actions import CallerActions
from trust.models import AuditEntry, Caller, Grant, Skill
from trust.services import caller_create
from trust.signals import grant_revoked

LIST = reverse("admin:trust_caller_changelist")


def _act(client: Client, action: str, *callers: Caller, **answer: object) -> str:
    """Runs an action, from the list or, with an answer, from the page that asks; returns the page that follows."""
    chosen = {"action": action, "_selected_action": [caller.pk for caller in callers]}
    asked = {"answered": "1", **answer} if answer else {}
    response = client.post(LIST, {**chosen, **asked}, follow=True)
    assert response.status_code == 200
    return response.content.decode()


def _grants(caller: Caller) -> dict[str, str]:
    return dict(Grant.objects.filter(caller=caller).values_list("skill__slug", "level"))


def _reasons(action: str) -> list[tuple[str, str]]:
    return list(AuditEntry.objects.filter(action=action).order_by("id").values_list("subject", "reason"))


@pytest.fixture
def second(rows: Rows) -> Caller:
    """Another caller of the owner's."""
    return caller_create(workspace=rows.workspace, name="olivias-second")[0]


def test_granting_asks_for_the_skill_and_changes_nothing_before(
    as_owner: Client, rows: Rows, second: Caller, other_rows: Rows
) -> None:
    text = _act(as_owner, "grant_skill", rows.caller, second)
    for shown in (rows.skill.slug, "notify-user", rows.caller.name, second.name, "Level for this skill"):
        assert shown in text
    assert other_rows.mark not in text
    assert _grants(second) == {}


def test_granting_to_several(as_owner: Client, rows: Rows, second: Caller) -> None:
    slug = rows.skill.slug
    text = _act(as_owner, "grant_skill", rows.caller, second, slug=slug, level="", reason="both need it")
    assert f"Granted {slug}: 1." in text  # one had it
    assert _grants(second) == {slug: ""}
    assert _reasons("grant.added")[-1] == (slug, "both need it")
    assert f"Granted {slug}." in LogEntry.objects.latest("id").get_change_message()
    assert f"Granted {slug}: 2." in _act(as_owner, "grant_skill", rows.caller, second, slug=slug, level="act")
    assert _grants(rows.caller) == _grants(second) == {slug: "act"}


def test_a_bad_choice_asks_again(as_owner: Client, rows: Rows, other_rows: Rows) -> None:
    before = _grants(rows.caller)
    for answer in (
        {"slug": other_rows.skill.slug, "level": ""},
        {"slug": "", "level": ""},
        {"slug": "chat", "level": "boss"},
        {"slug": "chat", "level": "", "reason": "x" * 501},
    ):
        assert "errorlist" in _act(as_owner, "grant_skill", rows.caller, **answer)
    assert "errorlist" in _act(as_owner, "revoke_skill", rows.caller, slug="chat")
    assert _grants(rows.caller) == before


def test_another_owners_callers_are_left_alone(as_owner: Client, rows: Rows, other_rows: Rows) -> None:
    before = _grants(other_rows.caller)
    _act(as_owner, "grant_skill", rows.caller, other_rows.caller, slug="chat", level="act")
    _act(as_owner, "revoke_skill", rows.caller, other_rows.caller, slug="chat")
    _act(as_owner, "level_learn", rows.caller, other_rows.caller)
    other_rows.caller.refresh_from_db()
    assert (other_rows.caller.level, _grants(other_rows.caller)) == ("act", before)
    rows.caller.refresh_from_db()
    assert rows.caller.level == "learn"


def test_a_superuser_grants_where_the_skill_is(as_superuser: Client, rows: Rows, other_rows: Rows) -> None:
    Skill.objects.create(workspace=rows.workspace, slug="only-here", name="Only here", description="x")
    text = _act(as_superuser, "grant_skill", rows.caller, other_rows.caller, slug="only-here", level="")
    assert "Granted only-here: 1." in text
    assert f"There is no skill only-here in the workspace of: {other_rows.caller.name}." in text
    assert "only-here" in _grants(rows.caller)


def test_revoking_from_several(as_owner: Client, rows: Rows, second: Caller) -> None:
    told: list[tuple[int, bool]] = []

    def receive(sender: type[Grant], *, caller_id: int, stop: bool, **_: object) -> None:
        told.append((caller_id, stop))

    text = _act(as_owner, "revoke_skill", rows.caller, second)
    assert rows.skill.slug in text
    assert "notify-user" not in text  # nobody has it
    grant_revoked.connect(receive)
    try:
        text = _act(as_owner, "revoke_skill", rows.caller, second, slug=rows.skill.slug, stop="on", reason="over")
    finally:
        grant_revoked.disconnect(receive)
    assert f"Revoked {rows.skill.slug}, and ended the runs on it: 1." in text
    assert told == [(rows.caller.pk, True)]
    assert _grants(rows.caller) == {}
    assert _reasons("grant.revoked") == [(rows.skill.slug, "over")]


@pytest.mark.parametrize("level", ["observe", "learn", "propose"])
def test_levels_below_act_are_set_at_once(as_owner: Client, rows: Rows, second: Caller, level: str) -> None:
    text = _act(as_owner, f"level_{level}", rows.caller, second)
    assert f"Set the level to {level.title()}: {1 if level == 'observe' else 2}." in text
    assert set(Caller.objects.filter(workspace=rows.workspace).values_list("level", flat=True)) == {level}


def test_act_is_asked_for(as_owner: Client, rows: Rows, second: Caller) -> None:
    text = _act(as_owner, "level_act", rows.caller, second)
    assert "done at once" in text
    second.refresh_from_db()
    assert second.level == "observe"
    assert "Set the level to Act: 1." in _act(as_owner, "level_act", rows.caller, second, reason="proven")
    second.refresh_from_db()
    assert second.level == "act"
    assert _reasons("caller.level") == [("observe → act", "proven")]


def test_too_many_are_refused(as_owner: Client, rows: Rows, second: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CallerActions, "most_selected", 1)
    assert "Select at most 1 callers." in _act(as_owner, "grant_skill", rows.caller, second)


def test_the_list_takes_no_query_for_each_workspaces_callers(as_owner: Client, rows: Rows) -> None:
    def queries() -> int:
        with CaptureQueriesContext(connection) as captured:
            _act(as_owner, "grant_skill", *Caller.objects.filter(workspace=rows.workspace))
        return len(captured)

    queries()
    few = queries()
    for number in range(3):
        caller_create(workspace=rows.workspace, name=f"more-{number}")
    assert queries() == few


def _url(name: str, rows: Rows) -> str:
    return reverse(f"admin:trust_caller_{name}", args=[rows.caller.pk])


def test_a_grants_level_is_shown_and_set(as_owner: Client, rows: Rows) -> None:
    slug = rows.skill.slug
    as_owner.post(_url("grant", rows), {"slug": slug, "level": "propose"})
    assert _grants(rows.caller) == {slug: "propose"}
    text = as_owner.get(_url("change", rows)).content.decode()
    assert f"was granted {slug}. Level: Propose." in text
    assert '<option value="propose" selected>' in text
    as_owner.post(_url("grant", rows), {"slug": slug})
    assert _grants(rows.caller) == {slug: "propose"}
    as_owner.post(_url("grant", rows), {"slug": slug, "level": "boss"})
    assert _grants(rows.caller) == {slug: "propose"}
    as_owner.post(_url("grant", rows), {"slug": slug, "level": ""})
    assert _grants(rows.caller) == {slug: ""}


@pytest.mark.parametrize("stop", [False, True])
def test_revoking_on_the_page_with_a_reason(as_owner: Client, rows: Rows, stop: bool) -> None:
    told: list[bool] = []

    def receive(sender: type[Grant], *, stop: bool, **_: object) -> None:
        told.append(stop)

    text = as_owner.get(_url("change", rows)).content.decode()
    assert "Revoke and stop" in text
    values = {"slug": rows.skill.slug, "reason": "enough", **({"stop": "1"} if stop else {})}
    grant_revoked.connect(receive)
    try:
        as_owner.post(_url("revoke_grant", rows), {**values, "reason": "x" * 501})
        assert told == []
        as_owner.post(_url("revoke_grant", rows), values)
    finally:
        grant_revoked.disconnect(receive)
    assert told == [stop]
    assert _reasons("grant.revoked") == [(rows.skill.slug, "enough")]


def test_the_form_asks_why(as_owner: Client, rows: Rows) -> None:
    values = {"level": "learn", "note": "n", "reason": "first weeks"}  # an unticked box is not sent
    assert as_owner.post(_url("change", rows), values).status_code == 302
    assert _reasons("caller.level") == [("act → learn", "first weeks")]
    assert _reasons("caller.disabled") == [("", "first weeks")]


def test_a_grant_is_added_with_a_level(as_owner: Client, rows: Rows) -> None:
    chat = Skill.objects.get(slug="chat", workspace=None)
    values = {"caller": rows.caller.pk, "skill": chat.pk, "level": "learn"}
    assert as_owner.post(reverse("admin:trust_grant_add"), values).status_code == 302
    assert _grants(rows.caller)["chat"] == "learn"
    assert "Learn" in as_owner.get(reverse("admin:trust_grant_changelist")).content.decode()
