"""The limits of a caller: the numbers of the settings, unless the owner set others for the caller."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from django.conf import settings

# Maps a caller's column to the setting that counts if the column is empty. In both, 0 means no limit.
DEFAULTS: Mapping[str, str] = MappingProxyType(
    {
        "requests_per_minute": "REQUESTS_PER_MINUTE",
        "max_running_tasks": "MAX_RUNNING_TASKS",
        "max_open_contexts": "MAX_OPEN_CONTEXTS",
        "max_inbox_bytes": "MAX_INBOX_BYTES",
        "max_stored_tasks": "MAX_STORED_TASKS",
    }
)
COLUMNS: tuple[str, ...] = tuple(DEFAULTS)


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of one caller. 0 means no limit."""

    requests_per_minute: int
    max_running_tasks: int
    max_open_contexts: int
    max_inbox_bytes: int
    max_stored_tasks: int

    @classmethod
    def of(cls, overrides: Sequence[int | None] = ()) -> "Limits":
        """Returns the limits for `overrides`, a caller's columns in the order of COLUMNS; None takes the setting."""
        values = [*overrides, *([None] * (len(COLUMNS) - len(overrides)))]
        return cls(
            *(
                int(getattr(settings, DEFAULTS[column])) if value is None else value
                for column, value in zip(COLUMNS, values, strict=True)
            )
        )
