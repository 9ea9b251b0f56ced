"""The verbs of trust: callers, keys, grants. Each is one transaction."""

import base64
import secrets
from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils import timezone

from trust.keys import key_digest, key_generate, key_hint
from trust.limits import COLUMNS
from trust.models import CHAT, NOTIFY_USER, QUERY_AVAILABILITY, Caller, CallerIdentity, CallerKey, Grant, Level, Skill
from trust.selectors import skills_of_workspace
from volcanic.models import Workspace

# Folders of the inbox that are no caller's.
RESERVED_NAMES = frozenset({"a2a"})

_BUILTIN_SKILLS = {
    CHAT: ("Chat", "Asks the assistant anything in plain words, over one or more turns.", ["conversation"]),
    NOTIFY_USER: ("Notify the owner", "Passes a message on to the assistant's owner.", ["notification"]),
    QUERY_AVAILABILITY: ("Query availability", "Tells whether the owner is busy, available or away.", ["presence"]),
}


def builtin_skills_ensure(**_kwargs: Any) -> None:
    """Makes the built-in skills that are missing. Runs after each migrate, so they exist from the first one on."""
    for slug, (name, description, tags) in _BUILTIN_SKILLS.items():
        kind = Skill.Kind.ASSISTANT if slug == CHAT else Skill.Kind.BUILT_IN
        defaults = {"name": name, "description": description, "tags": tags, "kind": kind}
        Skill.objects.get_or_create(workspace=None, slug=slug, defaults=defaults)


@transaction.atomic
def caller_create(
    *, workspace: Workspace, name: str, level: Level = Level.OBSERVE, skills: Iterable[str] = (), note: str = ""
) -> tuple[Caller, str]:
    """Makes a caller with one key and the named skills granted. Returns the caller and the key, which is not kept.

    Raises ValidationError for a bad or taken name, an unknown level or skill.
    """
    caller = Caller(workspace=workspace, name=name, level=level, note=note)
    caller.full_clean()
    if name in RESERVED_NAMES:
        raise ValidationError(f"{name!r} is taken: the assistant keeps files of its own under that name.")
    caller.save()
    for slug in skills:
        grant_add(caller=caller, slug=slug)
    return caller, key_add(caller=caller)


@transaction.atomic
def identified_caller_create(*, workspace: Workspace, name: str, issuer: str, agent_id: str) -> Caller:
    """Makes a caller at Observe for an identity: without a key. Raises IntegrityError if either is taken."""
    caller = Caller.objects.create(workspace=workspace, name=name, note=f"Admitted by the word of {issuer}.")
    identity_add(caller=caller, issuer=issuer, agent_id=agent_id)
    return caller


def identity_add(*, caller: Caller, issuer: str, agent_id: str) -> CallerIdentity:
    """Has an identity stand for a caller from now on. Raises IntegrityError if it stands for one already."""
    return CallerIdentity.objects.create(caller=caller, issuer=issuer, agent_id=agent_id)


def identity_remove(*, identity: CallerIdentity) -> None:
    """Has an identity stand for nobody, from its next request on. What the caller asked for before goes on."""
    CallerIdentity.objects.filter(pk=identity.pk).delete()


def caller_update(*, caller: Caller, level: Level, note: str) -> None:
    """Writes the owner's level and note of a caller: the level counts from its next turn on."""
    caller.level, caller.note = level, note
    caller.save(update_fields=["level", "note"])


def caller_set_limits(*, caller: Caller, **limits: int | None) -> None:
    """Writes limits of a caller: numbers, 0 for none, None for the settings'. They count from its next request on.

    Raises ValidationError for a number that is no limit.
    """
    assert set(limits) <= set(COLUMNS), limits
    for name, value in limits.items():
        setattr(caller, name, value)
    caller.clean_fields(exclude=[field.name for field in Caller._meta.fields if field.name not in limits])
    caller.save(update_fields=list(limits))


@transaction.atomic
def key_add(*, caller: Caller) -> str:
    """Gives a caller one more key and returns it: the only time it is seen."""
    key = key_generate()
    CallerKey.objects.create(caller=caller, digest=key_digest(key), hint=key_hint(key))
    return key


@transaction.atomic
def key_rotate(*, caller: Caller, grace: timedelta = timedelta(0)) -> str:
    """Gives a caller a new key and ends its others: at once, or after `grace`. Returns the new key."""
    now = timezone.now()
    usable = CallerKey.objects.filter(caller=caller, revoked_at=None)
    if grace > timedelta(0):
        # A key that ends sooner anyway keeps its own end.
        usable.exclude(expires_at__lt=now + grace).update(expires_at=now + grace)
    else:
        usable.update(revoked_at=now)
    return key_add(caller=caller)


def key_revoke(*, key: CallerKey) -> bool:
    """Ends a key at once. Returns whether this call did it."""
    return bool(CallerKey.objects.filter(pk=key.pk, revoked_at=None).update(revoked_at=timezone.now()))


def webhook_secret_rotate(*, caller: Caller) -> str:
    """Gives a caller a new secret to sign its notifications with, and returns it: the only time it is seen.

    In the form of Standard Webhooks. Notifications are signed from the next one on; the old secret is gone.
    """
    secret = "whsec_" + base64.b64encode(secrets.token_bytes(32)).decode()
    caller.webhook_secret = secret
    caller.save(update_fields=["webhook_secret"])
    return secret


def key_note_use(*, key_id: int) -> None:
    """Notes that a key was used just now. Called at most about once a minute for each key."""
    CallerKey.objects.filter(pk=key_id).update(last_used_at=timezone.now())


def caller_set_enabled(*, caller: Caller, enabled: bool) -> bool:
    """Lets a caller in or shuts it out, from its next request on. Returns whether this call changed anything."""
    return bool(Caller.objects.filter(pk=caller.pk, enabled=not enabled).update(enabled=enabled))


@transaction.atomic
def grant_add(*, caller: Caller, slug: str) -> Grant:
    """Grants a caller the skill with this id. Granting twice is one grant. Raises ValidationError if unknown."""
    skill = skills_of_workspace(caller.workspace_id).filter(slug=slug).first()
    if skill is None:
        known = ", ".join(skills_of_workspace(caller.workspace_id).values_list("slug", flat=True))
        raise ValidationError(f"There is no skill {slug!r}. There are: {known}.")
    grant, _ = Grant.objects.get_or_create(caller=caller, skill=skill)
    return grant


def grant_revoke(*, caller: Caller, slug: str) -> bool:
    """Takes a granted skill back, from the caller's next turn on. Returns whether there was a grant."""
    deleted, _ = Grant.objects.filter(caller=caller, skill__slug=slug).delete()
    return bool(deleted)
