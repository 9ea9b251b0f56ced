"""Services of owners' skills. Each is one transaction and adds an audit line for its change.

Built-in skills belong to all workspaces: no function here makes, changes or deletes one.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.db.models import Q

from trust.audit import audit
from trust.models import Grant, Observation, Skill, SkillDraft
from trust.name_matching import normalised
from trust.selectors import every_skill_of, evidence_of_grant
from trust.services.reviews import reviews_lock
from trust.signals import grant_revoked
from volcanic.models import Workspace
from volcanic.runtime import tools
from volcanic.text import clean_json

# The fields of a skill that an owner may write at any time.
SKILL_FIELDS = (
    *("name", "description", "tags", "examples", "aliases", "input_modes", "output_modes"),
    *("kind", "handler", "instructions", "tools", "enabled", "advertised"),
)
# The most entries of each list, and the most characters of an entry.
LISTS = {
    "tags": (20, 50),
    "examples": (20, 500),
    "aliases": (20, 64),
    "input_modes": (20, 100),
    "output_modes": (20, 100),
}
# The most characters of each text.
TEXTS = {"description": 2000, "instructions": 20000}
_TOKEN = r"[A-Za-z0-9][A-Za-z0-9!#$&^_.+-]*"  # noqa: S105  of RFC 6838, nothing secret
_MEDIA_TYPE = re.compile(rf"\*/\*|{_TOKEN}/(?:\*|{_TOKEN})")
WORDS = "Use words of a-z and 0-9 with a hyphen between them."


@transaction.atomic
def skill_create(*, workspace: Workspace, slug: str, name: str, description: str, **fields: Any) -> Skill:
    """Makes a skill of a workspace and returns it.

    `fields` are further fields in SKILL_FIELDS. With a `handler` the skill gets the kind `handler`. Raises
    ValidationError, by field, for a value that is not well-formed, is taken, or can't be chosen by an owner.
    """
    skill = Skill(workspace=workspace, slug=slug)
    _write(skill, {"name": name, "description": description, **fields})
    skill_check(skill)
    try:
        with transaction.atomic():
            skill.save()
    except IntegrityError:
        raise ValidationError({"slug": "There is another skill with this id."}) from None
    audit("skill.created", workspace_id=workspace.pk, subject=slug, reason=_told(skill, fields))
    return skill


@transaction.atomic
def skill_update(*, skill: Skill, **changes: Any) -> bool:
    """Writes fields in SKILL_FIELDS, which count from the next turn on. Returns whether this call changed the skill.

    Raises ValidationError as `skill_create` does, and for a built-in skill or a skill that is gone.
    """
    now = _locked(skill)
    before = {name: getattr(now, name) for name in SKILL_FIELDS}
    _write(now, changes)
    skill_check(now)
    changed = [name for name in SKILL_FIELDS if getattr(now, name) != before[name]]
    for name in SKILL_FIELDS:
        setattr(skill, name, getattr(now, name))
    if not changed:
        return False
    now.save(update_fields=changed)
    audit("skill.changed", workspace_id=now.workspace_id, subject=now.slug, reason=_told(now, changed))
    return True


@transaction.atomic
def skill_set_enabled(*, skill: Skill, enabled: bool) -> bool:
    """Enables or disables a skill for all its grants. Returns whether this call changed the skill.

    Raises ValidationError for a built-in skill and for a skill that is gone.
    """
    now = _locked(skill)
    skill.enabled = enabled
    if now.enabled == enabled:
        return False
    Skill.objects.filter(pk=now.pk).update(enabled=enabled)
    action = "skill.enabled" if enabled else "skill.disabled"
    audit(action, workspace_id=now.workspace_id, subject=now.slug)
    return True


@transaction.atomic
def skill_delete(*, skill: Skill) -> bool:
    """Deletes a skill and revokes its grants. Returns whether this call deleted it.

    Raises ValidationError for a built-in skill.
    """
    for known in Skill.objects.filter(pk=skill.pk):
        _refuse_built_in(known)
        _lock_dependent(known)
    now = Skill.objects.select_for_update().filter(pk=skill.pk).first()
    if now is None:
        return False
    grants = list(Grant.objects.filter(skill=now).select_related("caller").order_by("id"))
    now.delete()
    for grant in grants:
        audit("grant.revoked", caller=grant.caller, subject=now.slug, reason="The skill was deleted.")
        grant_revoked.send(sender=Grant, caller_id=grant.caller_id, skill=now.slug, stop=False, keeps_evidence=False)
    audit("skill.deleted", workspace_id=now.workspace_id, subject=now.slug)
    return True


def _lock_dependent(skill: Skill) -> None:
    """Locks the rows that change with a deleted skill: reviews, grants, the observations behind grants, and drafts.

    This is the order that trust.learning names. A decision locks its review first, then the others and the skill.
    """
    grants = Grant.objects.filter(skill=skill)
    drafts = SkillDraft.objects.filter(skill=skill)
    holders = sorted(grants.values_list("caller", flat=True))
    callers = {*holders, *drafts.values_list("caller", flat=True)}
    reviews_lock(callers=callers)
    list(grants.select_for_update(of=("self",)).order_by("id"))
    evidence = [number for caller in holders for number in evidence_of_grant(caller_id=caller, slug=skill.slug)]
    list(Observation.objects.select_for_update(no_key=True).filter(pk__in=evidence).order_by("id"))
    touched = SkillDraft.objects.filter(Q(skill=skill) | Q(caller__in=holders, state__in=["open", "approved"]))
    list(touched.select_for_update(no_key=True, of=("self",)).order_by("id"))


def skill_check(skill: Skill) -> None:
    """Checks an owner's skill against every rule of this module. Raises ValidationError, by field."""
    _refuse_built_in(skill)
    errors: dict[str, list[str]] = {}
    try:
        skill.full_clean(validate_constraints=False)  # the checks below report them in an owner's words
    except ValidationError as error:
        errors = error.message_dict
    for faults in (_faults_of_shape, _faults_of_names, _faults_of_work):
        if not errors:  # each check relies on the checks before it
            for field, message in faults(skill):
                errors.setdefault(field, []).append(message)
    if errors:
        raise ValidationError(errors)


