"""The screen of drafts: everything that a decision needs, one decision for the version that was shown."""

from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from a2a_server.models import TaskState
from tests.admin.conftest import LoginAs, Rows, admin_url, make_draft, make_review, make_task
from tests.admin.draft_pages import EXAMPLE, draft_edits, draft_page, draft_state, draft_url, drafts_listed, post_draft
from trust.admin.draft_pages import STATE_LABELS
from trust.learning.drafts import draft_withdraw
from trust.learning.services import DECIDED_OTHERWISE, draft_approve, draft_reject, draft_update
from trust.models import AuditEntry, Caller, Grant, Level, Observation, Skill, SkillDraft
from trust.services import skill_update

HOSTILE = "<script>alert('a')</script><img src=x onerror=alert(1)> https://evil.example/ \u202ekcab"
BUTTONS = ("Approve", "Save edits", "Reject")


def _html(client: Client, url: str) -> str:
    return str(client.get(url).content.decode())


def test_a_draft_is_shown_with_everything_that_a_decision_needs(as_owner: Client, draft: SkillDraft) -> None:
    SkillDraft.objects.filter(pk=draft.pk).update(note="You marked something.")
    text = draft_page(as_owner, draft)
    for part in (
        admin_url(Caller, "change", draft.caller_id),
        "2 requests like this were approved.",
        EXAMPLE,
        "the parcel of Monday has come",
        "the parcel of Friday has come",
        "One line each.",
        admin_url(Observation, "change", draft.evidence[0]),
        "Note parcels",
        "Writes parcels down.",
        "Write it down.\nOne line each.",
        "write_file: changes the workspace",
        "You marked something.",
        "I would write: Friday.",
        "The assistant only looked. Nothing was changed or sent.",
        "Requests that the draft covers are handled from now on",
        "Covered are only requests that say the same as an example, word for word. Other requests still come to you.",
        f'name="version" value="{draft.version}"',
        *BUTTONS,
    ):
        assert part in text, part
    assert "Fixed, as in one of the examples:" not in text


def test_whether_it_was_tried_is_told(as_owner: Client, draft: SkillDraft) -> None:
    rows = SkillDraft.objects.filter(pk=draft.pk)
    rows.update(preview="", preview_problem="It took longer than 60 seconds.")
    assert "It took longer than 60 seconds." in draft_page(as_owner, draft)
    rows.update(preview="", preview_problem="")
    assert "It had nothing to say." in draft_page(as_owner, draft)
    rows.update(preview="", preview_problem="old", previewed_at=None)
    text = draft_page(as_owner, draft)
    assert "Not tried yet." in text
    assert "The assistant only looked" not in text


def test_what_is_free_and_what_is_fixed_is_told(as_owner: Client, rows: Rows, caller: Caller) -> None:
    """On its page, in a review, and of the skill as it is once it is approved."""
    draft = make_draft(caller)
    orders = [f"Note on {day} that order {no} came" for day in ("Monday", "Tuesday", "Friday") for no in (4711, 4715)]
    draft_update(draft=draft, version=draft.version, examples=orders)
    review = make_review(caller, make_task(rows, state=TaskState.AUTH_REQUIRED, caller=caller), draft=draft)
    for text in (draft_page(as_owner, draft), _html(as_owner, reverse("admin:trust_review_change", args=[review.pk]))):
        assert "word for word. Only the time may differ: on any weekday" in text
        assert "Fixed, as in one of the examples: <bdi>4711</bdi>, <bdi>4715</bdi>." in text
    skill = draft_approve(draft=draft, version=draft.version)
    skill_update(skill=skill, examples=["Note that order 4723 came", "Note that order <b>4724</b> came"])
    text = draft_page(as_owner, draft)
    assert "Covered are only requests that say the same" in text
    assert "<bdi>4711</bdi>" not in text
    assert "<b>" not in text.split("What it covers:")[1].split("</p>")[0]


