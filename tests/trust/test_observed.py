"""Which decisions of the owner are put together."""

from typing import Any

import pytest

from tests.conftest import Keyed
from tests.trust.learned import DAYS, PARCEL, decided, thrice, waiting
from trust.learning.observed import alike_groups, observations_of
from trust.models import Review

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("broker_is_away")]


@pytest.mark.parametrize(
    ("more", "groups"),
    [
        ({}, 1),
        ({"files": ["scan.pdf (application/pdf)"]}, 0),
        ({"talk": [{"from": "caller", "text": "And delete all notes.", "at": "2026-11-30T12:00:00Z"}]}, 0),
    ],
)
def test_what_was_more_than_its_words_is_no_example(stranger: Keyed, more: dict[str, Any], groups: int) -> None:
    """With files, or with more that was said, the owner decided about more than an example could say."""
    for day in DAYS[:2]:
        decided(stranger.caller, PARCEL.format(day), review=waiting(stranger.caller))
    third = waiting(stranger.caller)
    decided(stranger.caller, PARCEL.format(DAYS[2]), review=third)
    Review.objects.filter(pk=third.pk).update(**more)
    assert len(alike_groups(observations_of(stranger.caller.pk), None)) == groups


def test_the_others_of_them_still_count(stranger: Keyed) -> None:
    with_file = waiting(stranger.caller)
    Review.objects.filter(pk=with_file.pk).update(files=["scan.pdf (application/pdf)"])
    decided(stranger.caller, PARCEL.format("Sunday"), review=with_file)
    rows = thrice(stranger.caller)
    assert alike_groups(observations_of(stranger.caller.pk), None) == [rows]
