"""The skill that a request names: found by its id, by an alias or by a near spelling."""

from collections.abc import Collection
from dataclasses import dataclass

from trust.models import Skill
from trust.name_matching import skill_match
from trust.selectors import skills_of_workspace


@dataclass(frozen=True, slots=True)
class UnknownSkill:
    """A name that belongs to no skill, or to more than one."""

    name: str
    # Ids of similar skills that the caller may know of.
    near: tuple[str, ...] = ()


def named_skill(name: object, *, workspace_id: int, grants: Collection[str]) -> Skill | UnknownSkill:
    """Returns the enabled skill that a request's metadata names by id, alias or a near spelling; else an UnknownSkill.

    An UnknownSkill suggests only skills that are built in, on the public card or granted to the caller, so that it
    tells nothing of the others. Runs one SQL statement.
    """
    if not isinstance(name, str):
        return UnknownSkill(str(name)[:100])
    skills = list(skills_of_workspace(workspace_id))
    match = skill_match(name, skills)
    if match.skill is not None:
        return match.skill
    known = {skill.slug for skill in skills if skill.workspace_id is None or skill.advertised or skill.slug in grants}
    return UnknownSkill(name[:100], tuple(near for near in match.near if near in known))
