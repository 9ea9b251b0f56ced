"""Rules for the files that a turn may see and change. Paths here are relative to the workspace, with links resolved."""

import unicodedata
from dataclasses import dataclass

from volcanic.runtime.base import Inbound

# Files that instruct the assistant. Only the owner may write them.
OWNERS_FILES = frozenset({"agents.md", "claude.md", "persona.md", "memory.md"})
INBOX = "inbox"

Real = tuple[str, ...]


def fold(name: str) -> str:
    """Returns the form of `name` that a file system compares if it ignores case and Unicode variants of letters."""
    return unicodedata.normalize("NFKC", name).casefold()


def is_owners(name: str) -> bool:
    """Returns whether only the owner may change `name` at the top of the workspace.

    These are OWNERS_FILES and all names that begin with a dot: `.volcanic`, but also `.git` and `.envrc`, which can
    contain commands that programs run.
    """
    return name.startswith(".") or fold(name) in OWNERS_FILES or fold(name).startswith(".")


@dataclass(frozen=True)
class Rules:
    """The rules of one turn. `caller` is the name of the caller that the turn serves; None in the owner's own turns."""

    caller: str | None = None

    @classmethod
    def of(cls, inbound: Inbound | None) -> "Rules":
        """Returns the rules for a turn."""
        return cls(inbound.caller if inbound else None)

    def hides(self, real: Real) -> bool:
        """Returns whether the path is hidden: all paths in the inbox are, except for the caller's own folder."""
        return self.caller is not None and len(real) > 1 and fold(real[0]) == INBOX and real[1] != self.caller

    def refuses_change(self, real: Real) -> str:
        """Returns the reason why `real` may not be created, changed or replaced; "" if it may."""
        if self.caller is None:
            return ""
        if is_owners(real[0]):
            return f"{real[0]} is the owner's alone to change."
        if fold(real[0]) == INBOX and (len(real) == 1 or real[1] != self.caller):
            return f"In {INBOX}, only {INBOX}/{self.caller} can be written to."
        return ""
