"""Reviews, which are requests that wait for the owner, and observations, which are the owner's decisions."""

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
        """The state of a review. The owner can decide pending reviews only."""

        PENDING = "pending", "Waiting for you"
        ASKED = "asked", "Waiting for the caller"
        APPROVED = "approved", "Approved"
        REPLIED = "replied", "Replied"
        DECLINED = "declined", "Declined"
        EXPIRED = "expired", "Expired"
        VOID = "void", "Void"

    # The review waits for the owner, or for the caller's answer to the owner.
    WAITING = (State.PENDING, State.ASKED)

    caller = models.ForeignKey(Caller, on_delete=models.CASCADE, related_name="reviews")
    # The id of the A2A task. No foreign key, since trust knows no tasks.
    task = models.UUIDField(unique=True)
    context_id = models.CharField(max_length=100, blank=True)
    # The ids of the keys (CallerKey) that its messages came with. If one of them is revoked, the review becomes void.
    keys = ArrayField(models.BigIntegerField(), default=list, editable=False)
    # The id of the requested skill, `chat` for a plain request.
    skill = models.CharField(max_length=64)
    level = models.CharField(max_length=10, choices=Level.choices)
    # The caller's words, and a line for each file.
    request = models.TextField()
    files = models.JSONField(default=list)
    # A line for each earlier task that the messages refer to, in the words that the assistant would get.
    references = models.JSONField(default=list, db_default=[])
    # The caller's messages that would run, as they came: the request and the later messages.
    messages = models.JSONField(default=list)
    # The number of messages in the task's history that the review shows. A later message was not shown.
    message_count = models.PositiveIntegerField(default=0, editable=False)
    # The thread after the request: [{"from": "caller" | "owner" | "assistant", "text": …, "at": …}].
    thread = models.JSONField(default=list)
    summary = models.TextField(blank=True)
    suggestion = models.TextField(blank=True)
    # True if the owner is asked whether to handle such requests from now on.
    offers_grant = models.BooleanField(default=False)
    # The draft of a skill that would cover the request.
    draft = models.ForeignKey(SkillDraft, on_delete=models.SET_NULL, null=True, blank=True, related_name="reviews")
    # The digest of exactly what would run. A decision names a digest and counts for this digest only.
    digest = models.CharField(max_length=64)
    # The digest of the request alone. The same request sent again joins this review.
    request_digest = models.CharField(max_length=64)
    state = models.CharField(max_length=10, choices=State.choices, default=State.PENDING)
    # The owner's words: an instruction, the reply, the question or the reason.
    decision_text = models.TextField(blank=True)
    # The reason why the review is void, or why it was put before the owner again.
    note = models.TextField(blank=True)
    decided_by = models.CharField(max_length=150, blank=True)
    decided_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    expires_at = models.DateTimeField()
    # The time at which the owner was told that the review is about to expire.
    warned_at = models.DateTimeField(null=True, blank=True, editable=False)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(state__in=["pending", "asked", "approved", "replied", "declined", "expired", "void"]),
                name="review_state_listed",
            ),
            # The same request waits only once. The index also finds the review for a request that is sent again.
            models.UniqueConstraint(
                fields=["caller", "request_digest"], condition=Q(state="pending"), name="review_of_request_once"
            ),
        ]
        indexes = [
            # Finds the waiting reviews for the owner's page and for the sweep.
            models.Index(fields=["expires_at"], condition=Q(state__in=["pending", "asked"]), name="review_waiting"),
            models.Index(fields=["caller", "-id"], name="review_of_caller"),
        ]

    def __str__(self) -> str:
        return one_way(f"{self.caller}: {self.summary or self.request}")[:100]


class Observation(models.Model):
    """One decision of the owner about one request, from which the assistant learns."""

    class Decision(models.TextChoices):
        """The owner's decision."""

        APPROVE = "approve", "Approved"
        GRANT = "grant", "Approved and granted"
        REPLY = "reply", "Replied"
        ASK = "ask", "Asked back"
        DECLINE = "decline", "Declined"
        # About a request that was done without the owner.
        UNLIKE = "unlike", "Not like this"

    caller = models.ForeignKey(Caller, on_delete=models.CASCADE, related_name="observations")
    review = models.ForeignKey(Review, on_delete=models.SET_NULL, null=True, related_name="observations")
    task = models.UUIDField()
    skill = models.CharField(max_length=64)
    request = models.TextField()
    decision = models.CharField(max_length=10, choices=Decision.choices)
    # The owner's words to the caller, and the owner's instruction to the assistant.
    reply = models.TextField(blank=True)
    edits = models.TextField(blank=True)
    # True if the request was more than one message of text: later messages, files, or references to earlier tasks.
    # Such a request can't be an example.
    has_more = models.BooleanField(default=False, db_default=False, editable=False)
    # Set if the owner took the decision back: nothing is learned from it.
    reversed_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        verbose_name = "decision"
        indexes = [
            # Finds the latest decisions about a caller, and the callers to learn about again.
            models.Index(fields=["caller", "-id"], name="observation_of_caller"),
        ]

    def __str__(self) -> str:
        return one_way(f"{self.get_decision_display()}: {self.request}")[:100]
