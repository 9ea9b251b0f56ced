"""What commands print of texts that others wrote: nothing in them moves a terminal's cursor."""


def one_line(text: str) -> str:
    """Returns a text on one line, printable."""
    return _printable(" ".join(text.split()))


def indented(text: str, indent: str = "    ") -> str:
    """Returns a text of several lines, printable, each line behind `indent`."""
    return "\n".join(indent + _printable(line) for line in text.splitlines())


def _printable(line: str) -> str:
    return "".join(char if char.isprintable() else " " for char in line)
