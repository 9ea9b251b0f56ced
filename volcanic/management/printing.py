"""Output of commands: times, and texts of others without the characters that control a terminal."""

from datetime import datetime

from django.utils import timezone

from volcanic.text import one_line


def iso(time: datetime | None) -> str | None:
    """Returns a time in the local time zone in ISO format, to the second; None for None."""
    return None if time is None else timezone.localtime(time).isoformat(timespec="seconds")


def printable(text: str) -> str:
    """Returns a text on one line, with a space for each unprintable character."""
    return _printable(one_line(text))


def indented(text: str, indent: str = "    ") -> str:
    """Returns a text of several lines, each after `indent`, with a space for each unprintable character."""
    return "\n".join(indent + _printable(line) for line in text.splitlines())


def _printable(line: str) -> str:
    return "".join(char if char.isprintable() else " " for char in line)
