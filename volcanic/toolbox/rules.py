"""What a turn may see and change in the workspace. Paths are real ones here: links resolved, from the workspace on."""

import unicodedata
from dataclasses import dataclass

from volcanic.runtime.base import Inbound

# What tells the assistant how to work, who it is and what it knows: the owner's to write.
OWNERS_FILES = frozenset({"agents.md", "claude.md", "persona.md", "memory.md"})
INBOX = "inbox"

Real = tuple[str, ...]


def fold(name: str) -> str:
    """Returns `name` as a file system would compare it that tells neither case nor ways to write a letter apart."""
    return unicodedata.normalize("NFKC", name).casefold()


def is_owners(name: str) -> bool:
    """Tells whether `name` at the top of the workspace is the owner's alone to change: the files above, and whatever
    begins with a dot (`.volcanic`, but `.git` and `.envrc` too, which can hold commands that programs run)."""
    return name.startswith(".") or fold(name) in OWNERS_FILES or fold(name).startswith(".")


@dataclass(frozen=True)
class Rules:
    """The rules of one turn. `caller` is the name of the caller it serves; None in the owner's own turns."""

    caller: str | None = None

    @classmethod
    def of(cls, inbound: Inbound | None) -> "Rules":
        """Returns the rules for a turn."""
        return cls(inbound.caller if inbound else None)

    def hides(self, real: Real) -> bool:
        """Tells whether there is no such path for this turn: all in the inbox but the caller's own folder."""
        return self.caller is not None and len(real) > 1 and fold(real[0]) == INBOX and real[1] != self.caller

    def refuses_change(self, real: Real) -> str:
        """Returns why `real` may not be made, changed or replaced; "" if it may."""
        if self.caller is None:
            return ""
        if is_owners(real[0]):
            return f"{real[0]} is the owner's alone to change."
        if fold(real[0]) == INBOX and (len(real) == 1 or real[1] != self.caller):
            return f"In {INBOX}, only {INBOX}/{self.caller} can be written to."
        return ""