def test_what_was_replied_and_what_is_gone(as_owner: Client, caller: Caller) -> None:
    draft = make_draft(caller, decision="reply", tools=[])
    SkillDraft.objects.filter(pk=draft.pk).update(evidence=[0])
    text = draft_page(as_owner, draft)
    for part in ("1 request like this was answered by you.", "no longer kept", "No tools: the assistant only answers."):
        assert part in text, part


def test_approving_makes_the_skill_and_the_grant(as_owner: Client, owner: User, draft: SkillDraft) -> None:
    told = post_draft(as_owner, draft, "approve")
    assert "From now on requests of parcel-bot that the draft covers are handled by the skill Note parcels." in told
    assert draft_state(draft) == "approved"
    assert draft.decided_by == "owner olivia"
    grant = Grant.objects.get(caller=draft.caller)
    assert (grant.skill, grant.skill.by_example, grant.level) == (draft.skill, True, Level.ACT)
    assert AuditEntry.objects.get(action="draft.approved").actor == "owner olivia"
    assert LogEntry.objects.get(user=owner, object_id=draft.pk).change_message == "Approved."
    text = draft_page(as_owner, draft)
    assert admin_url(Skill, "change", draft.skill_id) in text
    assert 'name="version"' not in text
    assert "volcanic-decide" not in text
    assert "The draft was decided before: approved." in post_draft(as_owner, draft, "approve")
    assert Skill.objects.filter(by_example=True).count() == 1


def test_a_draft_that_could_be_no_skill_says_why(as_owner: Client, draft: SkillDraft) -> None:
    SkillDraft.objects.filter(pk=draft.pk).update(tools=["no_such_tool"])
    assert "There is no tool no_such_tool." in post_draft(as_owner, draft, "approve")
    assert draft_state(draft) == "open"
    assert not Grant.objects.filter(caller=draft.caller).exists()


def test_what_was_edited_meanwhile_is_looked_at_again(as_owner: Client, draft: SkillDraft) -> None:
    shown = SkillDraft.objects.get(pk=draft.pk)
    draft_update(draft=draft, version=draft.version, name="Note all parcels")
    for verb in ("approve", "reject"):
        assert "The draft was edited meanwhile." in post_draft(as_owner, shown, verb)
    text = post_draft(as_owner, shown, "edit", **draft_edits(shown, description="Typed with care."))
    assert "The draft was edited meanwhile." in text
    assert "Typed with care." in text  # not in vain
    assert f'name="version" value="{draft.version}"' in text
    assert "Typed with care." not in draft_page(as_owner, draft)
    assert draft_state(draft) == "open"
    for verb in ("approve", "reject"):
        posted = as_owner.post(draft_url(verb, draft.pk), {}, follow=True)
        assert posted.status_code == 200
    assert draft_state(draft) == "open"


def test_only_what_was_edited_is_written(as_owner: Client, draft: SkillDraft) -> None:
    assert "Nothing was changed." in post_draft(as_owner, draft, "edit", **draft_edits(draft))
    assert "Saved. The draft is tried again." in post_draft(
        as_owner, draft, "edit", **draft_edits(draft, name="Parcels", tools=["edit_file", "write_file"])
    )
    before = draft.version
    draft.refresh_from_db()
    assert (draft.name, draft.tools, draft.version) == ("Parcels", ["edit_file", "write_file"], before + 1)
    assert (draft.examples, draft.instructions) == ([EXAMPLE], "Write it down.\nOne line each.")
    assert draft.previewed_at is None
    assert AuditEntry.objects.get(action="draft.changed").reason == "name, tools"


