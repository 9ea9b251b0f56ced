"""The verbs of prompts: messages to the assistant in an owner's session. Nothing else writes a prompt's state.

    queued → running → completed | input_required | failed | stopped

A session runs one prompt at a time, in the order in which they came; what comes meanwhile waits and never steers the
one that runs. A run holds a lease, and all its writes name its attempt. A run whose worker is gone has failed ("server
restarted"); the queue goes on. What was said is in the session's transcript however the run ended.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from django.core.exceptions import ValidationError
from django.db import IntegrityError, connection, transaction
from django.db.models import Exists, OuterRef, QuerySet
from django.utils import timezone

from volcanic import events
from volcanic.celery import publish
from volcanic.models import Prompt, Session, Workspace
from volcanic.origins import owner_scope
from volcanic.redaction import redact
from volcanic.runtime.base import Outcome
from volcanic.services import turn_create
from volcanic.text import clean_text
from volcanic.turns.buffer import Chunk
from volcanic.turns.leases import SERVER_RESTARTED, LeaseKind, lease_duration

State = Prompt.State

# The asker of every question in an owner's session. The owner's next message answers it.
OWNER_ASKER = "owner"
MAIN = "main"
LEASES = LeaseKind("prompt", "volcanic_prompt", "running", "bigint")
MAX_TEXT = 200_000
MAX_QUEUED = 100
STOPPED = "(stopped)"

# The oldest prompt that waits in a session, if none runs there.
_CLAIM = """
    UPDATE volcanic_prompt AS prompt
    SET state = 'running', attempt = attempt + 1, worker = %(worker)s, lease_expires_at = %(lease)s,
        started_at = %(now)s
    WHERE id = (SELECT id FROM volcanic_prompt
                WHERE session_id = %(session)s AND state = 'queued' ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED)
      AND state = 'queued'
      AND NOT EXISTS (SELECT FROM volcanic_prompt WHERE session_id = %(session)s AND state = 'running')
    RETURNING id
"""


def owner_session(*, workspace: Workspace, name: str = MAIN) -> Session:
    """Returns the owner's session of this name, made if there is none. Raises ValidationError for a bad name."""
    name = _session_name(name)
    session, _ = Session.objects.get_or_create(
        workspace=workspace, scope=owner_scope(name), defaults={"kind": Session.Kind.OWNER, "title": name}
    )
    return session


def owner_session_find(*, workspace: Workspace, name: str = MAIN) -> Session | None:
    """Returns the owner's session of this name, None if nothing was said there yet. Raises ValidationError for a bad
    name."""
    return Session.objects.filter(workspace=workspace, scope=owner_scope(_session_name(name))).first()


def _session_name(name: str) -> str:
    name = clean_text(name).strip()
    if not name or len(name) > 100:
        raise ValidationError("A session's name has 1 to 100 characters.")
    return name


def prompt_submit(
    *,
    session: Session,
    text: str,
    origin: str,
    kind: Prompt.Kind = Prompt.Kind.MESSAGE,
    files: Sequence[str] = (),
) -> Prompt:
    """Queues a prompt in an owner's session, and has it run when its turn comes.

    `origin` says where it comes from. A MESSAGE answers the assistant's open question, a FOLLOW_UP does not. `files`
    are paths in the workspace. Raises ValidationError for an empty or too long text, and when MAX_QUEUED wait already.
    """
    text = clean_text(text).strip()
    if not text:
        raise ValidationError("There is no text.")
    if len(text) > MAX_TEXT:
        raise ValidationError(f"The text has {len(text)} characters, and {MAX_TEXT} are the most.")
    assert session.kind == Session.Kind.OWNER
    with transaction.atomic():
        Session.objects.filter(pk=session.pk).update(last_active_at=timezone.now())  # prompts come one after the other
        if Prompt.objects.filter(session=session, state=State.QUEUED).count() >= MAX_QUEUED:
            raise ValidationError(f"{MAX_QUEUED} prompts wait in this session already.")
        prompt = Prompt.objects.create(session=session, text=text, origin=origin, kind=kind, files=list(files))
        _tell(prompt)
        transaction.on_commit(lambda: prompts_enqueue(session.pk))
    return prompt


