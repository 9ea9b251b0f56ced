"""Migrations that carry rows along, back and forth."""

import pytest
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from tests.conftest import Keyed
from tests.trust.learned import waiting
from trust.models import Review

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("broker_is_away")]


def _migrate(name: str) -> None:
    MigrationExecutor(connection).migrate([("trust", name)])


def test_back_to_one_key_where_the_key_is_gone(stranger: Keyed) -> None:
    """In one transaction, which ends with the test."""
    key = stranger.caller.keys.get()
    kept, gone, without = (waiting(stranger.caller) for _ in range(3))
    Review.objects.filter(pk=kept.pk).update(keys=[key.pk, 10**9])
    Review.objects.filter(pk=gone.pk).update(keys=[10**9])
    latest = MigrationExecutor(connection).loader.graph.leaf_nodes("trust")[0][1]
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
    _migrate("0007_audit_not_truncated")
    with connection.cursor() as cursor:
        cursor.execute("SELECT id, key_id FROM trust_review ORDER BY id")
        assert cursor.fetchall() == [(kept.pk, key.pk), (gone.pk, None), (without.pk, None)]
    _migrate(latest)
    assert [review.keys for review in Review.objects.order_by("id")] == [[key.pk], [], []]
