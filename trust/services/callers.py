"""Services of callers, identities, keys and grants. Each is one transaction and adds audit lines for its changes.

They take locks in the order that docs/architecture.md names. They write single columns by name, so that a stale row in
memory does not undo the change of somebody else.
"""

import base64
import secrets
from collections.abc import Iterable
from datetime import timedelta
from typing import Any, Literal

from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from trust.audit import audit
from trust.keys import key_digest, key_generate, key_hint
from trust.limits import COLUMNS
from trust.models import (
    CHAT,
    NOTIFY_USER,
    QUERY_AVAILABILITY,
    Caller,
    CallerIdentity,
    CallerKey,
    Grant,
    Level,
    Skill,
)
from trust.selectors import skills_of_workspace
from trust.services.reviews import reviews_lock, reviews_void
from trust.signals import grant_revoked
from volcanic.models import Workspace

# Folders of the inbox that belong to no caller.
RESERVED_NAMES = frozenset({"a2a"})

_BUILTIN_SKILLS = {
    CHAT: ("Chat", "Asks the assistant anything in plain words, over one or more turns.", ["conversation"]),
    NOTIFY_USER: ("Notify the owner", "Passes a message on to the assistant's owner.", ["notification"]),
    QUERY_AVAILABILITY: ("Query availability", "Tells whether the owner is busy, available or away.", ["presence"]),
}


def builtin_skills_ensure(**_kwargs: Any) -> None:
    """Makes the built-in skills that are missing. Runs after each `migrate`."""
    for slug, (name, description, tags) in _BUILTIN_SKILLS.items():
        kind = Skill.Kind.ASSISTANT if slug == CHAT else Skill.Kind.BUILT_IN
        defaults = {"name": name, "description": description, "tags": tags, "kind": kind}
        Skill.objects.get_or_create(workspace=None, slug=slug, defaults=defaults)


@transaction.atomic
def caller_create(
    *, workspace: Workspace, name: str, level: Level = Level.OBSERVE, skills: Iterable[str] = (), note: str = ""
) -> tuple[Caller, str]:
    """Makes a caller with one key and grants of the named skills. Returns the caller and the key.

    Only the key's digest is stored. Raises ValidationError for a bad or taken name, an unknown level or an unknown
    skill.
    """
    caller = Caller(workspace=workspace, name=name, level=level, note=note)
    caller.full_clean()
    if name in RESERVED_NAMES:
        raise ValidationError(f"{name!r} is taken: the assistant keeps files of its own under that name.")
    caller.save()
    audit("caller.created", caller=caller, subject=Level(level).value)
    for slug in skills:
        grant_add(caller=caller, slug=slug)
    return caller, key_add(caller=caller)


@transaction.atomic
def identified_caller_create(*, workspace: Workspace, name: str, issuer: str, agent_id: str) -> Caller:
    """Makes a caller at Observe for an identity, without a key. Raises IntegrityError if name or identity is taken."""
    note = f"Admitted by the word of {issuer}."
    caller = Caller.objects.create(workspace=workspace, name=name, note=note)
    audit("caller.created", caller=caller, subject=Level.OBSERVE.value, reason=note)
    identity_add(caller=caller, issuer=issuer, agent_id=agent_id)
    return caller


@transaction.atomic
def identity_add(*, caller: Caller, issuer: str, agent_id: str) -> CallerIdentity:
    """Assigns an identity to a caller. Raises IntegrityError if the identity belongs to a caller already."""
    identity = CallerIdentity.objects.create(caller=caller, issuer=issuer, agent_id=agent_id)
    audit("identity.added", caller=caller, subject=str(identity))
    return identity


@transaction.atomic
def identity_remove(*, identity: CallerIdentity) -> bool:
    """Removes an identity, which counts from its next request on. The caller's earlier requests go on.

    Returns whether this call removed it.
    """
    deleted, _ = CallerIdentity.objects.filter(pk=identity.pk).delete()
    if deleted:
        audit("identity.removed", caller=identity.caller, subject=str(identity))
    return bool(deleted)


