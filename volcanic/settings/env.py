"""Reader of the environment: every setting of the product is read through `env`.

With a single reader, all wrong values are reported together, each by its name, and docs/settings.md can be checked
against the code.
"""

import os
import secrets
from pathlib import Path

from environs import FileAwareEnv, validate

from volcanic.processes.embedded import make_var

BASE_DIR = Path(__file__).resolve().parent.parent.parent

# Lazy: wrong values are collected, and `env.seal()` at the end of the settings reports all of them at once.
# File-aware: NAME_FILE names a file that holds the value (Docker secrets).
env = FileAwareEnv(eager=False)

PRODUCTION: bool = (
    env.str("VOLCANIC_ENV", "development", validate=validate.OneOf(["development", "production"])) == "production"
)
VAR_DIR: Path = BASE_DIR / (env.str("VOLCANIC_VAR", "var") or "var")  # an absolute VOLCANIC_VAR replaces BASE_DIR


def at_least(number: int) -> validate.Range:
    """Returns the check that a setting is `number` or more."""
    return validate.Range(min=number)


def generated_secret(name: str) -> str:
    """Returns the development secret `name`, which is generated once and kept in the var folder with mode 0600.

    Production does not call this function: the environment must hold the value there.
    """
    path = VAR_DIR / "secrets" / name
    if not path.exists():
        make_var(VAR_DIR)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        draft = path.with_name(f"{name}.{os.getpid()}")
        handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(handle, "w") as file:
            file.write(secrets.token_urlsafe(48) + "\n")
        try:
            os.link(draft, path)  # atomic: of several processes that start at once, only one creates the file
        except FileExistsError:
            pass
        finally:
            draft.unlink()
    return path.read_text().strip()
