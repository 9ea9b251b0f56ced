"""`python -m volcanic.processes.embedded remove FOLDER`: deletes the servers' data and the folder, for `make clean`."""

import shutil
import sys
from pathlib import Path

from volcanic.processes.embedded import EmbeddedError, remove


def main(arguments: list[str]) -> int:
    """Returns the exit code: 0 for success, 1 for a folder in use, 2 for a folder that must not be deleted."""
    if len(arguments) != 2 or arguments[0] != "remove":
        sys.stderr.write("usage: python -m volcanic.processes.embedded remove FOLDER\n")
        return 2
    folder = Path(arguments[1]).resolve()
    project = Path(__file__).resolve().parents[3]
    for precious in (Path.home().resolve(), project):
        if folder == precious or folder in precious.parents:
            sys.stderr.write(f"{folder} holds other files than the servers' data: not deleted\n")
            return 2
    if not folder.is_dir():
        return 0
    try:
        remove(folder)
    except EmbeddedError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
