"""System checks of the tools."""

from typing import Any

from django.core.checks import CheckMessage, Info, Warning, register

from volcanic.toolbox.sandbox import sandbox
from volcanic.toolbox.shell import unsafe


@register()
def sandbox_works(**_kwargs: Any) -> list[CheckMessage]:
    """volcanic.I001: callers' turns can run commands. Without a sandbox all else works, so it is no more than said."""
    if sandbox().works:
        return []
    return [
        Info(
            f"The assistant has no `bash` in callers' turns: {sandbox().problem}.",
            hint="Install bubblewrap, and let this machine or container make user namespaces (docs/operator.md).",
            id="volcanic.I001",
        )
    ]


@register(deploy=True)
def owners_commands_are_isolated(**_kwargs: Any) -> list[CheckMessage]:
    """volcanic.W003: in production the assistant's commands run in the sandbox in the owner's turns too."""
    if not unsafe():
        return []
    return [
        Warning(
            "OWNER_BASH is unsafe: in the owner's turns the assistant runs commands as the worker's user.",
            hint="What callers left in the workspace can lead the assistant to run it. Use OWNER_BASH=sandbox.",
            id="volcanic.W003",
        )
    ]
