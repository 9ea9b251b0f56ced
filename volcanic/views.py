"""Probes for whoever runs the web process."""

import logging

from django.db import DatabaseError, connection
from django.http import HttpRequest, JsonResponse

logger = logging.getLogger(__name__)


def healthz(_request: HttpRequest) -> JsonResponse:
    """Answers 200 as long as the process serves at all."""
    return JsonResponse({"status": "ok"})


def readyz(_request: HttpRequest) -> JsonResponse:
    """Answers 200 when the database answers, else 503. Redis may be away: nothing is lost by that."""
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except DatabaseError as error:
        logger.warning("not ready: %s", error)
        return JsonResponse({"status": "database unreachable"}, status=503)
    return JsonResponse({"status": "ok"})
