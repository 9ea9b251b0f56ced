"""System checks of the tools."""

from typing import Any

from django.core.checks import CheckMessage, Info, Warning, register

from volcanic.toolbox.sandbox import sandbox
from volcanic.toolbox.shell import unsafe


@register()
def sandbox_works(**_kwargs: Any) -> list[CheckMessage]:
    """volcanic.I001: callers' turns can run commands. Only an Info, since all other tools work without a sandbox."""
    if sandbox().works:
        return []
    return [
        Info(
            f"The assistant has no `bash` in callers' turns: {sandbox().problem}.",
            hint="Install bubblewrap, and allow user namespaces on this machine or container (docs/operator.md).",
            id="volcanic.I001",
        )
    ]


@register(deploy=True)
def owners_commands_are_isolated(**_kwargs: Any) -> list[CheckMessage]:
    """volcanic.W003: in production, commands run in the sandbox also in the owner's turns."""
    if not unsafe():
        return []
    return [
        Warning(
            "OWNER_BASH is unsafe: in the owner's turns the assistant runs commands as the worker's user.",
            hint="A caller's files in the workspace can trick the assistant into running them. Use OWNER_BASH=sandbox.",
            id="volcanic.W003",
        )
    ]
