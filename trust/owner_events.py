"""Events for the owner's pages: a review or a draft is there, has changed, or needs nobody any more.

Called by the services, in the transaction of the change. A page that hears of one reads the row.
"""

from trust.models import Review, SkillDraft
from volcanic.events import DRAFT, REVIEW, event_append


def review_changed(review: Review) -> None:
    """Tells that a review was opened, added to, changed or decided. `review` has its present state; one statement."""
    payload = {"state": str(review.state), "task": str(review.task)}
    event_append(workspace_id=review.caller.workspace_id, kind=REVIEW, subject=review.pk, payload=payload)


def draft_changed(draft: SkillDraft, state: str | None = None) -> None:
    """Tells that a draft was proposed, changed or decided. `state` is its present one where `draft` is older; one
    statement."""
    payload = {"state": str(state or draft.state)}
    event_append(workspace_id=draft.caller.workspace_id, kind=DRAFT, subject=draft.pk, payload=payload)
