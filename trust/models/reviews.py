"""Requests that wait for the owner, and what the owner decided."""

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django.utils import timezone

from trust.models.callers import Caller, Level
from trust.models.learning import SkillDraft
from volcanic.text import one_way


class Review(models.Model):
    """An inbound request that waits for the owner's decision, or waited for it."""

    class State(models.TextChoices):
        """What became of it. Pending is the only state from which the owner decides."""

        PENDING = "pending", "Waiting for you"
        ASKED = "asked", "Waiting for the caller"
        APPROVED = "approved", "Approved"
        REPLIED = "replied", "Replied"
        DECLINED = "declined", "Declined"
        EXPIRED = "expired", "Expired"
        VOID = "void", "Void"

    # For the owner, or for the caller's answer to them.
    WAITING = (State.PENDING, State.ASKED)

    caller = models.ForeignKey(Caller, on_delete=models.CASCADE, related_name="reviews")
    # The A2A task that it is about: trust knows no tasks.
    task = models.UUIDField(unique=True)
    context_id = models.CharField(max_length=100, blank=True)
    # The keys (CallerKey) that its messages came with, where they came with any: is one revoked, the review is void.
    keys = ArrayField(models.BigIntegerField(), default=list, editable=False)
    # The id of the skill asked for, `chat` for a plain request.
    skill = models.CharField(max_length=64)
    level = models.CharField(max_length=10, choices=Level.choices)
    # The caller's words, and a line for each file.
    request = models.TextField()
    files = models.JSONField(default=list)
    # A line for each earlier task that the messages refer to, as the assistant would be told of it.
    references = models.JSONField(default=list, db_default=[])
    # The caller's messages that would run, as they came: the request and what was said since.
    messages = models.JSONField(default=list)
    # So many messages of the task's history are seen by it: one that comes later is none that was shown.
    message_count = models.PositiveIntegerField(default=0, editable=False)
    # What was said since: [{"from": "caller" | "owner" | "assistant", "text": …, "at": …}].
    thread = models.JSONField(default=list)
    summary = models.TextField(blank=True)
    suggestion = models.TextField(blank=True)
    # Asks the owner whether to handle such requests from now on.
    offers_grant = models.BooleanField(default=False)
    # The draft of a skill that would cover it.
    draft = models.ForeignKey(SkillDraft, on_delete=models.SET_NULL, null=True, blank=True, related_name="reviews")
    # Of exactly what would run. A decision names it, and counts for nothing else.
    digest = models.CharField(max_length=64)
    # Of the request alone: the same one sent again joins this review.
    request_digest = models.CharField(max_length=64)
    state = models.CharField(max_length=10, choices=State.choices, default=State.PENDING)
    # The owner's words: an instruction, the reply, the question, the reason.
    decision_text = models.TextField(blank=True)
    # Why it is void, or why it was put before the owner again.
    note = models.TextField(blank=True)
    decided_by = models.CharField(max_length=150, blank=True)
    decided_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    expires_at = models.DateTimeField()
    # When the owner was told that it is about to expire.
    warned_at = models.DateTimeField(null=True, blank=True, editable=False)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(state__in=["pending", "asked", "approved", "replied", "declined", "expired", "void"]),
                name="review_state_listed",
            ),
            # The same request waits once; and how a new one finds it.
            models.UniqueConstraint(
                fields=["caller", "request_digest"], condition=Q(state="pending"), name="review_of_request_once"
            ),
        ]
        indexes = [
            # What waits: for the owner's page and for the sweep.
            models.Index(fields=["expires_at"], condition=Q(state__in=["pending", "asked"]), name="review_waiting"),
            models.Index(fields=["caller", "-id"], name="review_of_caller"),
        ]

    def __str__(self) -> str:
        return one_way(f"{self.caller}: {self.summary or self.request}")[:100]


class Observation(models.Model):
    """One decision of the owner about one request: what is learned from."""

    class Decision(models.TextChoices):
        """What the owner did."""

        APPROVE = "approve", "Approved"
        GRANT = "grant", "Approved and granted"
        REPLY = "reply", "Replied"
        ASK = "ask", "Asked back"
        DECLINE = "decline", "Declined"
        # Of what was done without them.
        UNLIKE = "unlike", "Not like this"

    caller = models.ForeignKey(Caller, on_delete=models.CASCADE, related_name="observations")
    review = models.ForeignKey(Review, on_delete=models.SET_NULL, null=True, related_name="observations")
    task = models.UUIDField()
    skill = models.CharField(max_length=64)
    request = models.TextField()
    decision = models.CharField(max_length=10, choices=Decision.choices)
    # What the caller was answered in the owner's words, and what the owner told the assistant to do otherwise.
    reply = models.TextField(blank=True)
    edits = models.TextField(blank=True)
    # There was more to it than one message of words: said since, files, earlier tasks. It is no example then.
    has_more = models.BooleanField(default=False, db_default=False, editable=False)
    # The owner took it back: nothing is learned from it.
    reversed_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        verbose_name = "decision"
        indexes = [
            # The latest of a caller; whom to learn about again.
            models.Index(fields=["caller", "-id"], name="observation_of_caller"),
        ]

    def __str__(self) -> str:
        return one_way(f"{self.get_decision_display()}: {self.request}")[:100]
