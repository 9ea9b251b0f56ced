"""The web process: the A2A endpoints and the probes in front, everything else is Django's."""

import os
from typing import Any

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "volcanic.settings")
_django = get_asgi_application()  # sets Django up: nothing of ours may be imported before

from django.conf import settings  # noqa: E402

from a2a_server.http.app import A2AApplication, serves  # noqa: E402
from volcanic import probes  # noqa: E402

_a2a = A2AApplication() if settings.A2A_ENABLED else None


async def application(scope: dict[str, Any], receive: Any, send: Any) -> None:
    """The ASGI application, for daphne, uvicorn or another server."""
    if scope["type"] == "http" and _a2a is not None and serves(scope["path"]):
        await _a2a(scope, receive, send)
    elif scope["type"] == "http" and scope["path"] in probes.PATHS:
        await probes.probe(scope, receive, send)
    elif scope["type"] == "http":
        await _django(scope, receive, send)
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
