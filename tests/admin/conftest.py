"""Fixtures of the admin's tests: two owners with one row of each table, and clients logged in as the cast."""

import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from a2a_server.models import Artifact, PushConfig, Task, TaskEvent, TaskState
from tests.admin.draft_pages import EXAMPLE
from tests.conftest import hashed
from trust.models import (
    AuditEntry,
    Caller,
    CallerIdentity,
    CallerKey,
    Grant,
    Level,
    Observation,
    Review,
    Skill,
    SkillDraft,
)
from trust.services import Request, caller_create, grant_add, identity_add, review_open
from volcanic.models import Memory, Notification, NotificationDelivery, Session, Turn, Workspace
from volcanic.services import memory_create, notification_create

# For each admin screen of owners, the HTTP status of its add page and of its delete page.
OWNED = {
    Workspace: (403, 403),
    Session: (403, 403),
    Caller: (200, 403),
    Skill: (200, 200),
    Grant: (200, 200),
    CallerIdentity: (403, 200),
    AuditEntry: (403, 403),
    Review: (403, 403),
    Observation: (403, 403),
    SkillDraft: (403, 403),
    Task: (403, 403),
    PushConfig: (403, 403),
    Memory: (403, 200),
    Notification: (403, 200),
    NotificationDelivery: (403, 403),
}


def admin_url(model: type[Any], page: str, *args: Any) -> str:
    """Returns the address of a page in a table's admin screen."""
    return reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_{page}", args=args)


@dataclass(frozen=True)
class Rows:
    """One row of each table in one workspace. Every text in the rows contains `mark`."""

    mark: str
    workspace: Workspace
    caller: Caller
    api_key: str
    key: CallerKey
    skill: Skill
    grant: Grant
    session: Session
    task: Task
    memory: Memory
    push_config: PushConfig
    notification: Notification
    delivery: NotificationDelivery
    identity: CallerIdentity
    audit: AuditEntry
    review: Review
    observation: Observation
    draft: SkillDraft

    def row_of(self, model: type[Any]) -> Any:
        """Returns the row of a table in this workspace."""
        return {
            Workspace: self.workspace,
            Session: self.session,
            Caller: self.caller,
            Skill: self.skill,
            Grant: self.grant,
            Task: self.task,
            Memory: self.memory,
            Notification: self.notification,
            NotificationDelivery: self.delivery,
            PushConfig: self.push_config,
            CallerIdentity: self.identity,
            Review: self.review,
            Observation: self.observation,
            SkillDraft: self.draft,
            AuditEntry: self.audit,
        }[model]


def wire_message(role: str, text: str) -> dict[str, Any]:
    """Returns a message in the 1.0 wire form."""
    return {"messageId": str(uuid.uuid4()), "role": role, "parts": [{"text": text}]}


def make_task(rows: Rows | None = None, *, state: TaskState = TaskState.INPUT_REQUIRED, **values: Any) -> Task:
    """Returns a task with an event and an artifact, in the workspace of `rows` if given."""
    if rows is not None:
        session = Session.objects.create(workspace=rows.workspace, kind="inbound", scope=str(uuid.uuid4()))
        values = {"caller": rows.caller, "session": session, "context_id": str(uuid.uuid4()), **values}
    values.setdefault("history", [wire_message("ROLE_USER", "a request")])
    task = Task.objects.create(state=state, seq=1, **values)
    status = {"state": f"TASK_STATE_{state.upper()}"}
    TaskEvent.objects.create(task=task, seq=1, payload={"statusUpdate": {"taskId": str(task.pk), "status": status}})
    return task


def make_review(caller: Caller, task: Task, *, text: str = "a request", **values: Any) -> Review:
    """Returns a review, waiting for the owner, of a task whose messages say `text`."""
    request: dict[str, Any] = {
        "caller_id": caller.pk,
        "task": task.pk,
        "context_id": task.context_id,
        "keys": [],
        "skill": "chat",
        "level": Level(caller.level),
        "messages": task.history or [wire_message("ROLE_USER", text)],
        "message_count": len(task.history) or 1,
        "text": text,
        "files": [],
        "request_digest": str(uuid.uuid4()),
        "summary": f"Wants this done: {text}",
        "suggestion": "approve: it looks harmless.",
    }
    return review_open(request=Request(**{**request, **values}))


def make_draft(
    caller: Caller, evidence: Sequence[Observation] = (), *, text: str = "a request", **values: Any
) -> SkillDraft:
    """Returns an open draft of a skill for requests that say `text`."""
    number = SkillDraft.objects.count()
    return SkillDraft.objects.create(
        **{
            "caller": caller,
            "slug": f"learned-{caller.name}-{number}",
            "name": "A draft",
            "description": "Such requests.",
            "examples": [text],
            "instructions": "Do it.",
            "tools": ["write_file"],
            "decision": "approve",
            "evidence": [one.pk for one in evidence],
            **values,
        }
    )