def prompts_enqueue(session_id: int) -> None:
    """Sends the Celery message that has a worker look at a session's queue."""
    publish("volcanic.tasks.run_prompt", session_id)


def prompt_claim(*, session_id: int, worker: str) -> Prompt | None:
    """Takes the next prompt of a session for this worker: queued → running, under a lease.

    Returns None when nothing waits, or a prompt of the session runs already.
    """
    now = timezone.now()
    values: dict[str, Any] = {"session": session_id, "worker": worker, "now": now, "lease": now + lease_duration()}
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(_CLAIM, values)
            row = cursor.fetchone()
            if row is None:
                return None
            prompt = Prompt.objects.select_related("session__workspace").get(pk=row[0])
            _tell(prompt)
    except IntegrityError as error:
        if "prompt_one_running_per_session" in str(error):  # another worker was faster
            return None
        raise
    return prompt


def prompt_write(*, prompt: Prompt, chunk: Chunk) -> bool:
    """Stores the answer so far while its run goes on. Returns whether the run still holds its lease; if not, nothing
    was written."""
    with transaction.atomic():
        held = bool(_held(prompt).update(answer=redact(chunk.whole)))
        if held:
            _append(prompt, {"text": redact(chunk.new), "append": chunk.append})
    return held


def prompt_note_tool(*, prompt: Prompt, name: str) -> bool:
    """Tells the owner's pages that a tool is about to be called. Returns whether the run still holds its lease."""
    with transaction.atomic():
        held = _held(prompt).select_for_update(no_key=True).exists()
        if held:
            _append(prompt, {"tool": name})
    return held


def prompt_finish(*, prompt: Prompt, outcome: Outcome, answers: bool = False) -> bool:
    """Ends a run with what its turn came to: answer, state and transcript, all or nothing.

    `answers`: the turn answered the open question of the session. Returns whether the run still held its lease; if not,
    nothing was written.
    """
    with transaction.atomic():
        ended = _end(_held(prompt), prompt, State(_STATES[outcome.state.value]), redact(outcome.text))
        if ended:
            turn_create(
                session_id=prompt.session_id,
                origin=prompt.origin,
                asker=OWNER_ASKER,
                prompt=prompt.text,
                messages=outcome.messages or _words(prompt, outcome.text),
                pending=outcome.pending,
                state=outcome.state.value,
                started_at=prompt.started_at or timezone.now(),
                closes_question=answers,
            )
    return ended


_STATES = {"completed": "completed", "input_required": "input_required", "failed": "failed", "rejected": "failed"}


def prompt_stop(*, session: Session) -> Prompt | None:
    """Stops the prompt that runs in a session: its worker notices within a second and writes nothing more. What it had
    said so far stays in the transcript. Returns it; None when nothing ran. The queue goes on."""
    with transaction.atomic():
        running = Prompt.objects.select_for_update(of=("self",)).filter(session=session, state=State.RUNNING)
        prompt = running.select_related("session").first()
        if prompt is None:
            return None
        _break_off(prompt, State.STOPPED, STOPPED)
    return prompt


def prompts_clear(*, session: Session) -> int:
    """Takes back what waits in a session. Returns how many prompts."""
    with transaction.atomic():
        waiting = list(Prompt.objects.select_for_update(of=("self",)).filter(session=session, state=State.QUEUED))
        for prompt in waiting:
            prompt.session = session
            _end(Prompt.objects.filter(pk=prompt.pk, state=State.QUEUED), prompt, State.STOPPED, "")
    return len(waiting)


