"""The assistant's tables. Import them from here.

Inside, every module may import `workspaces` and `leased`, and `notifications` may import `sessions`.
"""

from volcanic.models.events import Event, EventLog
from volcanic.models.leased import LeasedRow
from volcanic.models.memory import Memory, WorkingNote
from volcanic.models.notifications import Notification, NotificationDelivery
from volcanic.models.sessions import Prompt, Session, Turn
from volcanic.models.workspaces import Presence, Workspace

__all__ = [
    "Event",
    "EventLog",
    "LeasedRow",
    "Memory",
    "Notification",
    "NotificationDelivery",
    "Presence",
    "Prompt",
    "Session",
    "Turn",
    "WorkingNote",
    "Workspace",
]
