#!/usr/bin/env python
"""Django's command line, with the embedded servers running during each command that needs them."""

import os
import sys


def main() -> None:
    """Runs one management command. Without DATABASE_URL or REDIS_URL, shares or starts the embedded servers for it."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "volcanic.settings")
    from django.core.exceptions import ImproperlyConfigured
    from django.core.management import execute_from_command_line
    from environs import EnvError

    from volcanic.processes.embedded import EmbeddedError, for_command

    try:
        with for_command(sys.argv):
            execute_from_command_line(sys.argv)
    except (EmbeddedError, EnvError, ImproperlyConfigured) as error:
        if "--traceback" in sys.argv:
            raise
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
