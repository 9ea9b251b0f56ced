"""Receivers of trust's signals that learning needs."""

from typing import Any

from django.dispatch import receiver

from trust.selectors import evidence_of_grant
from trust.signals import grant_revoked


@receiver(grant_revoked)
def take_back_evidence(*, caller_id: int, skill: str, keeps_evidence: bool, **_kwargs: Any) -> None:
    """Takes back the decisions behind a revoked grant, so that they do not propose the skill again."""
    from trust.learning.services import observations_reverse  # the import would cost each start a third of a second

    if not keeps_evidence and (ids := evidence_of_grant(caller_id=caller_id, slug=skill)):
        observations_reverse(ids=ids, reason=f"The grant of {skill} was revoked.")
