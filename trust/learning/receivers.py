"""What learning hears of."""

from typing import Any

from django.dispatch import receiver

from trust.selectors import evidence_of_grant
from trust.signals import grant_revoked


@receiver(grant_revoked)
def take_back_evidence(*, caller_id: int, skill: str, keeps_evidence: bool, **_kwargs: Any) -> None:
    """A grant that the owner took back is not proposed again from the decisions that led to it."""
    from trust.learning.services import observations_reverse  # a third of a second, at start

    if not keeps_evidence and (ids := evidence_of_grant(caller_id=caller_id, slug=skill)):
        observations_reverse(ids=ids, reason=f"The grant of {skill} was revoked.")