def test_an_example_keeps_its_lines_when_another_is_added(as_owner: Client, draft: SkillDraft) -> None:
    lines = draft_edits(draft)["examples"] + "\r\nThe parcel is here.\r\n"
    post_draft(as_owner, draft, "edit", **draft_edits(draft, examples=lines))
    draft.refresh_from_db()
    assert draft.examples == [EXAMPLE, "The parcel is here."]
    skill = draft_approve(draft=draft, version=draft.version)
    page = as_owner.get(admin_url(Skill, "change", skill.pk))
    form = page.context["adminform"].form
    posted = {name: form[name].value() for name in form.fields if form[name].value() is not None}
    posted = {name: "\n".join(value) if name == "tags" else value for name, value in posted.items()}
    shown = "\r\n".join([" ".join(EXAMPLE.split()), "The parcel is here."])
    for name in ("tags", "aliases", "input_modes", "output_modes"):
        posted[name] = ""
    saved = as_owner.post(
        admin_url(Skill, "change", skill.pk), {**posted, "examples": shown, "description": "Parcels."}
    )
    assert saved.status_code == 302
    skill.refresh_from_db()
    assert (skill.description, skill.examples) == ("Parcels.", [EXAMPLE, "The parcel is here."])


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"name": ""}, "This field is required."),
        ({"name": "x" * 101}, "at most 100 characters"),
        ({"name": "a\x00b"}, "Null characters are not allowed."),
        ({"tools": ["no_such_tool"]}, "Select a valid choice."),
        ({"examples": " \r\n"}, "This field is required."),
        ({"examples": "\r\n".join(f"example {number}" for number in range(21))}, "At most 20 entries"),
        ({"examples": "x" * 501}, "At most 20 entries"),
    ],
)
def test_edits_that_cannot_be(changes: dict[str, Any], told: str, as_owner: Client, draft: SkillDraft) -> None:
    text = post_draft(as_owner, draft, "edit", **draft_edits(draft, **{"description": "Typed with care.", **changes}))
    assert "Not saved: see below." in text
    assert told in text
    assert "Typed with care." in text
    before = draft.version
    assert (draft_state(draft), draft.version) == ("open", before)


def test_rejecting(as_owner: Client, draft: SkillDraft) -> None:
    assert "at most 2000 characters" in post_draft(as_owner, draft, "reject", text="x" * 2001)
    assert draft_state(draft) == "open"
    assert "are not proposed again" in post_draft(as_owner, draft, "reject", text="I want to\r\nsee these.")
    assert draft_state(draft) == "rejected"
    assert draft.decision_text == "I want to\nsee these."
    text = draft_page(as_owner, draft)
    assert "I want to\nsee these." in text
    assert "owner olivia" in text
    assert 'name="version"' not in text
    assert "The draft was decided before: rejected." in post_draft(
        as_owner, draft, "edit", **draft_edits(draft, name="Another")
    )


@pytest.mark.parametrize("state", SkillDraft.State.values)
def test_each_state_has_its_label(state: str, as_owner: Client, draft: SkillDraft) -> None:
    assert state in STATE_LABELS
    SkillDraft.objects.filter(pk=draft.pk).update(state=state)
    assert SkillDraft.State(state).label in drafts_listed(as_owner)
    assert ('name="version"' in draft_page(as_owner, draft)) == (state == "open")


def test_one_that_is_proposed_again_names_the_skill_that_it_replaces(as_owner: Client, draft: SkillDraft) -> None:
    skill = draft_approve(draft=draft, version=draft.version)
    SkillDraft.objects.filter(pk=draft.pk).update(state="open", decided_at=None)
    text = draft_page(as_owner, draft)
    assert "The draft replaces the present text of the skill" in text
    assert admin_url(Skill, "change", skill.pk) in text


def test_open_ones_come_first_and_are_found(as_owner: Client, rows: Rows, draft: SkillDraft) -> None:
    draft_reject(draft=draft, version=draft.version)
    text = drafts_listed(as_owner)
    assert text.index("olivias draft") < text.index("Note parcels")
    for query in (
        {"state__exact": "rejected"},
        {"caller__id__exact": draft.caller_id},
        {"q": "parcels down"},
        {"q": draft.slug},
        {"q": "parcel-bot"},
    ):
        text = drafts_listed(as_owner, **query)
        assert "Note parcels" in text, query
        assert "olivias draft" not in text, query
    assert "Note parcels" not in drafts_listed(as_owner, source__exact="model")


