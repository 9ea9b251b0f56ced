"""Matching of skill names: finds the skill that a request names by id, by alias or with one misspelling.

A wrong skill is far worse than no skill, so a doubtful name matches no skill.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from rapidfuzz import fuzz
from rapidfuzz.distance import OSA

LONGEST_NAME = 100
# A misspelt name must be nearer to its skill than to every other skill by this much, on a scale of 0 to 1.
_GAP = 0.15
# Two swapped neighbours, or a letter doubled or not doubled, count as a slip in words of at least this many letters.
# In such words the result is hardly ever another word.
_SLIP_LETTERS = 7
# A missing or extra letter counts as a slip only in words of at least this many letters: "contact" and "contract",
# "sending" and "spending" are different words. A wrong letter never counts as a slip: "charge" and "change",
# "attaching" and "attacking", "relocation" and "revocation".
_LONG_WORD_LETTERS = 11
# Two words written as one, or one word written as two, match if they have at least this many letters.
_JOINED_LETTERS = 6
_MOST_NEAR, _NEAR_SCORE = 3, 70

_SEPARATORS = re.compile(r"[ _-]+")
_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
# A hyphen between digits counts: 1-2 is not 12.
_REDUNDANT_HYPHEN = re.compile(r"(?<![0-9])-|-(?![0-9])")
_DOUBLED = re.compile(r"(.)\1")


class SkillLike(Protocol):
    """The attributes of a skill that matching reads."""

    @property
    def slug(self) -> str:
        """The skill's id."""

    @property
    def aliases(self) -> Any:
        """The skill's other ids, a list."""


S = TypeVar("S", bound=SkillLike)


@dataclass(frozen=True, slots=True)
class Match(Generic[S]):
    """The skill that a name means, or None with the ids of skills that may have been meant, the nearest first."""

    skill: S | None
    near: tuple[str, ...] = ()
    # True if several skills have this name.
    ambiguous: bool = False


def normalised(name: str) -> str:
    """Returns a name in small letters with one hyphen between words; "" for a text that is not a name.

    Only ASCII letters make a name: letters of other scripts that look alike are different letters.
    """
    if len(name) > LONGEST_NAME or not name.isascii():
        return ""
    plain = _SEPARATORS.sub("-", name.lower()).strip("-")
    return plain if _NAME.fullmatch(plain) else ""


def skill_match(name: object, skills: Sequence[S]) -> Match[S]:
    """Returns the match of `name` among `skills`. A caller wrote `name`, so it may be any value.

    The name is compared with ids, then with aliases, then with both after their words are joined. Last it is compared
    with both as a misspelling: one slip that makes no other word, with no other skill nearly as near. A name that fits
    two skills in one of these ways matches neither of them. `skills` must be all skills of the workspace, granted or
    not: otherwise a misspelt name could match the next best skill.
    """
    if not isinstance(name, str) or len(name) > LONGEST_NAME:
        return Match(None)
    plain = normalised(name)
    ways: tuple[Callable[[S], bool], ...] = (
        lambda skill: skill.slug == name,
        lambda skill: normalised(skill.slug) == plain,
        lambda skill: plain in _aliases(skill),
        lambda skill: len(_joined(plain)) >= _JOINED_LETTERS and _joined(plain) in map(_joined, _names(skill)),
    )
    for fits in ways if plain else ():
        found = [skill for skill in skills if fits(skill)]
        if len(found) == 1:
            return Match(found[0])
        if found:
            return Match(None, tuple(sorted({skill.slug for skill in found})), ambiguous=True)
    misspelt = _misspelt(plain, skills)
    return Match(None, _near(name, skills)) if misspelt is None else Match(misspelt)


def _aliases(skill: SkillLike) -> Iterator[str]:
    written = skill.aliases if isinstance(skill.aliases, list) else ()
    return (plain for alias in written if isinstance(alias, str) and (plain := normalised(alias)))


def _names(skill: SkillLike) -> list[str]:
    return [normalised(skill.slug), *_aliases(skill)]


def _joined(plain: str) -> str:
    return _REDUNDANT_HYPHEN.sub("", plain)


def _misspelt(plain: str, skills: Sequence[S]) -> S | None:
    """Returns the one skill whose name `plain` misspells, None if no skill or several skills fit."""
    slips = [skill for skill in skills if any(_is_slip(plain, name) for name in _names(skill))]
    if len(slips) != 1:
        return None
    others = [_likeness(plain, skill) for skill in skills if skill is not slips[0]]
    return slips[0] if _likeness(plain, slips[0]) - max(others, default=0) >= _GAP else None


def _likeness(plain: str, skill: SkillLike) -> float:
    return max(OSA.normalized_similarity(plain, name) for name in _names(skill))


def _is_slip(plain: str, name: str) -> bool:
    """Tells whether two names have the same words in the same order, except for one slip in one word."""
    pairs = list(zip(plain.split("-"), name.split("-"), strict=False))
    if plain.count("-") != name.count("-"):
        return False
    unlike = [(one, other) for one, other in pairs if one != other]
    return len(unlike) == 1 and _is_slip_in_word(*unlike[0])


def _is_slip_in_word(one: str, other: str) -> bool:
    if not (one.isalpha() and other.isalpha()) or one[0] != other[0] or OSA.distance(one, other) != 1:
        return False
    shorter, longer = sorted((one, other), key=len)
    if len(shorter) == len(longer):
        return len(shorter) >= _SLIP_LETTERS and sorted(one) == sorted(other)
    if longer.startswith(shorter) or shorter[-1] != longer[-1]:
        return False  # another ending is another word: "chat" and "chats"
    doubled = _DOUBLED.sub(r"\1", one) == _DOUBLED.sub(r"\1", other)
    return len(shorter) >= (_SLIP_LETTERS if doubled else _LONG_WORD_LETTERS)


def _near(name: str, skills: Sequence[SkillLike]) -> tuple[str, ...]:
    """Returns the ids of at most _MOST_NEAR skills that `name` resembles, as suggestions for the caller."""
    words = _SEPARATORS.sub(" ", name.lower()).strip()
    scores: dict[str, float] = {}
    for skill in skills if words else ():
        score = max(fuzz.WRatio(words, known.replace("-", " ")) for known in _names(skill))
        scores[skill.slug] = max(score, scores.get(skill.slug, 0))
    liked = sorted((-score, slug) for slug, score in scores.items() if score >= _NEAR_SCORE)
    return tuple(slug for _, slug in liked[:_MOST_NEAR])
