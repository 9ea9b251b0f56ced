"""The screen of drafts: everything that a decision needs, one decision for the version that was shown."""

import uuid
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from a2a_server.models import TaskState
from tests.admin.conftest import LoginAs, Rows, admin_url, make_draft, make_review, make_task
from trust.admin.draft_pages import LATEST, SHORT, STATE_LABELS
from trust.learning.drafts import draft_withdraw
from trust.learning.services import DECIDED_OTHERWISE, draft_approve, draft_reject, draft_update, not_like_this
from trust.models import AuditEntry, Caller, Grant, Level, Observation, Review, Skill, SkillDraft
from trust.services import caller_create, caller_set_enabled, grant_add, skill_update

HOSTILE = "<script>alert('a')</script><img src=x onerror=alert(1)> https://evil.example/ \u202ekcab"
EXAMPLE = "Please note that the parcel of Friday has come.\nIt weighs 2 kg."
BUTTONS = ("Approve", "Save edits", "Reject")


@pytest.fixture
def caller(rows: Rows) -> Caller:
    """A caller at Propose."""
    caller, _ = caller_create(workspace=rows.workspace, name="parcel-bot", level=Level.PROPOSE)
    return caller


@pytest.fixture
def draft(caller: Caller) -> SkillDraft:
    """An open draft of that caller, learned from two decisions, and tried."""
    evidence = [
        Observation.objects.create(
            caller=caller, task="7d6e0b1e-0000-4000-8000-000000000001", skill="chat", decision="approve", **words
        )
        for words in (
            {"request": "the parcel of Monday has come"},
            {"request": "the parcel of Friday has come", "edits": "One line each."},
        )
    ]
    return make_draft(
        caller,
        evidence,
        text=EXAMPLE,
        name="Note parcels",
        description="Writes parcels down.",
        instructions="Write it down.\nOne line each.",
        preview="I would write: Friday.",
        previewed_at=timezone.now(),
    )


def _url(page: str, *args: object) -> str:
    return reverse(f"admin:trust_skilldraft_{page}", args=args)


def _page(client: Client, draft: SkillDraft) -> str:
    response = client.get(_url("change", draft.pk))
    assert response.status_code == 200
    return response.content.decode()


def _html(client: Client, url: str) -> str:
    return str(client.get(url).content.decode())


def _listed(client: Client, **query: Any) -> str:
    response = client.get(_url("changelist"), query)
    assert response.status_code == 200
    return response.content.decode()


def _post(client: Client, draft: SkillDraft, verb: str, **data: Any) -> str:
    response = client.post(_url(verb, draft.pk), {"version": draft.version, **data}, follow=True)
    assert response.redirect_chain == [(_url("change", draft.pk), 302)]
    return str(response.content.decode())


def _edits(draft: SkillDraft, **changes: Any) -> dict[str, Any]:
    """Returns what a browser posts of the form: lines end with a carriage return too."""
    return {
        "name": draft.name,
        "description": draft.description,
        "instructions": draft.instructions.replace("\n", "\r\n"),
        "tools": draft.tools,
        "examples": "\r\n".join(" ".join(example.split()) for example in draft.examples),
        **changes,
    }


def _state(draft: SkillDraft) -> str:
    draft.refresh_from_db()
    return draft.state


def test_a_draft_is_shown_with_everything_that_a_decision_needs(as_owner: Client, draft: SkillDraft) -> None:
    SkillDraft.objects.filter(pk=draft.pk).update(note="You marked something.")
    text = _page(as_owner, draft)
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
        "It only looked; nothing was changed or sent.",
        "Have what it covers handled from now on",
        "Covered are only requests that say the same as an example, word for word. Other requests still come to you.",
        f'name="version" value="{draft.version}"',
        *BUTTONS,
    ):
        assert part in text, part
    assert "Fixed, as one of them has it:" not in text


def test_whether_it_was_tried_is_told(as_owner: Client, draft: SkillDraft) -> None:
    rows = SkillDraft.objects.filter(pk=draft.pk)
    rows.update(preview="", preview_problem="It took longer than 60 seconds.")
    assert "It took longer than 60 seconds." in _page(as_owner, draft)
    rows.update(preview="", preview_problem="")
    assert "It had nothing to say." in _page(as_owner, draft)
    rows.update(preview="", preview_problem="old", previewed_at=None)
    text = _page(as_owner, draft)
    assert "Not tried yet." in text
    assert "It only looked" not in text


