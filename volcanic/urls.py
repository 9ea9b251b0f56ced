"""What Django serves: the admin. The A2A endpoints and the probes are in front of it, see volcanic/asgi.py."""

from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import path


def _home(_request: HttpRequest) -> HttpResponse:
    return redirect("admin:index")


urlpatterns = [
    path("", _home),
    path("admin/", admin.site.urls),
]
