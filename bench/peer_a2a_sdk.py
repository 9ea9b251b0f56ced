"""Reference peer: the A2A SDK's own server and request handler around an echo agent.

This is the server of a user who takes the SDK alone: `uvicorn bench.peer_a2a_sdk:app`. With `postgresql+asyncpg://…` in
PEER_DATABASE, it uses the SDK's database store. Without PEER_DATABASE, it uses the SDK's in-memory store, which loses
all tasks at the end.
"""

import os

from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes
from a2a.server.tasks import InMemoryTaskStore, TaskStore, TaskUpdater
from a2a.types import a2a_pb2
from starlette.applications import Starlette

_TEXT = ["text/plain"]


class EchoAgent(AgentExecutor):
    """Completes each task with an artifact that holds the message's text."""

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Publishes the task, the working status, the artifact and the final status, like the SDK's examples."""
        submitted = a2a_pb2.TaskStatus(state=a2a_pb2.TASK_STATE_SUBMITTED)
        task = a2a_pb2.Task(
            id=context.task_id, context_id=context.context_id, status=submitted, history=[context.message]
        )
        await event_queue.enqueue_event(task)
        work = TaskUpdater(event_queue, context.task_id, context.context_id)
        await work.start_work()
        await work.add_artifact([a2a_pb2.Part(text=context.get_user_input())], name="response")
        await work.complete()

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Ends the task as canceled."""
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()


def _store() -> TaskStore:
    url = os.environ.get("PEER_DATABASE")
    if not url:
        return InMemoryTaskStore()
    from a2a.server.tasks import DatabaseTaskStore
    from sqlalchemy.ext.asyncio import create_async_engine

    return DatabaseTaskStore(create_async_engine(url))


def _card() -> a2a_pb2.AgentCard:
    return a2a_pb2.AgentCard(
        name="Echo",
        description="The benchmark's reference peer.",
        version="1",
        capabilities=a2a_pb2.AgentCapabilities(streaming=True),
        default_input_modes=_TEXT,
        default_output_modes=_TEXT,
        supported_interfaces=[
            a2a_pb2.AgentInterface(url="http://localhost/a2a", protocol_binding="JSONRPC", protocol_version="1.0")
        ],
        skills=[a2a_pb2.AgentSkill(id="chat", name="Chat", description="Echoes.", tags=["echo"])],
    )


def _application() -> Starlette:
    card = _card()
    handler = DefaultRequestHandler(agent_executor=EchoAgent(), task_store=_store(), agent_card=card)
    return Starlette(routes=[*create_agent_card_routes(card), *create_jsonrpc_routes(handler, "/a2a")])


app = _application()