def make_rows(workspace: Workspace, mark: str) -> Rows:
    """Returns one row of each table in a workspace, with `mark` in the texts."""
    Workspace.objects.filter(pk=workspace.pk).update(card_name=f"{mark} card")
    workspace.refresh_from_db()
    caller, api_key = caller_create(workspace=workspace, name=f"{mark}-bot", level=Level.ACT, note=f"{mark} note")
    skill = Skill.objects.create(workspace=workspace, slug=f"{mark}-skill", name=f"{mark} skill", description="x")
    session = Session.objects.create(
        workspace=workspace, kind="inbound", scope=f"a2a-{caller.pk}_{mark}-context", title=f"{mark} title"
    )
    now = timezone.now()
    Turn.objects.create(session=session, prompt=f"{mark} prompt", state="completed", started_at=now, finished_at=now)
    task = make_task(
        caller=caller,
        session=session,
        context_id=f"{mark}-context",
        history=[wire_message("ROLE_USER", f"{mark} request")],
        status_message=wire_message("ROLE_AGENT", f"{mark} question"),
    )
    payload = {"artifactId": "response", "parts": [{"text": f"{mark} answer"}]}
    Artifact.objects.create(task=task, artifact_id="response", payload=payload)
    review = make_review(caller, task, text=f"{mark} request")
    observation = Observation.objects.create(
        caller=caller, review=review, task=task.pk, skill="chat", request=f"{mark} request", decision="approve"
    )
    return Rows(
        mark=mark,
        workspace=workspace,
        caller=caller,
        api_key=api_key,
        key=caller.keys.get(),
        skill=skill,
        grant=grant_add(caller=caller, slug=skill.slug),
        session=session,
        task=task,
        memory=memory_create(
            workspace_id=workspace.pk, text=f"{mark} memory", source=f"a2a-{caller.pk}", caller=caller.name
        ),
        push_config=PushConfig.objects.create(
            task=task, config_id=f"{mark}-hook", url=f"https://{mark}.example/hook", token=f"{mark}-token"
        ),
        notification=notification_create(
            workspace_id=workspace.pk, session_id=session.pk, text=f"{mark} notification", caller=caller.name
        ),
        delivery=NotificationDelivery.objects.create(
            workspace=workspace, channel=f"{mark} channel", url="json://192.0.2.1/SECRET-PATH", text=f"{mark} told"
        ),
        identity=identity_add(caller=caller, issuer="https://id.example", agent_id=f"{mark}-agent"),
        audit=AuditEntry.objects.get(caller_id=caller.pk, action="caller.created"),
        review=review,
        observation=observation,
        draft=make_draft(caller, [observation], text=f"{mark} request", name=f"{mark} draft"),
    )


@pytest.fixture
def rows(workspace: Workspace) -> Rows:
    """Gives the owner's rows."""
    return make_rows(workspace, "olivias")


@pytest.fixture
def other_rows(other_workspace: Workspace) -> Rows:
    """Gives the other owner's rows."""
    return make_rows(other_workspace, "oscars")


@pytest.fixture
def task(rows: Rows) -> Task:
    """Gives a task that waits for the owner, of a caller at the level Observe."""
    caller, _ = caller_create(workspace=rows.workspace, name="travel-bot")
    return make_task(rows, state=TaskState.AUTH_REQUIRED, caller=caller)


@pytest.fixture
def review(task: Task) -> Review:
    """Gives the review of the fixture `task`."""
    return make_review(task.caller, task, text="book the train to Bern")


@pytest.fixture
def caller(rows: Rows) -> Caller:
    """Gives a caller at Propose."""
    caller, _ = caller_create(workspace=rows.workspace, name="parcel-bot", level=Level.PROPOSE)
    return caller


@pytest.fixture
def draft(caller: Caller) -> SkillDraft:
    """Gives an open draft of the fixture `caller`, learned from two decisions, and tried."""
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


@pytest.fixture
def staff_without_workspace(db: None) -> User:
    """Gives a user who may log in and owns no workspace."""
    return User.objects.create(username="sven", password=hashed("sven-password"), is_staff=True)


LoginAs = Callable[[User], Client]


@pytest.fixture
def login_as() -> LoginAs:
    """Gives a function that returns a client logged in as a user."""

    def login(user: User) -> Client:
        client = Client()
        client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
        return client

    return login


@pytest.fixture
def as_owner(login_as: LoginAs, owner: User) -> Client:
    """Gives a client logged in as the owner."""
    return login_as(owner)


@pytest.fixture
def as_other(login_as: LoginAs, other_owner: User) -> Client:
    """Gives a client logged in as the other owner."""
    return login_as(other_owner)


@pytest.fixture
def as_superuser(login_as: LoginAs, superuser: User) -> Client:
    """Gives a client logged in as the superuser."""
    return login_as(superuser)
