"""What commands print: times, and texts that others wrote, in which nothing moves a terminal's cursor."""

from datetime import datetime

from django.utils import timezone

from volcanic.text import one_line


def iso(time: datetime | None) -> str | None:
    """Returns a time as people here read it, to the second; None for none."""
    return None if time is None else timezone.localtime(time).isoformat(timespec="seconds")


def printable(text: str) -> str:
    """Returns a text on one line, printable."""
    return _printable(one_line(text))


def indented(text: str, indent: str = "    ") -> str:
    """Returns a text of several lines, printable, each line behind `indent`."""
    return "\n".join(indent + _printable(line) for line in text.splitlines())


def _printable(line: str) -> str:
    return "".join(char if char.isprintable() else " " for char in line)
