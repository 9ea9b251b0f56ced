"""URLs that Django serves: the admin. volcanic/asgi.py answers the A2A endpoints and the probes before Django."""

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
