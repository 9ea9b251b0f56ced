"""Which skill a request asks for."""

from collections.abc import Collection
from dataclasses import dataclass

from trust.models import Skill
from trust.name_matching import skill_match
from trust.selectors import skills_of_workspace


@dataclass(frozen=True, slots=True)
class UnknownSkill:
    """No skill goes by that name, or more than one does."""

    name: str
    # Ids that come near, of those that the caller may know of.
    near: tuple[str, ...] = ()


def named_skill(name: object, *, workspace_id: int, grants: Collection[str]) -> Skill | UnknownSkill:
    """Returns the enabled skill that a request's metadata names: by id, alias, or near enough to be meant.

    What comes near is only told of skills that are on the public card or granted to the caller. One statement.
    """
    if not isinstance(name, str):
        return UnknownSkill(str(name)[:100])
    skills = list(skills_of_workspace(workspace_id))
    match = skill_match(name, skills)
    if match.skill is not None:
        return match.skill
    known = {skill.slug for skill in skills if skill.workspace_id is None or skill.advertised or skill.slug in grants}
    return UnknownSkill(name[:100], tuple(near for near in match.near if near in known))
