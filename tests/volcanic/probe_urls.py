"""Probe views: return the acting user and the request id, for the tests of the middleware."""

import structlog
from django.http import HttpRequest, JsonResponse
from django.urls import path

from volcanic.acting import current


def _told() -> JsonResponse:
    actor = current()
    bound = structlog.contextvars.get_contextvars().get("request_id")
    return JsonResponse({"name": actor.name, "id": actor.request_id, "bound": bound})


def _sync(_request: HttpRequest) -> JsonResponse:
    return _told()


async def _async(_request: HttpRequest) -> JsonResponse:
    return _told()


urlpatterns = [path("sync", _sync), path("async", _async)]
