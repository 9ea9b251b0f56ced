"""Log that joins the output of many programs into one stream of lines such as `web | …`."""

import contextlib
import select
from typing import TextIO

_COLOURS = (36, 33, 32, 35, 34, 31, 96, 93)
_WIDTH = 9


class Log:
    """Writes lines with the name of their program as a prefix; in color if the stream is a terminal."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._colour = stream.isatty()
        self._names: dict[str, int] = {}

    def __call__(self, name: str, line: str) -> None:
        """Writes one line of the program `name`."""
        prefix = f"{name:<{_WIDTH}} |"
        if self._colour:
            colour = _COLOURS[self._names.setdefault(name, len(self._names)) % len(_COLOURS)]
            prefix = f"\033[{colour}m{prefix}\033[0m"
        self.plain(f"{prefix} {line}")

    def plain(self, line: str) -> None:
        """Writes a line without a prefix."""
        # A closed stream must not keep the runner from stopping its children in order.
        with contextlib.suppress(OSError, ValueError):
            self._stream.write(line + "\n")
            self._stream.flush()

    def is_heard(self) -> bool:
        """Returns False once the stream's terminal or reader is gone."""
        try:
            poll = select.poll()
            poll.register(self._stream.fileno(), 0)  # poll always reports hang-ups and errors
            return not poll.poll(0)
        except (OSError, ValueError):
            return False