def _faults_of_shape(skill: Skill) -> Iterator[tuple[str, str]]:
    for field, longest in TEXTS.items():
        if len(getattr(skill, field)) > longest:
            yield field, f"At most {longest:,} characters."
    for field, (most, longest) in LISTS.items():
        entries = getattr(skill, field)
        if not isinstance(entries, list) or not all(isinstance(entry, str) and entry.strip() for entry in entries):
            yield field, "Give a list of texts."
        elif len(entries) > most or any(len(entry) > longest for entry in entries):
            yield field, f"At most {most} entries of {longest} characters each."
    if skill.tools is not None and not (
        isinstance(skill.tools, list) and all(isinstance(tool, str) for tool in skill.tools)
    ):
        yield "tools", "Give a list of tools, or nothing for the tools of chat."


def _faults_of_names(skill: Skill) -> Iterator[tuple[str, str]]:
    """Yields faults of ids, aliases and media types, by field.

    An id or alias belongs to one skill only; built-in and disabled skills count, too.
    """
    others = every_skill_of(skill.workspace_id).exclude(pk=skill.pk)
    taken = {
        name: other.slug for other in others.only("slug", "aliases") for name in (other.slug, *(other.aliases or ()))
    }
    if normalised(skill.slug) != skill.slug:
        yield "slug", WORDS
    elif owner := taken.get(skill.slug):
        yield "slug", f"The skill {owner} has this id or alias."
    for alias in skill.aliases:
        if normalised(alias) != alias:
            yield "aliases", f"{alias}: {WORDS}"
        elif owner := taken.get(alias):
            yield "aliases", f"{alias}: the skill {owner} has this id or alias."
        elif alias == skill.slug:
            yield "aliases", f"{alias} is the id of this skill."
    for field in ("input_modes", "output_modes"):
        for mode in getattr(skill, field):
            if not _MEDIA_TYPE.fullmatch(mode):
                yield field, f"{mode} is not a media type. An example of a media type is text/plain."


def _faults_of_work(skill: Skill) -> Iterator[tuple[str, str]]:
    if skill.kind == Skill.Kind.BUILT_IN:
        yield "kind", "The assistant or a handler must answer a skill of your own."
    elif skill.kind == Skill.Kind.HANDLER and skill.handler not in settings.SKILL_HANDLERS:
        yield "handler", "The operator does not offer this handler."
    elif skill.kind == Skill.Kind.ASSISTANT and skill.handler:
        yield "handler", "The assistant answers this skill, so leave the handler empty."
    known = tools.known()
    if unknown := [tool for tool in skill.tools or () if tool not in known]:
        yield "tools", f"There is no tool {', '.join(unknown)}."


def _locked(skill: Skill) -> Skill:
    """Locks the skill until the transaction ends and returns its current row.

    Raises ValidationError for a built-in skill and for a skill that is gone.
    """
    now = Skill.objects.select_for_update(no_key=True).filter(pk=skill.pk).first()
    if now is None:
        raise ValidationError("The skill is gone.")
    _refuse_built_in(now)
    return now


def _refuse_built_in(skill: Skill) -> None:
    if skill.workspace_id is None:
        raise ValidationError("Built-in skills stay as they are.")


def _entries(value: Any) -> Any:
    """Returns a list of texts stripped and without duplicates, in their order. Returns any other value unchanged."""
    if not isinstance(value, (list, tuple, set, frozenset)) or not all(isinstance(entry, str) for entry in value):
        return value
    return list(dict.fromkeys(entry.strip() for entry in value))


def _write(skill: Skill, fields: Mapping[str, Any]) -> None:
    """Sets the fields. If the handler is given without the kind, the kind follows from the handler."""
    assert set(fields) <= set(SKILL_FIELDS), fields
    for name, value in fields.items():
        setattr(skill, name, clean_json(_entries(value) if name in LISTS or name == "tools" else value))
    if "handler" in fields and "kind" not in fields:
        skill.kind = Skill.Kind.HANDLER if skill.handler else Skill.Kind.ASSISTANT


def _told(skill: Skill, fields: Any) -> str:
    """Returns the names of the written fields for the audit, with the values of tools, handler and both switches."""
    chosen = skill.tools if skill.tools is None else ", ".join(skill.tools) or "none"
    values = {"tools": "those of chat" if chosen is None else chosen, "handler": skill.handler or "none"}
    values |= {name: "yes" if getattr(skill, name) else "no" for name in ("enabled", "advertised")}
    return "; ".join(f"{name}: {values[name]}" if name in values else name for name in SKILL_FIELDS if name in fields)
