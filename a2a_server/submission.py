"""A message that a caller sent, in our own words, and what became of it."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from a2a_server.files import IncomingFile
from a2a_server.selectors import TaskView
from trust.limits import Limits


@dataclass(frozen=True, kw_only=True)
class WantedPush:
    """A webhook as a caller asks for it, checked. `config_id` is "" when the server is to choose one."""

    config_id: str
    url: str
    token: str | None
    auth_scheme: str
    auth_credentials: str | None
    version: str


@dataclass(frozen=True, kw_only=True)
class Submission:
    """A message that a caller sent, checked and in our own words.

    `message` is its wire form, `digest` of the whole of it. `task_id` names the task to make, or when `continues` the
    one to go on with; `context_id` may be "".
    """

    caller_id: int
    caller_name: str
    workspace_id: int
    message: dict[str, Any]
    digest: str
    task_id: uuid.UUID
    continues: bool = False
    context_id: str = ""
    metadata: dict[str, Any] | None = None
    accepted_output_modes: Sequence[str] = ()
    hops: int = 0
    files: Sequence[IncomingFile] = ()
    push: WantedPush | None = None
    limits: Limits = field(default_factory=Limits.of)
    # How many tasks its caller has stored, as of the last count.
    stored_tasks: int = 0
    # The key that it came with, where it came with one.
    key_id: int | None = None
    # Of what it asks for, whatever its id.
    request_digest: str = ""
    # What it calls the skill that it asks for; None for a plain request.
    skill: Any = None


class Submitted(NamedTuple):
    """The task that a message led to. `fresh` when this call has it run; otherwise nothing is about to happen. `view`
    is the task where it is known without reading it: a built-in skill answered."""

    task_id: uuid.UUID
    fresh: bool
    view: TaskView | None = None