def test_what_is_free_and_what_is_fixed_is_told(as_owner: Client, rows: Rows, caller: Caller) -> None:
    """On its page, in a review, and of the skill as it is once it is approved."""
    draft = make_draft(caller)
    orders = [f"Note on {day} that order {no} came" for day in ("Monday", "Tuesday", "Friday") for no in (4711, 4715)]
    draft_update(draft=draft, version=draft.version, examples=orders)
    review = make_review(caller, make_task(rows, state=TaskState.AUTH_REQUIRED, caller=caller), draft=draft)
    for text in (_page(as_owner, draft), _html(as_owner, reverse("admin:trust_review_change", args=[review.pk]))):
        assert "word for word, but for when: on any weekday" in text
        assert "Fixed, as one of them has it: <bdi>4711</bdi>, <bdi>4715</bdi>." in text
    skill = draft_approve(draft=draft, version=draft.version)
    skill_update(skill=skill, examples=["Note that order 4723 came", "Note that order <b>4724</b> came"])
    text = _page(as_owner, draft)
    assert "Covered are only requests that say the same" in text
    assert "<bdi>4711</bdi>" not in text
    assert "<b>" not in text.split("What it covers:")[1].split("</p>")[0]


def test_what_was_replied_and_what_is_gone(as_owner: Client, caller: Caller) -> None:
    draft = make_draft(caller, decision="reply", tools=[])
    SkillDraft.objects.filter(pk=draft.pk).update(evidence=[0])
    text = _page(as_owner, draft)
    for part in ("1 request like this was answered by you.", "no longer kept", "No tools: it only answers."):
        assert part in text, part


def test_approving_makes_the_skill_and_the_grant(as_owner: Client, owner: User, draft: SkillDraft) -> None:
    told = _post(as_owner, draft, "approve")
    assert "From now on what it covers is done for parcel-bot, by the skill Note parcels." in told
    assert _state(draft) == "approved"
    assert draft.decided_by == "owner olivia"
    grant = Grant.objects.get(caller=draft.caller)
    assert (grant.skill, grant.skill.by_example, grant.level) == (draft.skill, True, Level.ACT)
    assert AuditEntry.objects.get(action="draft.approved").actor == "owner olivia"
    assert LogEntry.objects.get(user=owner, object_id=draft.pk).change_message == "Approved."
    text = _page(as_owner, draft)
    assert admin_url(Skill, "change", draft.skill_id) in text
    assert 'name="version"' not in text
    assert "volcanic-decide" not in text
    assert "The draft was decided before: approved." in _post(as_owner, draft, "approve")
    assert Skill.objects.filter(by_example=True).count() == 1


def test_a_draft_that_could_be_no_skill_says_why(as_owner: Client, draft: SkillDraft) -> None:
    SkillDraft.objects.filter(pk=draft.pk).update(tools=["no_such_tool"])
    assert "There is no tool no_such_tool." in _post(as_owner, draft, "approve")
    assert _state(draft) == "open"
    assert not Grant.objects.filter(caller=draft.caller).exists()


def test_what_was_edited_meanwhile_is_looked_at_again(as_owner: Client, draft: SkillDraft) -> None:
    shown = SkillDraft.objects.get(pk=draft.pk)
    draft_update(draft=draft, version=draft.version, name="Note all parcels")
    for verb in ("approve", "reject"):
        assert "The draft was edited meanwhile." in _post(as_owner, shown, verb)
    text = _post(as_owner, shown, "edit", **_edits(shown, description="Typed with care."))
    assert "The draft was edited meanwhile." in text
    assert "Typed with care." in text  # not in vain
    assert f'name="version" value="{draft.version}"' in text
    assert "Typed with care." not in _page(as_owner, draft)
    assert _state(draft) == "open"
    for verb in ("approve", "reject"):
        posted = as_owner.post(_url(verb, draft.pk), {}, follow=True)
        assert posted.status_code == 200
    assert _state(draft) == "open"


