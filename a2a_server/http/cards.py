"""Agent cards: the public card, and the extended card of each workspace and caller. Built for each request."""

import hashlib
import json
from collections.abc import Collection
from datetime import UTC, datetime
from email.utils import format_datetime, parsedate_to_datetime

from a2a.server.request_handlers.response_helpers import agent_card_to_dict
from a2a.types import a2a_pb2
from django.conf import settings
from django.db.models import Q, QuerySet
from google.protobuf.json_format import MessageToDict, ParseDict
from starlette.datastructures import Headers
from starlette.responses import Response

import volcanic
from a2a_server.wire import INPUT_MODES, OUTPUT_MODES, V03, V1
from trust.identity.schemes import security_schemes
from trust.models import CHAT, NOTIFY_USER, Grant, Skill, SkillDraft
from trust.selectors import AuthenticatedCaller
from volcanic.models import Workspace
from volcanic.runtime.prompt import persona_line

# The paths of the bindings. JSON-RPC has one path for both versions. The SDK's 0.3 clients append /v1 to the address of
# a REST interface, so REST has one path for each version.
JSONRPC_PATH, REST_PATH, REST_03_PATH = "/a2a", "/a2a/v1", "/a2a/v0.3"

# The description of a learned skill for callers whose requests it was not learned from.
LEARNED = "Something that the owner of this assistant has done for agents without being asked each time."

# The time at which this process first served a card with an ETag, for the header Last-Modified. Validation uses the
# ETag where the client sends it.
_first_served: dict[str, datetime] = {}


def _base_card(name: str, description: str, skills: list[a2a_pb2.AgentSkill]) -> a2a_pb2.AgentCard:
    url = settings.PUBLIC_URL.rstrip("/")
    interfaces = [
        (JSONRPC_PATH, "JSONRPC", V1),
        (REST_PATH, "HTTP+JSON", V1),
        (JSONRPC_PATH, "JSONRPC", V03),
        (REST_03_PATH, "HTTP+JSON", V03),
    ]
    schemes = {name: ParseDict(scheme, a2a_pb2.SecurityScheme()) for name, scheme in security_schemes().items()}
    return a2a_pb2.AgentCard(
        name=name,
        description=description,
        version=volcanic.__version__,
        supported_interfaces=[
            a2a_pb2.AgentInterface(url=url + path, protocol_binding=binding, protocol_version=version)
            for path, binding, version in interfaces
        ],
        capabilities=a2a_pb2.AgentCapabilities(
            streaming=True, push_notifications=settings.PUSH_ENABLED, extended_agent_card=True
        ),
        security_schemes=schemes,
        security_requirements=[a2a_pb2.SecurityRequirement(schemes={name: a2a_pb2.StringList()}) for name in schemes],
        default_input_modes=INPUT_MODES,
        default_output_modes=OUTPUT_MODES,
        skills=skills,
    )


def _skills(rows: QuerySet[Skill], taught: Collection[int] = ()) -> list[a2a_pb2.AgentSkill]:
    """Returns one skill for each id: the built-in skills first, then the workspaces' own, each sorted by id.

    Of several skills with one id the oldest is shown, a built-in one before all others. Name, description and examples
    of a learned skill are words of the caller that asked for it. Only skills whose keys are in `taught` show them.
    """
    by_id: dict[str, Skill] = {}
    for row in sorted(rows.order_by("id"), key=_is_own):
        if row.by_example and row.pk not in taught:
            row.name, row.description, row.examples = row.slug, LEARNED, []
        by_id.setdefault(row.slug, row)
    ordered = sorted(by_id.values(), key=lambda row: (_is_own(row), row.slug))
    return [
        a2a_pb2.AgentSkill(
            id=row.slug,
            name=row.name,
            description=row.description,
            tags=row.tags,
            examples=row.examples,
            input_modes=row.input_modes,
            output_modes=row.output_modes,
        )
        for row in ordered
    ]


def _is_own(skill: Skill) -> bool:
    return skill.workspace_id is not None


def public_card() -> a2a_pb2.AgentCard:
    """Returns the public card, with the name and description from the settings.

    The card holds the skills that owners advertise. It does not show which workspace a skill belongs to.
    """
    advertised = Skill.objects.filter(enabled=True, advertised=True)
    return _base_card(settings.CARD_NAME, settings.CARD_DESCRIPTION, _skills(advertised))


def extended_card(*, caller: AuthenticatedCaller) -> a2a_pb2.AgentCard:
    """Returns the extended card of a caller (specification 3.1.11).

    The card holds the workspace's name and description, and the skills granted to the caller. `chat` and `notify-user`
    are always on it: each caller may send plain requests and leave the owner a message.
    """
    workspace = Workspace.objects.get(pk=caller.workspace_id)
    everybodys = Q(workspace=None, slug__in=(CHAT, NOTIFY_USER))
    granted = Q(pk__in=Grant.objects.filter(caller_id=caller.id).values("skill_id"), enabled=True)
    description = workspace.card_description or persona_line(workspace.path) or settings.CARD_DESCRIPTION
    taught = SkillDraft.objects.filter(caller_id=caller.id, skill__isnull=False).values_list("skill_id", flat=True)
    skills = _skills(Skill.objects.filter(everybodys | granted), set(taught))
    return _base_card(workspace.card_name or settings.CARD_NAME, description, skills)


def card_response(card: a2a_pb2.AgentCard, headers: Headers, *, private: bool) -> Response:
    """Returns the HTTP response with a card and its validators, or 304 when the client has the card already.

    Sources: specification 8.6, RFC 9110. The public card is one document with the members of 1.0 and 0.3, since clients
    of both versions fetch it from the same path.
    """
    members = MessageToDict(card) if private else agent_card_to_dict(card)
    body = json.dumps(members, ensure_ascii=False, sort_keys=True).encode()
    etag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
    if len(_first_served) > 1000:
        _first_served.clear()
    modified = _first_served.setdefault(etag, datetime.now(UTC).replace(microsecond=0))
    scope = "private" if private else "public"
    answer = {
        "ETag": etag,
        "Last-Modified": format_datetime(modified, usegmt=True),
        "Cache-Control": f"{scope}, max-age={0 if private else settings.CARD_MAX_AGE_SECONDS}",
    }
    if private:
        answer["Vary"] = "Authorization, X-API-Key"
    if _not_modified(headers, etag, modified):
        return Response(status_code=304, headers=answer)
    media_type = "application/a2a+json" if private else "application/json"
    return Response(body, media_type=media_type, headers=answer)


def _not_modified(headers: Headers, etag: str, modified: datetime) -> bool:
    if (wanted := headers.get("if-none-match")) is not None:
        tags = [tag.strip().removeprefix("W/") for tag in wanted.split(",")]
        return "*" in tags or etag in tags
    if (since := headers.get("if-modified-since")) is not None:
        try:
            return modified <= parsedate_to_datetime(since)
        except (ValueError, TypeError):
            return False
    return False