def prompt_restarted(*, prompt: Prompt) -> bool:
    """Fails the run of a worker that goes away: "server restarted". Returns whether the run still held its lease."""
    with transaction.atomic():
        held = Prompt.objects.select_for_update(of=("self",)).select_related("session")
        row = held.filter(pk=prompt.pk, attempt=prompt.attempt, state=State.RUNNING).first()
        if row is None:
            return False
        _break_off(row, State.FAILED, SERVER_RESTARTED)
    return True


def prompts_sweep(*, unclaimed_after: timedelta = timedelta(seconds=5), limit: int = 500) -> tuple[int, int]:
    """Fails runs whose worker is gone, and has those sessions looked at in which a prompt waits and none runs.

    Returns how many of each.
    """
    now = timezone.now()
    expired = Prompt.objects.filter(state=State.RUNNING, lease_expires_at__lt=now)
    failed = sum(_expire(key, now) for key in expired.values_list("pk", flat=True)[:limit])
    running = Prompt.objects.filter(session=OuterRef("session"), state=State.RUNNING)
    waiting = Prompt.objects.filter(~Exists(running), state=State.QUEUED, created_at__lt=now - unclaimed_after)
    sessions = list(waiting.order_by("session").values_list("session", flat=True).distinct()[:limit])
    for session_id in sessions:
        prompts_enqueue(session_id)
    return failed, len(sessions)


def _expire(key: int, now: datetime) -> bool:
    with transaction.atomic():
        rows = Prompt.objects.select_for_update(of=("self",), skip_locked=True).select_related("session")
        prompt = rows.filter(pk=key, state=State.RUNNING, lease_expires_at__lt=now).first()
        if prompt is None:
            return False
        _break_off(prompt, State.FAILED, SERVER_RESTARTED)
    return True


def _held(prompt: Prompt) -> QuerySet[Prompt]:
    return Prompt.objects.filter(pk=prompt.pk, attempt=prompt.attempt, state=State.RUNNING)


def _break_off(prompt: Prompt, state: State, reason: str) -> None:
    """Ends a locked run from outside, with what it had said so far."""
    said = prompt.answer
    if _end(Prompt.objects.filter(pk=prompt.pk, state=State.RUNNING), prompt, state, said or reason):
        turn_create(
            session_id=prompt.session_id,
            origin=prompt.origin,
            asker=OWNER_ASKER,
            prompt=prompt.text,
            messages=_words(prompt, f"{said}\n{reason}".strip()),
            pending=None,
            state="failed",
            started_at=prompt.started_at or timezone.now(),
        )


def _words(prompt: Prompt, answer: str) -> list[dict[str, str]]:
    """Returns the transcript of a run that left no messages of a model, in the neutral form."""
    return [{"role": "user", "text": prompt.text}, {"role": "assistant", "text": redact(answer)}]


def _end(rows: QuerySet[Prompt], prompt: Prompt, state: State, answer: str) -> bool:
    """Ends a prompt, if it is among `rows`, tells of it, and has the session's queue looked at after commit."""
    ended = rows.update(
        state=state, answer=clean_text(answer), lease_expires_at=None, worker="", finished_at=timezone.now()
    )
    if ended:
        prompt.state, prompt.answer = state, clean_text(answer)
        _tell(prompt)
        if Prompt.objects.filter(session=prompt.session_id, state=State.QUEUED).exists():
            transaction.on_commit(lambda: prompts_enqueue(prompt.session_id))
    return bool(ended)


def _tell(prompt: Prompt) -> None:
    """Writes the event of a prompt's state."""
    facts: dict[str, Any] = {"state": str(prompt.state)}
    if prompt.state == State.QUEUED:
        facts |= {"text": prompt.text, "kind": str(prompt.kind), "origin": prompt.origin}
    elif prompt.state != State.RUNNING:
        facts["answer"] = prompt.answer
    _append(prompt, facts)


def _append(prompt: Prompt, facts: dict[str, Any]) -> None:
    events.event_append(
        workspace_id=prompt.session.workspace_id,
        kind=events.PROMPT,
        subject=prompt.pk,
        payload={"session": prompt.session_id, **facts},
    )
