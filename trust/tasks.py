"""Celery tasks of the package, each a call of a service."""

from celery import shared_task

from trust.learning.preview import draft_preview
from trust.learning.services import caller_learn
from trust.models import Caller
from trust.selectors import callers_to_learn, drafts_untried
from trust.services import reviews_sweep
from volcanic.celery import publish


@shared_task(name="trust.tasks.sweep")
def sweep() -> None:
    """Ends reviews whose time has passed, and warns the owner of reviews that end soon."""
    reviews_sweep()


@shared_task(name="trust.tasks.learn")
def learn(caller_id: int) -> None:
    """Learns from the owner's decisions about a caller."""
    for caller in Caller.objects.filter(pk=caller_id):
        caller_learn(caller=caller)


@shared_task(name="trust.tasks.learn_all")
def learn_all() -> None:
    """Sends a message for each caller with something new to learn from, and for each draft that was not tried yet.

    This makes up for lost messages, and for news without a message of its own: a caller that only notifies the owner.
    """
    for caller_id in callers_to_learn():
        publish("trust.tasks.learn", caller_id)
    for draft_id in drafts_untried():
        publish("trust.tasks.preview", draft_id)


@shared_task(name="trust.tasks.preview")
def preview(draft_id: int) -> None:
    """Tries a draft on the last request that it was learned from."""
    draft_preview(draft_id=draft_id)
