"""The web process: a table of ASGI applications by path, the most specific first. Everything else is Django's."""

import os
from collections.abc import Awaitable, Callable
from typing import Any

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "volcanic.settings")
_django = get_asgi_application()  # sets Django up: nothing of ours may be imported before

from django.conf import settings  # noqa: E402

from volcanic import probes  # noqa: E402

Application = Callable[[dict[str, Any], Any, Any], Awaitable[None]]


def _mounts() -> list[tuple[Callable[[str], bool], Application]]:
    """Returns which paths each application serves. The first one that serves a path gets the request, so an application
    for a path below another's stands before it. One that is switched off is not imported."""
    mounts: list[tuple[Callable[[str], bool], Application]] = [(probes.PATHS.__contains__, probes.probe)]
    if settings.A2A_ENABLED:
        from a2a_server.http.app import A2AApplication, serves

        mounts.append((serves, A2AApplication()))
    return mounts


_MOUNTS = _mounts()


async def application(scope: dict[str, Any], receive: Any, send: Any) -> None:
    """The ASGI application, for daphne, uvicorn or another server."""
    if scope["type"] == "http":
        serve = next((app for serves, app in _MOUNTS if serves(scope["path"])), _django)
        await serve(scope, receive, send)
    elif scope["type"] == "lifespan":
        await _lifespan(receive, send)
    else:
        raise ValueError(f"Unsupported ASGI scope: {scope['type']}")


async def _lifespan(receive: Any, send: Any) -> None:
    while True:
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return
