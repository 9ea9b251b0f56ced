"""Request handler: the A2A methods behind the SDK's routes. The work is done by services and selectors."""

import functools
import inspect
import logging
import time
import uuid
from collections.abc import AsyncGenerator, Callable
from typing import Any

from a2a.auth.user import User
from a2a.server.context import ServerCallContext
from a2a.server.request_handlers.request_handler import RequestHandler, validate_request_params
from a2a.server.routes.common import DefaultServerCallContextBuilder
from a2a.types import a2a_pb2
from django.conf import settings
from starlette.requests import Request

from a2a_server import wire
from a2a_server.errors import NotSupported, PushNotSupported
from a2a_server.http import cards, operations
from a2a_server.models import TERMINAL, TaskState
from a2a_server.push.configs import push_config_delete, push_config_get, push_config_set, push_configs_list
from a2a_server.selectors import events_after, parse_task_id
from a2a_server.services import task_read, task_submit
from a2a_server.wire import V03, V1
from trust.selectors import AuthenticatedCaller
from volcanic.aio import wakeups
from volcanic.aio.db import run_db

logger = logging.getLogger(__name__)

# A waiting stream reads the task's events at least this often, in case a wake-up was lost.
_STREAM_LOOK_SECONDS = 5.0

Event = a2a_pb2.Task | a2a_pb2.TaskStatusUpdateEvent | a2a_pb2.TaskArtifactUpdateEvent


class CallerUser(User):
    """The authenticated caller as a user of the SDK."""

    def __init__(self, caller: AuthenticatedCaller) -> None:
        self.caller = caller

    @property
    def is_authenticated(self) -> bool:
        """Returns True: requests without authentication never reach the SDK."""
        return True

    @property
    def user_name(self) -> str:
        """Returns the caller's name."""
        return self.caller.name


class ContextBuilder(DefaultServerCallContextBuilder):
    """Builds the SDK's context with the caller that the application stored in the ASGI scope."""

    def build_user(self, request: Request) -> User:
        """Returns the authenticated caller."""
        return CallerUser(request.scope["volcanic.caller"])


def _version(context: ServerCallContext) -> str:
    """Returns the protocol version of a call, which the application has settled before."""
    headers: dict[str, str] = context.state["headers"]
    return V03 if headers.get("a2a-version") == V03 else V1


def _caller(context: ServerCallContext) -> AuthenticatedCaller:
    assert isinstance(context.user, CallerUser)
    return context.user.caller


def _guarded(method: Callable[..., Any]) -> Callable[..., Any]:
    """Returns the method with a check of the required fields before it. The result raises A2A errors only."""
    checked = validate_request_params(method)
    if inspect.isasyncgenfunction(method):

        @functools.wraps(method)
        async def stream(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, None]:
            events = checked(*args, **kwargs)
            try:
                async for event in events:
                    yield event
            except Exception as error:
                raise wire.translated(error) from error
            finally:
                await events.aclose()

        return stream

    @functools.wraps(method)
    async def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return await checked(*args, **kwargs)
        except Exception as error:
            raise wire.translated(error) from error

    return call


