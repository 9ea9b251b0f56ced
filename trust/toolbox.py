"""The tool `list_skills`: shows the assistant the skills of the workspace while it reads a request for its owner."""

from trust.models import Skill
from trust.selectors import skills_of_workspace
from volcanic.aio.db import run_db
from volcanic.runtime.base import Inbound
from volcanic.runtime.tools import SKILLS, ToolContext, ToolError, register


def register_tools() -> None:
    """Registers the tool."""
    register("list_skills", list_skills, reads={SKILLS}, offered=_offered)


async def list_skills(context: ToolContext) -> str:
    """Lists the skills that callers can be granted: their ids, names and what they are for."""
    if context.workspace_id is None:
        raise ToolError("There are no skills in this conversation.")
    return await run_db(_listed, context.workspace_id)


def _offered(inbound: Inbound | None) -> bool:
    return inbound is not None and inbound.notes != ""


def _listed(workspace_id: int) -> str:
    return "\n".join(_line(skill) for skill in skills_of_workspace(workspace_id))


def _line(skill: Skill) -> str:
    """Returns a skill's line in the list.

    A learned skill is listed by its id only: its description holds one caller's words, and no other caller may read
    them.
    """
    return f"- {skill.slug}" if skill.by_example else f"- {skill.slug}: {skill.name}. {skill.description}"