def test_only_what_was_edited_is_written(as_owner: Client, draft: SkillDraft) -> None:
    assert "Nothing was changed." in _post(as_owner, draft, "edit", **_edits(draft))
    assert "Saved. It is tried anew." in _post(
        as_owner, draft, "edit", **_edits(draft, name="Parcels", tools=["edit_file", "write_file"])
    )
    before = draft.version
    draft.refresh_from_db()
    assert (draft.name, draft.tools, draft.version) == ("Parcels", ["edit_file", "write_file"], before + 1)
    assert (draft.examples, draft.instructions) == ([EXAMPLE], "Write it down.\nOne line each.")
    assert draft.previewed_at is None
    assert AuditEntry.objects.get(action="draft.changed").reason == "name, tools"


def test_an_example_keeps_its_lines_when_another_is_added(as_owner: Client, draft: SkillDraft) -> None:
    lines = _edits(draft)["examples"] + "\r\nThe parcel is here.\r\n"
    _post(as_owner, draft, "edit", **_edits(draft, examples=lines))
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
    text = _post(as_owner, draft, "edit", **_edits(draft, **{"description": "Typed with care.", **changes}))
    assert "Not saved: see below." in text
    assert told in text
    assert "Typed with care." in text
    before = draft.version
    assert (_state(draft), draft.version) == ("open", before)


def test_rejecting(as_owner: Client, draft: SkillDraft) -> None:
    assert "at most 2000 characters" in _post(as_owner, draft, "reject", text="x" * 2001)
    assert _state(draft) == "open"
    assert "are not proposed again" in _post(as_owner, draft, "reject", text="I want to\r\nsee these.")
    assert _state(draft) == "rejected"
    assert draft.decision_text == "I want to\nsee these."
    text = _page(as_owner, draft)
    assert "I want to\nsee these." in text
    assert "owner olivia" in text
    assert 'name="version"' not in text
    assert "The draft was decided before: rejected." in _post(as_owner, draft, "edit", **_edits(draft, name="Another"))


@pytest.mark.parametrize("state", SkillDraft.State.values)
def test_each_state_has_its_label(state: str, as_owner: Client, draft: SkillDraft) -> None:
    assert state in STATE_LABELS
    SkillDraft.objects.filter(pk=draft.pk).update(state=state)
    assert SkillDraft.State(state).label in _listed(as_owner)
    assert ('name="version"' in _page(as_owner, draft)) == (state == "open")


def test_one_that_is_proposed_again_names_the_skill_that_it_replaces(as_owner: Client, draft: SkillDraft) -> None:
    skill = draft_approve(draft=draft, version=draft.version)
    SkillDraft.objects.filter(pk=draft.pk).update(state="open", decided_at=None)
    text = _page(as_owner, draft)
    assert "It takes the place of what the skill" in text
    assert admin_url(Skill, "change", skill.pk) in text


def test_open_ones_come_first_and_are_found(as_owner: Client, rows: Rows, draft: SkillDraft) -> None:
    draft_reject(draft=draft, version=draft.version)
    text = _listed(as_owner)
    assert text.index("olivias draft") < text.index("Note parcels")
    for query in (
        {"state__exact": "rejected"},
        {"caller__id__exact": draft.caller_id},
        {"q": "parcels down"},
        {"q": draft.slug},
        {"q": "parcel-bot"},
    ):
        text = _listed(as_owner, **query)
        assert "Note parcels" in text, query
        assert "olivias draft" not in text, query
    assert "Note parcels" not in _listed(as_owner, source__exact="model")


def test_the_first_page_counts_what_is_proposed(as_owner: Client, rows: Rows, draft: SkillDraft) -> None:
    text = as_owner.get(reverse("admin:index")).content.decode()
    assert _url("changelist") + "?state__exact=open" in text
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
        url, data = _url(verb, draft.pk), {"version": draft.version, **_edits(draft, name="Taken")}
        assert as_owner.get(url).status_code == 405
        assert checked.post(url, data).status_code == 403
        assert login_as(staff_without_workspace).post(url, data).status_code == 403
        assert as_other.post(url, data).status_code == 404
        assert Client().post(url, data).status_code == 302
        assert as_owner.post(_url(verb, 0), data).status_code == 404
    assert (_state(draft), draft.name) == ("open", "Note parcels")
    assert "Note parcels" not in _listed(as_other)


