"""Pages of drafts in the admin: their addresses, their texts, and what a browser posts to them."""

from typing import Any

from django.test import Client
from django.urls import reverse

from trust.models import SkillDraft

EXAMPLE = "Please note that the parcel of Friday has come.\nIt weighs 2 kg."


def draft_url(page: str, *args: object) -> str:
    """Returns the address of a page of drafts."""
    return reverse(f"admin:trust_skilldraft_{page}", args=args)


def draft_page(client: Client, draft: SkillDraft) -> str:
    """Returns the text of a draft's page."""
    response = client.get(draft_url("change", draft.pk))
    assert response.status_code == 200
    return response.content.decode()


def drafts_listed(client: Client, **query: Any) -> str:
    """Returns the text of the list of drafts."""
    response = client.get(draft_url("changelist"), query)
    assert response.status_code == 200
    return response.content.decode()


def post_draft(client: Client, draft: SkillDraft, verb: str, **data: Any) -> str:
    """Returns the text of a draft's page after something was posted to it, with the version that is shown."""
    response = client.post(draft_url(verb, draft.pk), {"version": draft.version, **data}, follow=True)
    assert response.redirect_chain == [(draft_url("change", draft.pk), 302)]
    return str(response.content.decode())


def draft_edits(draft: SkillDraft, **changes: Any) -> dict[str, Any]:
    """Returns what a browser posts of the form: lines end with a carriage return too."""
    return {
        "name": draft.name,
        "description": draft.description,
        "instructions": draft.instructions.replace("\n", "\r\n"),
        "tools": draft.tools,
        "examples": "\r\n".join(" ".join(example.split()) for example in draft.examples),
        **changes,
    }


def draft_state(draft: SkillDraft) -> str:
    """Returns the state of a draft as it is stored."""
    draft.refresh_from_db()
    return draft.state