@transaction.atomic
def caller_set_level(*, caller: Caller, level: Level, reason: str = "") -> bool:
    """Writes a caller's level, which counts from the caller's next turn on. Returns whether this call changed it."""
    before = _locked(caller, "level").get("level", level)
    caller.level = level
    if before == level:
        return False
    Caller.objects.filter(pk=caller.pk).update(level=level)
    audit("caller.level", caller=caller, subject=f"{before} → {level.value}", reason=reason)
    return True


@transaction.atomic
def caller_update(*, caller: Caller, level: Level, note: str, reason: str = "") -> None:
    """Writes a caller's level and the owner's note. The level counts from the caller's next turn on."""
    caller_set_level(caller=caller, level=level, reason=reason)
    caller.note = note
    Caller.objects.filter(pk=caller.pk).update(note=note)


@transaction.atomic
def caller_set_limits(*, caller: Caller, **limits: int | None) -> bool:
    """Writes limits of a caller, which count from its next request on. Returns whether this call changed any.

    A limit is a number, 0 for no limit, or None for the limit of the settings. Raises ValidationError for a number
    that can't be a limit.
    """
    assert set(limits) <= set(COLUMNS), limits
    for name, value in limits.items():
        setattr(caller, name, value)
    caller.clean_fields(exclude=[field.name for field in Caller._meta.fields if field.name not in limits])
    before = _locked(caller, *limits)
    changed = {name: getattr(caller, name) for name in before if before[name] != getattr(caller, name)}
    if not changed:
        return False
    Caller.objects.filter(pk=caller.pk).update(**changed)
    told = [f"{name} {_limit(before[name])} → {_limit(value)}" for name, value in changed.items()]
    audit("caller.limits", caller=caller, subject=", ".join(told))
    return True


@transaction.atomic
def caller_set_enabled(*, caller: Caller, enabled: bool, reason: str = "") -> bool:
    """Enables or disables a caller, from its next request on. Returns whether this call changed it.

    Disabling a caller makes its waiting reviews void.
    """
    if not Caller.objects.filter(pk=caller.pk, enabled=not enabled).update(enabled=enabled):
        return False
    audit("caller.enabled" if enabled else "caller.disabled", caller=caller, reason=reason)
    if not enabled:
        reviews_void(caller=caller, reason="The caller was disabled.")
    return True


@transaction.atomic
def key_add(*, caller: Caller) -> str:
    """Gives a caller one more key and returns the key, which can't be read again."""
    row, key = _key_create(caller)
    audit("key.created", caller=caller, subject=str(row))
    return key


@transaction.atomic
def key_rotate(*, caller: Caller, grace: timedelta = timedelta(0)) -> str:
    """Gives a caller a new key and ends its other keys, at once or after `grace`. Returns the new key.

    If the other keys end at once, the waiting reviews that came with them become void, as with `key_revoke`.
    """
    _locked(caller, "id")  # of two rotations at once, the second ends the key of the first, too
    now = timezone.now()
    usable = CallerKey.objects.filter(caller=caller, revoked_at=None)
    if grace > timedelta(0):
        # A key that expires sooner keeps its own time.
        usable.exclude(expires_at__lt=now + grace).update(expires_at=now + grace)
    else:
        _keys_revoke(caller, usable)
    row, key = _key_create(caller)
    audit("key.rotated", caller=caller, subject=f"{row}, the others end in {grace}" if grace else str(row))
    return key


@transaction.atomic
def key_revoke(*, key: CallerKey, reason: str = "") -> bool:
    """Revokes a key and makes the waiting reviews that came with it void. Returns whether this call revoked it."""
    return _keys_revoke(key.caller, CallerKey.objects.filter(pk=key.pk, revoked_at=None), reason)


def _keys_revoke(caller: Caller, keys: QuerySet[CallerKey], reason: str = "") -> bool:
    """Revokes keys and makes the waiting reviews that came with them void. Locks all keys before the first review."""
    ended = list(keys.select_for_update(no_key=True, of=("self",)).order_by("id"))
    if not ended:
        return False
    CallerKey.objects.filter(pk__in=[key.pk for key in ended]).update(revoked_at=timezone.now())
    for key in ended:
        audit("key.revoked", caller=caller, subject=str(key), reason=reason)
    named = ", ".join(map(str, ended))
    reviews_void(caller=caller, keys=ended, reason=f"The key {named} was revoked.")
    return True


