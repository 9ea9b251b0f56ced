"""Superusers' screen of people."""

from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from tests.admin.conftest import admin_url
from tests.admin.pages import form_of

PASSWORD = "a-long-way-to-Bern"


def test_a_user_is_added_and_logs_in(as_superuser: Client, client: Client) -> None:
    url = admin_url(User, "add")
    form = form_of(as_superuser, url, "user_form")
    assert {"username", "password1", "password2"} <= set(form)
    as_superuser.post(url, {**form, "username": "vera", "password1": PASSWORD, "password2": PASSWORD})
    page = admin_url(User, "change", User.objects.get(username="vera").pk)
    as_superuser.post(page, {**form_of(as_superuser, page, "user_form"), "is_staff": "on"})
    answer = client.post(reverse("admin:login"), {"username": "vera", "password": PASSWORD})
    assert answer.status_code == 302
    assert client.get(reverse("admin:index")).status_code == 200


def test_what_plays_no_part_is_not_asked(as_superuser: Client, superuser: User) -> None:
    page = as_superuser.get(admin_url(User, "change", superuser.pk)).content.decode()
    assert 'name="is_staff"' in page
    assert 'name="groups"' not in page
    assert 'name="user_permissions"' not in page