class VolcanicRequestHandler(RequestHandler):
    """The A2A methods (specification section 3.1)."""

    @_guarded
    async def on_message_send(self, params: a2a_pb2.SendMessageRequest, context: ServerCallContext) -> a2a_pb2.Task:
        """SendMessage (3.1.1): returns the task when it has settled, or at once with `returnImmediately`."""
        return wire.to_task(await operations.send_message(params, _caller(context), _version(context)))

    @_guarded
    async def on_message_send_stream(
        self, params: a2a_pb2.SendMessageRequest, context: ServerCallContext
    ) -> AsyncGenerator[Event, None]:
        """SendStreamingMessage (3.1.2): yields the task, then its events until the task ends or asks a question."""
        caller = _caller(context)
        length = wire.history_length_from(params.configuration)
        submission = wire.submission_from(params, caller, _version(context))
        await operations.check_submission(submission)
        submitted = await run_db(task_submit, submission=submission)
        async for event in _follow(submitted.task_id, caller.id, history_length=length):
            yield event

    @_guarded
    async def on_subscribe_to_task(
        self, params: a2a_pb2.SubscribeToTaskRequest, context: ServerCallContext
    ) -> AsyncGenerator[Event, None]:
        """SubscribeToTask (3.1.6): yields the task as it is, then its events. Raises an error for an ended task."""
        caller = _caller(context)
        async for event in _follow(parse_task_id(params.id), caller.id, refuse_ended=True):
            yield event

    @_guarded
    async def on_get_task(self, params: a2a_pb2.GetTaskRequest, context: ServerCallContext) -> a2a_pb2.Task:
        """GetTask (3.1.3): returns a task of this caller."""
        return wire.to_task(await operations.get_task(params, _caller(context)))

    @_guarded
    async def on_list_tasks(
        self, params: a2a_pb2.ListTasksRequest, context: ServerCallContext
    ) -> a2a_pb2.ListTasksResponse:
        """ListTasks (3.1.4): returns a page of this caller's tasks, the newest status first."""
        return wire.to_task_page(await operations.list_tasks(params, _caller(context)))

    @_guarded
    async def on_cancel_task(self, params: a2a_pb2.CancelTaskRequest, context: ServerCallContext) -> a2a_pb2.Task:
        """CancelTask (3.1.5): cancels a task of this caller and returns it."""
        return wire.to_task(await operations.cancel_task(params, _caller(context)))

    @_guarded
    async def on_get_extended_agent_card(
        self, params: a2a_pb2.GetExtendedAgentCardRequest, context: ServerCallContext
    ) -> a2a_pb2.AgentCard:
        """GetExtendedAgentCard (3.1.11): returns the workspace's card as this caller may see it."""
        return await run_db(cards.extended_card, caller=_caller(context))

    @_guarded
    async def on_create_task_push_notification_config(
        self, params: a2a_pb2.TaskPushNotificationConfig, context: ServerCallContext
    ) -> a2a_pb2.TaskPushNotificationConfig:
        """CreateTaskPushNotificationConfig (3.1.7): registers a webhook for a task and returns its config."""
        wanted = wire.push_from(params, _version(context))
        await operations.check_webhook(wanted.url)
        task_id = parse_task_id(params.task_id)
        config = await run_db(push_config_set, task_id=task_id, caller_id=_caller(context).id, wanted=wanted)
        return wire.to_push_config(config)

    @_guarded
    async def on_get_task_push_notification_config(
        self, params: a2a_pb2.GetTaskPushNotificationConfigRequest, context: ServerCallContext
    ) -> a2a_pb2.TaskPushNotificationConfig:
        """GetTaskPushNotificationConfig (3.1.8): returns a config without token and credentials."""
        _require_push()
        config = await run_db(
            push_config_get,
            task_id=parse_task_id(params.task_id),
            caller_id=_caller(context).id,
            config_id=params.id,
        )
        return wire.to_push_config(config)

    @_guarded
    async def on_list_task_push_notification_configs(
        self, params: a2a_pb2.ListTaskPushNotificationConfigsRequest, context: ServerCallContext
    ) -> a2a_pb2.ListTaskPushNotificationConfigsResponse:
        """ListTaskPushNotificationConfigs (3.1.9): returns a page of a task's configs, the oldest first."""
        _require_push()
        configs, token = await run_db(
            push_configs_list,
            task_id=parse_task_id(params.task_id),
            caller_id=_caller(context).id,
            page_size=params.page_size,
            page_token=params.page_token,
        )
        return a2a_pb2.ListTaskPushNotificationConfigsResponse(
            configs=[wire.to_push_config(config) for config in configs], next_page_token=token
        )

    @_guarded
    async def on_delete_task_push_notification_config(
        self, params: a2a_pb2.DeleteTaskPushNotificationConfigRequest, context: ServerCallContext
    ) -> None:
        """DeleteTaskPushNotificationConfig (3.1.10): deletes a config. Idempotent."""
        _require_push()
        await run_db(
            push_config_delete,
            task_id=parse_task_id(params.task_id),
            caller_id=_caller(context).id,
            config_id=params.id,
        )


def _require_push() -> None:
    if not settings.PUSH_ENABLED:
        raise PushNotSupported


async def _follow(
    task_id: uuid.UUID, caller_id: int, *, refuse_ended: bool = False, history_length: int | None = None
) -> AsyncGenerator[Event, None]:
    """Yields a task, then its events in order, until an event says that the task ended or asks a question.

    Registers for wake-ups before it reads the task, so that no event is missed. Events that the task's snapshot already
    holds are not sent again. A task that waits for the owner when the stream opens keeps the stream open; with
    `refuse_ended` so does a task that waits for the caller. A stream ends after STREAM_MAX_AGE_SECONDS. Raises
    TaskNotFound, and with `refuse_ended` NotSupported for a task that has ended.
    """
    with wakeups.waiting(str(task_id)) as waiter:
        task = await run_db(task_read, task_id=task_id, caller_id=caller_id)
        if refuse_ended and task.state in TERMINAL:
            raise NotSupported(f"The task has ended ({task.state.value}): get it with GetTask.")
        yield wire.to_task(task.to_json(history_length=history_length))
        if task.state in TERMINAL or (task.state is TaskState.INPUT_REQUIRED and not refuse_ended):
            return
        seq, close_at = task.seq, time.monotonic() + settings.STREAM_MAX_AGE_SECONDS
        while time.monotonic() < close_at:
            for number, payload in await run_db(events_after, task_id=task_id, seq=seq):
                seq, event = number, wire.to_event(payload)
                yield event
                if _ends_stream(event):
                    return
            if not await waiter.wait(_STREAM_LOOK_SECONDS):
                # Without events for a while the worker may be gone. Reading the task then fails the task, and this
                # writes an event.
                await run_db(task_read, task_id=task_id, caller_id=caller_id)


def _ends_stream(event: Event) -> bool:
    if not isinstance(event, a2a_pb2.TaskStatusUpdateEvent):
        return False
    state = wire.task_state_from(event.status.state)
    return state in TERMINAL or state is TaskState.INPUT_REQUIRED
