"""One stream of lines out of many programs' output: `web | …`."""

import contextlib
import select
from typing import TextIO

_COLOURS = (36, 33, 32, 35, 34, 31, 96, 93)
_WIDTH = 9


class Log:
    """Writes lines with the name of who said them; in colour when a person is looking."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._colour = stream.isatty()
        self._names: dict[str, int] = {}

    def __call__(self, name: str, line: str) -> None:
        """One line of the program `name`."""
        prefix = f"{name:<{_WIDTH}} |"
        if self._colour:
            colour = _COLOURS[self._names.setdefault(name, len(self._names)) % len(_COLOURS)]
            prefix = f"\033[{colour}m{prefix}\033[0m"
        self.plain(f"{prefix} {line}")

    def plain(self, line: str) -> None:
        """A line that is nobody's, without a prefix."""
        # A reader that is gone must not keep us from stopping the children in order.
        with contextlib.suppress(OSError, ValueError):
            self._stream.write(line + "\n")
            self._stream.flush()

    def is_heard(self) -> bool:
        """False once the terminal, or whoever read our output, is gone."""
        try:
            poll = select.poll()
            poll.register(self._stream.fileno(), 0)  # hang-ups and errors are told unasked
            return not poll.poll(0)
        except (OSError, ValueError):
            return False