def test_the_first_page_counts_what_is_proposed(as_owner: Client, rows: Rows, draft: SkillDraft) -> None:
    text = as_owner.get(reverse("admin:index")).content.decode()
    assert draft_url("changelist") + "?state__exact=open" in text
    card = text[text.index("<div>Drafts</div>") :]
    assert '<div class="volcanic-figure">2</div>' in card[:200]


def test_it_is_the_owners_by_post_with_a_csrf_token(
    as_owner: Client,
    as_other: Client,
    other_rows: Rows,
    login_as: LoginAs,
    staff_without_workspace: User,
    owner: User,
    draft: SkillDraft,
) -> None:
    checked = Client(enforce_csrf_checks=True)
    checked.force_login(owner, backend="django.contrib.auth.backends.ModelBackend")
    for verb in ("approve", "edit", "reject"):
        url, data = draft_url(verb, draft.pk), {"version": draft.version, **draft_edits(draft, name="Taken")}
        assert as_owner.get(url).status_code == 405
        assert checked.post(url, data).status_code == 403
        assert login_as(staff_without_workspace).post(url, data).status_code == 403
        assert as_other.post(url, data).status_code == 404
        assert Client().post(url, data).status_code == 302
        assert as_owner.post(draft_url(verb, 0), data).status_code == 404
    assert (draft_state(draft), draft.name) == ("open", "Note parcels")
    assert "Note parcels" not in drafts_listed(as_other)


def test_it_is_changed_by_nothing_else(as_superuser: Client, draft: SkillDraft) -> None:
    assert as_superuser.post(draft_url("change", draft.pk), {"state": "approved"}).status_code == 403
    assert as_superuser.post(draft_url("delete", draft.pk), {"post": "yes"}).status_code == 403


def test_texts_of_callers_are_escaped(as_owner: Client, rows: Rows, caller: Caller) -> None:
    observation = Observation.objects.create(
        caller=caller, task=rows.task.pk, skill="chat", request=HOSTILE, decision="approve", edits=HOSTILE
    )
    words = dict.fromkeys(("name", "description", "instructions", "preview", "preview_problem", "note"), HOSTILE[:99])
    draft = make_draft(caller, [observation], text=HOSTILE, tools=[HOSTILE], previewed_at=timezone.now(), **words)
    review = make_review(caller, make_task(rows, state=TaskState.AUTH_REQUIRED, caller=caller), draft=draft)
    review_page = reverse("admin:trust_review_change", args=[review.pk])
    pages = [draft_page(as_owner, draft), drafts_listed(as_owner), as_owner.get(review_page).content.decode()]
    pages.append(post_draft(as_owner, draft, "edit", **draft_edits(draft)))
    draft_reject(draft=draft, version=draft.version, reason=HOSTILE)
    pages.append(draft_page(as_owner, draft))
    pages.append(as_owner.get(admin_url(Caller, "change", caller.pk)).content.decode())
    for text in pages:
        assert "<script>alert(" not in text
        assert "<img src=x" not in text
        assert 'href="https://evil' not in text
        assert "&lt;script&gt;" in text


def test_why_it_was_withdrawn_is_told(as_owner: Client, draft: SkillDraft) -> None:
    draft_withdraw(draft=draft, reason=DECIDED_OTHERWISE)
    text = draft_page(as_owner, draft)
    assert "You decided the last 3 such requests otherwise." in text
    assert "was taken back" not in text


def test_the_climb_is_on_the_callers_page(as_owner: Client, draft: SkillDraft) -> None:
    url = admin_url(Caller, "change", draft.caller_id)
    text = as_owner.get(url).content.decode()
    assert "Level and grants have not changed yet." in text
    draft_update(draft=draft, version=draft.version, name="Parcels")
    post_draft(as_owner, draft, "approve")
    text = as_owner.get(url).content.decode()
    trust_history = text[text.index(">Trust history<") : text.index(">History<")]
    assert trust_history.index("Draft edited") < trust_history.index("Draft approved") < trust_history.index("Granted")
    for part in (f"{draft.slug} (act)", "Approved the draft “Parcels”.", "owner olivia"):
        assert part in trust_history, part
    assert "key.created" not in trust_history
    assert "key.created" in text