def test_it_is_changed_by_nothing_else(as_superuser: Client, draft: SkillDraft) -> None:
    assert as_superuser.post(_url("change", draft.pk), {"state": "approved"}).status_code == 403
    assert as_superuser.post(_url("delete", draft.pk), {"post": "yes"}).status_code == 403


def test_texts_of_callers_are_escaped(as_owner: Client, rows: Rows, caller: Caller) -> None:
    observation = Observation.objects.create(
        caller=caller, task=rows.task.pk, skill="chat", request=HOSTILE, decision="approve", edits=HOSTILE
    )
    words = dict.fromkeys(("name", "description", "instructions", "preview", "preview_problem", "note"), HOSTILE[:99])
    draft = make_draft(caller, [observation], text=HOSTILE, tools=[HOSTILE], previewed_at=timezone.now(), **words)
    review = make_review(caller, make_task(rows, state=TaskState.AUTH_REQUIRED, caller=caller), draft=draft)
    review_page = reverse("admin:trust_review_change", args=[review.pk])
    pages = [_page(as_owner, draft), _listed(as_owner), as_owner.get(review_page).content.decode()]
    pages.append(_post(as_owner, draft, "edit", **_edits(draft)))
    draft_reject(draft=draft, version=draft.version, reason=HOSTILE)
    pages.append(_page(as_owner, draft))
    pages.append(as_owner.get(admin_url(Caller, "change", caller.pk)).content.decode())
    for text in pages:
        assert "<script>alert(" not in text
        assert "<img src=x" not in text
        assert 'href="https://evil' not in text
        assert "&lt;script&gt;" in text


def _waiting(rows: Rows, draft: SkillDraft) -> Review:
    task = make_task(rows, state=TaskState.AUTH_REQUIRED, caller=draft.caller)
    return make_review(draft.caller, task, text=EXAMPLE, draft=draft)


def test_a_review_shows_the_draft_that_would_cover_it(as_owner: Client, rows: Rows, draft: SkillDraft) -> None:
    rows.review.delete()
    SkillDraft.objects.filter(pk=draft.pk).update(instructions="x" * SHORT + " the rest")
    review = _waiting(rows, SkillDraft.objects.get(pk=draft.pk))
    pages = [reverse("admin:trust_review_change", args=[review.pk]), reverse("admin:index")]
    for text in [as_owner.get(url).content.decode() for url in pages]:
        for part in (
            "2 requests like this were approved.",
            "with write_file.",
            "Writes parcels down.",
            "x" * (SHORT - 1) + "…",
            "All of the instructions",
            "I would write: Friday.",
            _url("change", draft.pk),
            "Approve, and handle this from now on",
            # What was asked, and how it was decided each time.
            "the parcel of Monday has come",
            "the parcel of Friday has come",
            'data-label="Decision">Approved',
            "One line each.",
            admin_url(Observation, "change", draft.evidence[1]),
            "Edit the draft",
            "Reject the draft",
            _url("reject", draft.pk),
        ):
            assert part in text, part


def test_a_card_shows_the_latest_decisions(as_owner: Client, rows: Rows, caller: Caller) -> None:
    evidence = [
        Observation.objects.create(
            caller=caller, task=uuid.uuid4(), skill="chat", decision="approve", request=f"no. {n}"
        )
        for n in range(LATEST + 2)
    ]
    review = _waiting(rows, make_draft(caller, evidence, text=EXAMPLE))
    text = as_owner.get(reverse("admin:trust_review_change", args=[review.pk])).content.decode()
    assert "no. 1<" not in text
    assert f"no. {LATEST + 1}<" in text
    assert "And 2 earlier" in text


