"""Admission: finds the caller of a verified identity, and makes a caller for an agent unknown so far."""

import logging
import re
import unicodedata
from itertools import count

from django.conf import settings
from django.db import IntegrityError, connection, transaction

from trust.identity.base import IdentityRefused, VerifiedIdentity
from trust.models import Caller, CallerIdentity
from trust.selectors import AuthenticatedCaller, caller_by_identity
from trust.services import RESERVED_NAMES, identified_caller_create
from volcanic.models import Workspace

logger = logging.getLogger(__name__)

_LONGEST_NAME = 40
# The most attempts to admit an agent. An attempt fails if another process took the same name at the same moment.
_TRIES = 20
# The class of PostgreSQL's advisory locks that admissions use.
_LOCK_CLASS = 0x41444D54


def caller_of(identity: VerifiedIdentity) -> AuthenticatedCaller:
    """Returns the caller of an identity. A new identity gets a new caller if ADMIT_UNKNOWN names its issuer.

    A new caller is at Observe. Each issuer gets MAX_ADMITTED_CALLERS callers at most. Raises IdentityRefused if there
    is no caller, or if the caller is disabled. A known identity costs one SQL statement.
    """
    if not _storable(identity.agent_id) or not _storable(identity.issuer):
        raise IdentityRefused("bad-agent-id")
    if known := _known(identity):
        return known
    if identity.issuer not in settings.ADMIT_UNKNOWN:
        raise IdentityRefused("unknown-agent")
    workspace = _workspace(identity.workspace)
    for _ in range(_TRIES):
        full = False
        try:
            with transaction.atomic():
                full = _is_full(identity.issuer)
                if not full:
                    _admit(identity, workspace)
        except IntegrityError:
            logger.debug("somebody else was first")
        if known := _known(identity):
            return known
        if full:
            raise IdentityRefused("too-many-agents")
    raise IdentityRefused("busy", temporary=True)


def _admit(identity: VerifiedIdentity, workspace: Workspace) -> None:
    caller = identified_caller_create(
        workspace=workspace,
        name=_free_name(workspace, identity.display_name),
        issuer=identity.issuer,
        agent_id=identity.agent_id,
    )
    logger.info("admitted a new caller: %s", caller.name)


def _is_full(issuer: str) -> bool:
    """Returns whether the issuer has MAX_ADMITTED_CALLERS callers already.

    It takes an advisory lock until the transaction ends, so that each admission counts the agents that others admit.
    """
    most = settings.MAX_ADMITTED_CALLERS
    if not most:
        return False
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s, hashtext(%s))", [_LOCK_CLASS, issuer])
    return CallerIdentity.objects.filter(issuer=issuer).count() >= most


def _known(identity: VerifiedIdentity) -> AuthenticatedCaller | None:
    found = caller_by_identity(issuer=identity.issuer, agent_id=identity.agent_id)
    if found is None:
        return None
    caller, enabled = found
    if not enabled:
        raise IdentityRefused("caller-disabled")
    return caller


def _storable(text: str) -> bool:
    longest = CallerIdentity._meta.get_field("agent_id").max_length or 0
    return 1 <= len(text) <= longest and text.isprintable()


def _workspace(slug: str) -> Workspace:
    found = list((Workspace.objects.filter(slug=slug) if slug else Workspace.objects.all())[:2])
    if len(found) != 1:
        logger.error("an agent could not be admitted: there is %s workspace %r", "no" if not found else "no one", slug)
        raise IdentityRefused("no-workspace")
    return found[0]


def name_from(display_name: str) -> str:
    """Returns a caller's name made from an agent's display name: a-z, 0-9 and -, at most 40 characters."""
    plain = unicodedata.normalize("NFKD", display_name[:200]).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:_LONGEST_NAME].strip("-") or "agent"


def _free_name(workspace: Workspace, display_name: str) -> str:
    """Returns the caller's name. A number is added to a name that is taken or reserved, so no two agents look alike."""
    base = name_from(display_name)
    similar = Caller.objects.filter(workspace=workspace, name__startswith=base[: _LONGEST_NAME - 10])
    taken = RESERVED_NAMES | set(similar.values_list("name", flat=True))
    for number in count(2):
        if base not in taken:
            return base
        suffix = f"-{number}"
        numbered = base[: _LONGEST_NAME - len(suffix)] + suffix
        if numbered not in taken:
            return numbered
    raise AssertionError("unreachable")
