"""The table of what a request leads to, over HTTP, with the official SDK's client, on every interface."""

import itertools
import uuid

import pytest
from a2a.types import a2a_pb2
from google.protobuf.struct_pb2 import Struct

from tests.product import Product
from tests.sdk import INTERFACES, sdk_client
from trust.models import CHAT, NOTIFY_USER, QUERY_AVAILABILITY, Level, Skill
from trust.services import caller_create
from volcanic.aio.db import run_db
from volcanic.models import Notification, Workspace

DONE, REVIEW, REJECTED = "COMPLETED", "AUTH_REQUIRED", "REJECTED"
OWN = "tidy"
LEVELS = (Level.OBSERVE, Level.LEARN, Level.PROPOSE, Level.ACT)

# What is asked for, what is granted, and what comes of it at each level.
ROWS = [
    (NOTIFY_USER, [], [DONE, DONE, DONE, DONE]),
    (OWN, [OWN], [REVIEW, REVIEW, REVIEW, DONE]),
    (QUERY_AVAILABILITY, [QUERY_AVAILABILITY], [REVIEW, REVIEW, REVIEW, DONE]),
    (OWN, [CHAT], [REJECTED] * 4),
    (QUERY_AVAILABILITY, [CHAT], [REJECTED] * 4),
    ("telepathy", [CHAT], [REJECTED] * 4),
    (None, [], [REVIEW] * 4),
    (None, [CHAT], [REVIEW, REVIEW, REVIEW, DONE]),
    (CHAT, [CHAT], [REVIEW, REVIEW, REVIEW, DONE]),
]
CELLS = [
    (skill, granted, level, outcome)
    for skill, granted, outcomes in ROWS
    for level, outcome in zip(LEVELS, outcomes, strict=True)
]


def _request(skill: str | None) -> a2a_pb2.SendMessageRequest:
    metadata = Struct()
    if skill is not None:
        metadata.update({"skill": skill})
    return a2a_pb2.SendMessageRequest(
        message=a2a_pb2.Message(
            role=a2a_pb2.ROLE_USER, message_id=str(uuid.uuid4()), parts=[a2a_pb2.Part(text="hello")], metadata=metadata
        )
    )


def _made(level: Level, granted: list[str]) -> str:
    workspace = Workspace.objects.get(slug="main")
    Skill.objects.get_or_create(
        workspace=workspace, slug=OWN, defaults={"name": "Tidy up", "description": "Puts files in order."}
    )
    return caller_create(workspace=workspace, name="caller", level=level, skills=granted)[1]


@pytest.fixture
def running(transactional_db: None, product: Product, workspace: Workspace) -> Product:
    """The product, with an owner and nothing else."""
    product.revive()
    return product


@pytest.mark.parametrize(("skill", "granted", "level", "outcome"), CELLS)
async def test_the_table(running: Product, skill: str | None, granted: list[str], level: Level, outcome: str) -> None:
    key = await run_db(_made, level, granted)
    async with sdk_client(running, key, "JSONRPC", "1.0", streaming=False) as client:
        (event,) = [event async for event in client.send_message(_request(skill))]
    state = a2a_pb2.TaskState.Name(event.task.status.state).removeprefix("TASK_STATE_")
    assert state == outcome
    said = event.task.status.message.parts[0].text if event.task.status.HasField("message") else ""
    told = await run_db(lambda: list(Notification.objects.values_list("kind", flat=True)))
    if outcome == REVIEW:
        assert "has been passed to the owner" in said
        assert told == ["review"]
    elif outcome == REJECTED:
        assert "shown to the owner" in said
        assert told == []
    else:
        assert event.task.artifacts[0].name == "response"
        assert told == ["message" if skill == NOTIFY_USER else "report"]


@pytest.mark.parametrize(
    ("interface", "streaming", "skill", "outcome"),
    [
        (interface, streaming, skill, outcome)
        for (interface, streaming), (skill, outcome) in itertools.product(
            itertools.product(INTERFACES, [False, True]),
            [(OWN, REJECTED), (NOTIFY_USER, DONE), (QUERY_AVAILABILITY, REJECTED)],
        )
    ],
)
async def test_no_way_in_goes_round_it(
    running: Product, interface: tuple[str, str], streaming: bool, skill: str, outcome: str
) -> None:
    """JSON-RPC and REST, 1.0 and 0.3, streams: all lead to the same policy."""
    key = await run_db(_made, Level.OBSERVE, [])
    async with sdk_client(running, key, *interface, streaming=streaming) as client:
        events = [event async for event in client.send_message(_request(skill))]
    last = events[-1]
    status = last.task.status if last.HasField("task") else last.status_update.status
    assert a2a_pb2.TaskState.Name(status.state) == f"TASK_STATE_{outcome}"
