"""What is learned from the owner's decisions: drafts of skills."""

from django.db import models
from django.db.models import Q
from django.utils import timezone

from trust.models.callers import Caller
from trust.models.skills import Skill
from volcanic.text import one_way


class SkillDraft(models.Model):
    """A proposal to the owner: what they decided alike again and again could be a skill of one caller."""

    class State(models.TextChoices):
        """What became of it. Open is the only state from which the owner decides."""

        OPEN = "open", "Proposed"
        APPROVED = "approved", "Approved"
        REJECTED = "rejected", "Rejected"
        WITHDRAWN = "withdrawn", "Withdrawn"

    class Source(models.TextChoices):
        """What wrote it."""

        MODEL = "model", "The assistant"
        RULE = "rule", "A rule"

    caller = models.ForeignKey(Caller, on_delete=models.CASCADE, related_name="drafts")
    # The skill that was made of it, once it was approved.
    skill = models.ForeignKey(Skill, on_delete=models.SET_NULL, null=True, blank=True, related_name="drafts")
    slug = models.CharField("id", max_length=64)
    name = models.CharField(max_length=100)
    description = models.TextField()
    # Requests of the caller that it was learned from, in the caller's words.
    examples = models.JSONField(default=list)
    instructions = models.TextField()
    tools = models.JSONField(default=list)
    # How the owner decided each of them, an Observation.Decision, and which observations those are.
    decision = models.CharField(max_length=10)
    evidence = models.JSONField(default=list)
    source = models.CharField(max_length=10, choices=Source.choices, default=Source.RULE)
    state = models.CharField(max_length=10, choices=State.choices, default=State.OPEN)
    # Changed with every edit: a decision names it, and counts for nothing else.
    version = models.PositiveIntegerField(default=1)
    # Why it was put before the owner again.
    note = models.TextField(blank=True)
    # What the assistant would answer to the last request, having only looked; and why it could not be tried.
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
