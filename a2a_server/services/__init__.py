"""The services of tasks: the only code that writes a task's state. Other packages import them from here.

Inside of this package every module may import `transitions`. `owner` and `submitting` may import `runs`, and
`submitting` may import `ending`.
"""

from a2a_server.services.ending import task_cancel, task_expire, task_read, tasks_sweep
from a2a_server.services.owner import task_answer, task_ask, task_reject, task_resume, task_stop
from a2a_server.services.runs import (
    ArtifactUpdate,
    Run,
    artifact_write,
    run_finish,
    run_note,
    run_release,
    run_uses,
    task_claim,
    task_settle,
)
from a2a_server.services.submitting import task_submit
from a2a_server.services.transitions import task_enqueue

__all__ = [
    "ArtifactUpdate",
    "Run",
    "artifact_write",
    "run_finish",
    "run_note",
    "run_release",
    "run_uses",
    "task_answer",
    "task_ask",
    "task_cancel",
    "task_claim",
    "task_enqueue",
    "task_expire",
    "task_read",
    "task_reject",
    "task_resume",
    "task_settle",
    "task_stop",
    "task_submit",
    "tasks_sweep",
]
