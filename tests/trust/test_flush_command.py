"""`manage.py flush`, which the audit refuses."""

import importlib.util
from collections.abc import Iterator

import pytest
from django.core.management import CommandError, call_command
from django.core.management.commands import flush

from tests.conftest import Keyed
from trust.models import AuditEntry, Caller


@pytest.fixture
def djangos_own(transactional_db: None) -> Iterator[None]:
    """Has the command do what it does outside the tests, which empty the database by another way."""
    spec = importlib.util.find_spec(flush.__name__)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(flush.Command, "handle", module.Command.handle)
        yield


def test_nothing_is_deleted_and_the_reason_is_told(djangos_own: None, friend: Keyed) -> None:
    lines = AuditEntry.objects.count()
    with pytest.raises(CommandError, match="the audit is append-only"):
        call_command("flush", interactive=False)
    assert AuditEntry.objects.count() == lines
    assert Caller.objects.get() == friend.caller


def test_another_failure_is_told_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: flush.Command, **options: object) -> None:
        raise CommandError("Database x couldn't be flushed.") from OSError()

    monkeypatch.setattr(flush.Command, "handle", fail)
    with pytest.raises(CommandError, match="couldn't be flushed"):
        call_command("flush", interactive=False)
