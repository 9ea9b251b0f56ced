"""The columns of a row that is a job of leased work."""

from django.db import models
from django.utils import timezone


class LeasedRow(models.Model):
    """A job that worker processes take under a lease and retry; see `volcanic.leased_work`."""

    # The fencing number: counts the claims, and each write of a claim names it.
    attempt = models.PositiveIntegerField(default=0)
    # How often it failed since it was last begun anew.
    retries = models.PositiveIntegerField(default=0)
    next_try_at = models.DateTimeField(default=timezone.now)
    lease_expires_at = models.DateTimeField(null=True, blank=True)
    last_error = models.TextField(blank=True)

    class Meta:
        abstract = True
