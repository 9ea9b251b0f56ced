"""How much a caller may ask for: the settings' numbers, and in their place those that the owner set for it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from django.conf import settings

# Column of a caller → the setting that counts where the column is empty. 0 is no limit, in both.
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
    """The limits of one caller. 0 is none."""

    requests_per_minute: int
    max_running_tasks: int
    max_open_contexts: int
    max_inbox_bytes: int
    max_stored_tasks: int

    @classmethod
    def of(cls, overrides: Sequence[int | None] = ()) -> "Limits":
        """Returns the limits of a caller with these values in its columns, in the order of COLUMNS."""
        values = [*overrides, *([None] * (len(COLUMNS) - len(overrides)))]
        return cls(
            *(
                int(getattr(settings, DEFAULTS[column])) if value is None else value
                for column, value in zip(COLUMNS, values, strict=True)
            )
        )
