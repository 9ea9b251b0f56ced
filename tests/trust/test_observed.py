"""Which decisions of the owner are put together."""

import pytest

from tests.conftest import Keyed
from tests.trust.learned import PARCEL, decided, thrice
from trust.learning.observed import alike_groups, observations_of
from trust.models import Observation

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("broker_is_away")]


def test_what_was_more_than_its_words_is_no_example(stranger: Keyed) -> None:
    """With files, or with more that was said, the owner decided about more than an example could say."""
    rows = thrice(stranger.caller)
    Observation.objects.filter(pk=rows[0].pk).update(has_more=True)
    assert alike_groups(observations_of(stranger.caller.pk), None) == []


def test_the_others_of_them_still_count(stranger: Keyed) -> None:
    decided(stranger.caller, PARCEL.format("Sunday"))
    Observation.objects.update(has_more=True)
    rows = thrice(stranger.caller)
    assert alike_groups(observations_of(stranger.caller.pk), None) == [rows]
