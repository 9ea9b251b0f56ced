"""The encrypted field, on a table of its own."""

from collections.abc import Iterator
from typing import ClassVar

import pytest
from django.core.exceptions import FieldError, ImproperlyConfigured
from django.db import connection, models
from pytest_django.fixtures import Settings

from volcanic.fields import EncryptedTextField

OLD, NEW = "old-key-" * 5, "new-key-" * 5


class Secret(models.Model):
    """Exists for these tests only."""

    text = EncryptedTextField(null=True)
    objects: "ClassVar[models.Manager[Secret]]" = models.Manager()

    class Meta:
        app_label = "volcanic_field_tests"

    def __str__(self) -> str:
        return "secret"


@pytest.fixture
def table(db: None) -> Iterator[None]:
    """The table of `Secret`."""
    with connection.schema_editor() as editor:
        editor.create_model(Secret)
    yield
    with connection.schema_editor() as editor:
        editor.delete_model(Secret)


def _stored() -> str:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT text FROM {Secret._meta.db_table}")
        text: str = cursor.fetchone()[0]
        return text


@pytest.mark.parametrize("text", ["a token", "", None, "\u00fc\U0001f600"])
def test_what_is_read_is_what_was_written(table: None, text: str | None) -> None:
    Secret.objects.create(text=text)
    assert Secret.objects.get().text == text
    assert text is None or text == "" or text not in _stored()


def test_rotation(table: None, settings: Settings) -> None:
    """Old key; new and old; saved again; new alone."""
    settings.FIELD_KEYS = [OLD]
    Secret.objects.create(text="a token")
    settings.FIELD_KEYS = [NEW, OLD]
    Secret.objects.get().save()
    settings.FIELD_KEYS = [NEW]
    assert Secret.objects.get().text == "a token"


def test_a_wrong_key_is_an_error_and_not_ciphertext(table: None, settings: Settings) -> None:
    settings.FIELD_KEYS = [OLD]
    Secret.objects.create(text="a token")
    settings.FIELD_KEYS = [NEW]
    with pytest.raises(ImproperlyConfigured, match="FIELD_KEYS"):
        Secret.objects.get()


def test_no_lookups(table: None) -> None:
    with pytest.raises(FieldError):
        Secret.objects.filter(text="a token").exists()
    assert not Secret.objects.filter(text__isnull=True).exists()