@transaction.atomic
def webhook_secret_rotate(*, caller: Caller) -> str:
    """Gives a caller a new secret that signs its notifications. Returns the secret, which is shown only once.

    The secret has the form of Standard Webhooks: `whsec_` and 32 random bytes in base64. It counts from the next
    notification on, and replaces the old secret.
    """
    secret = "whsec_" + base64.b64encode(secrets.token_bytes(32)).decode()
    caller.webhook_secret = secret
    Caller.objects.filter(pk=caller.pk).update(webhook_secret=secret)
    audit("webhook_secret.created", caller=caller)
    return secret


def key_note_use(*, key_id: int) -> None:
    """Writes the time of a key's last use. Called about once a minute at most for each key."""
    CallerKey.objects.filter(pk=key_id).update(last_used_at=timezone.now())


@transaction.atomic
def grant_add(*, caller: Caller, slug: str, level: Level | Literal[""] | None = None, reason: str = "") -> Grant:
    """Grants a caller the skill with this id. Returns the grant; there is one grant, even if granted twice.

    `level` is the caller's level for this skill, and "" means the caller's own level. None leaves the level of an
    existing grant as it is, and gives "" to a new grant. Raises ValidationError if the skill is unknown.
    """
    skill = skills_of_workspace(caller.workspace_id).filter(slug=slug).first()
    if skill is None:
        known = ", ".join(skills_of_workspace(caller.workspace_id).values_list("slug", flat=True))
        raise ValidationError(f"There is no skill {slug!r}. There are: {known}.")
    grant, made = Grant.objects.select_for_update().get_or_create(
        caller=caller, skill=skill, defaults={"level": level or ""}
    )
    if made:
        audit("grant.added", caller=caller, subject=_granted(slug, grant.level), reason=reason)
    elif level is not None and grant.level != level:
        before, grant.level = grant.level, level
        Grant.objects.filter(pk=grant.pk).update(level=level)
        audit("grant.level", caller=caller, subject=f"{slug}: {before or 'own'} → {level or 'own'}", reason=reason)
    return grant


@transaction.atomic
def grant_revoke(
    *, caller: Caller, slug: str, stop: bool = False, keeps_evidence: bool = False, reason: str = ""
) -> bool:
    """Revokes a granted skill, from the caller's next turn on. Returns whether there was a grant.

    Sends `trust.signals.grant_revoked`. With `stop`, the receivers also end runs on the grant. The decisions that the
    grant rests on are taken back, so that the skill is not proposed again for the same reason, unless
    `keeps_evidence`.
    """
    _locked(caller, "id")  # no new request can start to wait meanwhile
    reviews_lock(callers=[caller.pk])
    grants = list(Grant.objects.select_for_update().filter(caller=caller, skill__in=Skill.objects.filter(slug=slug)))
    if not grants:
        return False
    Grant.objects.filter(pk__in=[grant.pk for grant in grants]).delete()
    audit("grant.revoked", caller=caller, subject=_granted(slug, grants[0].level), reason=reason)
    grant_revoked.send(sender=Grant, caller_id=caller.pk, skill=slug, stop=stop, keeps_evidence=keeps_evidence)
    return True


def caller_lock(*, caller_id: int) -> Caller | None:
    """Locks a caller until the transaction ends and returns its current row; None if the caller is gone.

    Requests of one caller that start to wait for the owner at the same time take this lock one after the other.
    """
    return Caller.objects.select_for_update(no_key=True).filter(pk=caller_id).first()


def _locked(caller: Caller, *columns: str) -> dict[str, Any]:
    """Locks a caller until the transaction ends and returns these columns; {} if the caller is gone."""
    # FOR NO KEY UPDATE, so that rows that refer to the caller can be added meanwhile.
    rows = Caller.objects.select_for_update(no_key=True).filter(pk=caller.pk).values(*columns)
    return rows.first() or {}


def _key_create(caller: Caller) -> tuple[CallerKey, str]:
    key = key_generate()
    return CallerKey.objects.create(caller=caller, digest=key_digest(key), hint=key_hint(key)), key


def _limit(value: int | None) -> str:
    return "default" if value is None else str(value)


def _granted(slug: str, level: str) -> str:
    return f"{slug} ({level})" if level else slug
