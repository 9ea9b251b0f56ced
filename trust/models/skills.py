"""Skills, and the grants of skills to callers."""

from django.core.validators import RegexValidator
from django.db import models
from django.db.models import Q
from django.utils import timezone

from trust.models.callers import Caller, Level
from volcanic.models import Workspace

CHAT, NOTIFY_USER, QUERY_AVAILABILITY = "chat", "notify-user", "query-availability"


class Skill(models.Model):
    """A kind of request that a caller may make: built in (no workspace), or made by an owner for their workspace."""

    class Kind(models.TextChoices):
        """The part of the product that answers a request for the skill."""

        BUILT_IN = "built_in", "Built in"
        ASSISTANT = "assistant", "The assistant"
        HANDLER = "handler", "A handler"

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, null=True, blank=True, related_name="skills")
    slug = models.CharField("id", max_length=64, validators=[RegexValidator(r"^[a-z0-9-]{1,64}$")])
    name = models.CharField(max_length=100)
    description = models.TextField()
    tags = models.JSONField(default=list, blank=True)
    examples = models.JSONField(default=list, blank=True)
    # Other ids by which callers may ask for the skill.
    aliases = models.JSONField(default=list, blank=True)
    # Media types on the agent card. Empty: the card's default media types.
    input_modes = models.JSONField(default=list, blank=True)
    output_modes = models.JSONField(default=list, blank=True)
    kind = models.CharField(max_length=10, choices=Kind.choices, default=Kind.ASSISTANT)
    # Dotted path of the handler, one of SKILL_HANDLERS. For the kind `handler` only.
    handler = models.CharField(max_length=200, blank=True)
    # The owner's instructions to the assistant for such a request.
    instructions = models.TextField(blank=True)
    # Names of the tools that such a turn may use; null means the tools of `chat`.
    tools = models.JSONField(null=True, blank=True)
    # True for a learned skill: a plain request that its examples cover asks for the skill, too.
    by_example = models.BooleanField(default=False, editable=False)
    enabled = models.BooleanField(default=True)
    # True if the skill is on the public agent card, too, which anybody can read.
    advertised = models.BooleanField(default=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["workspace", "slug"], name="skill_slug_unique_in_workspace", nulls_distinct=False
            ),
            models.CheckConstraint(
                condition=Q(kind__in=["built_in", "assistant", "handler"]), name="skill_kind_listed"
            ),
            models.CheckConstraint(
                condition=(Q(kind="handler") & ~Q(handler="")) | (~Q(kind="handler") & Q(handler="")),
                name="skill_handler_named",
            ),
        ]

    def __str__(self) -> str:
        return self.name


class Grant(models.Model):
    """The owner's approval of one skill for one caller."""

    caller = models.ForeignKey(Caller, on_delete=models.CASCADE, related_name="grants")
    skill = models.ForeignKey(Skill, on_delete=models.CASCADE, related_name="grants")
    # The caller's level for this skill. Empty: the caller's own level counts.
    level = models.CharField(max_length=10, choices=Level.choices, blank=True)
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["caller", "skill"], name="grant_once"),
            models.CheckConstraint(condition=Q(level__in=["", *Level.values]), name="grant_level_listed"),
        ]

    def __str__(self) -> str:
        return f"{self.skill} for {self.caller}"
