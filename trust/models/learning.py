"""Drafts of skills, learned from the owner's decisions."""

from django.db import models
from django.db.models import Q
from django.utils import timezone

from trust.models.callers import Caller
from trust.models.skills import Skill
from volcanic.text import one_way


class SkillDraft(models.Model):
    """A proposal to the owner: a skill for one caller, learned from several decisions that were alike."""

    class State(models.TextChoices):
        """The state of a draft. The owner can decide open drafts only."""

        OPEN = "open", "Proposed"
        APPROVED = "approved", "Approved"
        REJECTED = "rejected", "Rejected"
        WITHDRAWN = "withdrawn", "Withdrawn"

    class Source(models.TextChoices):
        """The author of a draft's text."""

        MODEL = "model", "The assistant"
        RULE = "rule", "A rule"

    caller = models.ForeignKey(Caller, on_delete=models.CASCADE, related_name="drafts")
    # The skill that was made from the draft when it was approved.
    skill = models.ForeignKey(Skill, on_delete=models.SET_NULL, null=True, blank=True, related_name="drafts")
    slug = models.CharField("id", max_length=64)
    name = models.CharField(max_length=100)
    description = models.TextField()
    # The requests that the draft was learned from, in the caller's words.
    examples = models.JSONField(default=list)
    instructions = models.TextField()
    tools = models.JSONField(default=list)
    # The owner's decision on each of these requests (an Observation.Decision), and the ids of these observations.
    decision = models.CharField(max_length=10)
    evidence = models.JSONField(default=list)
    source = models.CharField(max_length=10, choices=Source.choices, default=Source.RULE)
    state = models.CharField(max_length=10, choices=State.choices, default=State.OPEN)
    # Grows with each edit. A decision names one version and counts for this version only.
    version = models.PositiveIntegerField(default=1)
    # The reason for putting the draft before the owner again.
    note = models.TextField(blank=True)
    # The assistant's answer to the last request, tried with tools that only look, and the reason if the try failed.
    preview = models.TextField(blank=True)
    preview_problem = models.TextField(blank=True)
    previewed_at = models.DateTimeField(null=True, blank=True)
    decision_text = models.TextField(blank=True)
    decided_by = models.CharField(max_length=150, blank=True)
    decided_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        verbose_name = "draft"
        constraints = [
            models.CheckConstraint(
                condition=Q(state__in=["open", "approved", "rejected", "withdrawn"]), name="draft_state_listed"
            ),
        ]
        indexes = [models.Index(fields=["caller", "state"], name="draft_of_caller")]

    def __str__(self) -> str:
        return one_way(f"{self.name} ({self.caller})")
