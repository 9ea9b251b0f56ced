"""Submissions: the checked content of a message that a caller sent, and the task that it led to.

The types here are independent of the SDK and of the protocol version; `wire.py` makes them.
"""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from a2a_server.files import IncomingFile
from a2a_server.selectors import TaskView
from trust.limits import Limits


@dataclass(frozen=True, kw_only=True)
class WantedPush:
    """A webhook that a caller asks for, checked. `config_id` is "" when the server is to choose the id."""

    config_id: str
    url: str
    token: str | None
    auth_scheme: str
    auth_credentials: str | None
    version: str


@dataclass(frozen=True, kw_only=True)
class Submission:
    """A message that a caller sent, checked.

    `message` is its A2A 1.0 wire form. `digest` is the digest of the whole message, its id included. `task_id` is the
    id of the task to make, or with `continues` of the task to go on with. `context_id` is "" where the message names
    no context.
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
    # The number of tasks that the caller has stored, as of the last count.
    stored_tasks: int = 0
    # The API key that the message came with; None for a caller that authenticated in another way.
    key_id: int | None = None
    # The digest of the request itself, without the message's id. It finds the same request sent under another id.
    request_digest: str = ""
    # The skill's name as the caller wrote it; None for a plain request.
    skill: Any = None


class Submitted(NamedTuple):
    """The task that a message led to.

    `fresh` says that this call has the task run; otherwise no run is about to begin. `view` is the task as stored,
    where a built-in skill answered; None where the task has to be read.
    """

    task_id: uuid.UUID
    fresh: bool
    view: TaskView | None = None