def test_a_draft_is_rejected_where_the_review_shows_it(
    as_owner: Client, as_other: Client, owner: User, rows: Rows, other_rows: Rows, draft: SkillDraft
) -> None:
    review = _waiting(rows, draft)
    url, page = _url("reject", draft.pk), reverse("admin:trust_review_change", args=[review.pk])
    posted = {"version": draft.version, "review": review.pk}
    assert as_other.post(url, posted).status_code == 404
    checked = Client(enforce_csrf_checks=True)
    checked.force_login(owner, backend="django.contrib.auth.backends.ModelBackend")
    assert checked.post(url, posted).status_code == 403
    token = checked.get(page).context["csrf_token"]
    response = checked.post(url, {**posted, "csrfmiddlewaretoken": str(token)}, follow=True)
    assert response.redirect_chain == [(page, 302)]
    text = response.content.decode()
    assert "Rejected. Such requests go on coming to you" in text
    assert "If you have it handled from now on" not in text
    assert _state(draft) == "rejected"
    review.refresh_from_db()
    assert (review.state, review.draft) == ("pending", None)
    # Nowhere else, whatever is posted.
    for where in ("https://evil.example/", "9" * 30, "-1", "٣"):
        answer = as_owner.post(url, {**posted, "review": where})
        assert answer["Location"] == _url("change", draft.pk)


def test_what_others_use_is_named(as_owner: Client, rows: Rows, draft: SkillDraft) -> None:
    skill = draft_approve(draft=draft, version=draft.version)
    grant_add(caller=rows.caller, slug=skill.slug)
    assert not_like_this(caller=draft.caller, slug=skill.slug, task=uuid.uuid4(), request="x")
    draft.refresh_from_db()
    review = _waiting(rows, draft)
    assert "is granted to olivias-bot, too, and stays as it is for them" in _page(as_owner, draft)
    text = as_owner.get(reverse("admin:trust_review_change", args=[review.pk])).content.decode()
    assert "is granted to olivias-bot, too, and stays as it is for them" in text
    _post(as_owner, draft, "approve")
    assert "it is granted to olivias-bot, too" in AuditEntry.objects.filter(action="draft.approved").latest("id").reason
    assert Skill.objects.filter(by_example=True).count() == 2


def test_what_can_not_be_approved_says_why(as_owner: Client, rows: Rows, draft: SkillDraft) -> None:
    review = _waiting(rows, draft)
    caller_set_enabled(caller=draft.caller, enabled=False)
    Review.objects.filter(pk=review.pk).update(state=Review.State.PENDING)
    told = "parcel-bot is disabled. Enable it first, or reject the draft."
    text = _page(as_owner, draft)
    assert told in text
    assert _url("approve", draft.pk) not in text
    assert told in as_owner.get(reverse("admin:trust_review_change", args=[review.pk])).content.decode()
    assert told in _post(as_owner, draft, "approve")
    assert _state(draft) == "open"


def test_why_it_was_withdrawn_is_told(as_owner: Client, draft: SkillDraft) -> None:
    draft_withdraw(draft=draft, reason=DECIDED_OTHERWISE)
    text = _page(as_owner, draft)
    assert "You decided the last 3 such requests otherwise." in text
    assert "was taken back" not in text


def test_a_draft_that_was_decided_elsewhere_is_not_offered(as_owner: Client, rows: Rows, draft: SkillDraft) -> None:
    review = _waiting(rows, draft)
    draft_approve(draft=draft, version=draft.version)
    text = as_owner.get(reverse("admin:trust_review_change", args=[review.pk])).content.decode()
    assert "Reject the draft" not in text
    assert 'value="grant"' not in text
    assert 'value="approve"' in text


def test_the_climb_is_on_the_callers_page(as_owner: Client, draft: SkillDraft) -> None:
    url = admin_url(Caller, "change", draft.caller_id)
    text = as_owner.get(url).content.decode()
    assert "It is where it began." in text
    draft_update(draft=draft, version=draft.version, name="Parcels")
    _post(as_owner, draft, "approve")
    text = as_owner.get(url).content.decode()
    trust_history = text[text.index(">Trust history<") : text.index(">History<")]
    assert trust_history.index("Draft edited") < trust_history.index("Draft approved") < trust_history.index("Granted")
    for part in (f"{draft.slug} (act)", "Approved the draft “Parcels”.", "owner olivia"):
        assert part in trust_history, part
    assert "key.created" not in trust_history
    assert "key.created" in text
