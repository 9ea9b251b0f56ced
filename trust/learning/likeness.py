"""Whether two requests ask for the same kind of thing, without a model.

They do when they are the same words in the same order, except for slots (see `reading`) in the same places. A slot that
differs is of the same kind in both, and differs in what may differ there: when it is, somewhat in how much it is, and,
where the request only asks, notes or tells something, in whom and what it names. Nearly the same isn't enough: one word
makes "unlock" of "lock", and a wrong draft of a skill costs the owner's trust, while a missed one costs nothing. So a
word that isn't understood always counts, and what is dropped is listed: politeness. Verbs that mean the same are one.
"""

import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from rapidfuzz.distance import Indel

from trust.learning import words
from trust.learning.reading import END, Token, amount, read

# Longer texts aren't compared: cut, two that begin alike would pass for alike whatever comes after.
MAX_CHARS = 1000
# The most that two texts score that don't ask for the same act, or of which one says "not".
OTHER_ACT = 0.5
# The most that two texts score that aren't alike.
NOT_ALIKE = 0.99
# A number may be so many times the other.
MOST_TIMES = 3
# So many texts are kept as they were understood: an owner's page or a sweep compares the same ones again and again.
_KEPT = 2048
# A slot of these kinds may have any other value; of the others see `_may_differ`.
_WHEN = frozenset(["day", "bound", "part", "month"])
_HOW_MUCH = frozenset(["number", "money"])
_WHICH = frozenset(["name", "id", "file", "quote", "path", "mail"])
_SLOTS = _WHEN | _HOW_MUCH | _WHICH | {"clock", "url", "host", "phone", "account", "ordinal"}
# Before this a time of day is at night.
_MORNING = "06:00"


class Slot(NamedTuple):
    """What stands in one place of a request."""

    kind: str
    value: str
    form: str


@dataclass(frozen=True, slots=True)
class Skeleton:
    """What a request comes down to: its words in order with a mark for each slot, these slots, its verbs, how often it
    says "not", and whether it only asks, notes or tells something."""

    words: tuple[str, ...]
    slots: tuple[Slot, ...]
    acts: frozenset[str]
    negations: int
    looks: bool


def alike(first: str, second: str) -> bool:
    """Returns whether both texts ask for the same kind of thing, with other details at most.

    A text without a word of its own (empty, only emoji, "yes please") or longer than MAX_CHARS is like no other.
    """
    one, two = skeleton(first), skeleton(second)
    return one is not None and two is not None and _alike(one, two)


def similarity(first: str, second: str) -> float:
    """Returns how near two texts are, from 0 to 1. It is 1 for texts that are alike, and only for them.

    What is below 1 is good for putting in order, not for deciding.
    """
    one, two = skeleton(first), skeleton(second)
    if one is None or two is None:
        return 0.0
    if _alike(one, two):
        return 1.0
    most = NOT_ALIKE if (one.acts, one.negations) == (two.acts, two.negations) else OTHER_ACT
    mine, theirs = ([word for word in each.words if word not in words.ARTICLES] for each in (one, two))
    return min(Indel.normalized_similarity(mine, theirs), most)


def groups(texts: Sequence[str]) -> list[list[int]]:
    """Returns the places of all texts, those of texts that are alike in one list, in the order of the first of each.

    In a list each text is alike to each other one: it doesn't chain. A text that is like no other is a list of its own,
    and one that is like some of a list only goes to the next that it fits into.
    """
    return grouped(range(len(texts)), lambda one, other: alike(texts[one], texts[other]))


def grouped(places: Iterable[int], together: Callable[[int, int], bool]) -> list[list[int]]:
    """Returns places in lists in which each goes together with each other one: the first list that it fits into."""
    found: list[list[int]] = []
    for place in places:
        fitting = (group for group in found if all(together(place, other) for other in group))
        group = next(fitting, None)
        if group is None:
            found.append([place])
        else:
            group.append(place)
    return found


def swapped(one: Skeleton, two: Skeleton) -> bool:
    """Tells whether of two requests with the same words one has in some place what the other has elsewhere: "from Anna
    to Bob" isn't "from Bob to Anna"."""
    pairs = list(zip(one.slots, two.slots, strict=True))
    differing = [place for place, (mine, theirs) in enumerate(pairs) if mine.value != theirs.value]
    return any(
        one.slots[place].value in {slot.value for other, slot in enumerate(two.slots) if other != place}
        or two.slots[place].value in {slot.value for other, slot in enumerate(one.slots) if other != place}
        for place in differing
    )


def _alike(one: Skeleton, two: Skeleton) -> bool:
    if one.words != two.words:
        return False
    if one.slots == two.slots:
        return True
    pairs = zip(one.slots, two.slots, strict=True)
    return all(mine == theirs or _may_differ(mine, theirs, one.looks) for mine, theirs in pairs) and not swapped(
        one, two
    )


def _may_differ(one: Slot, two: Slot, looks: bool) -> bool:
    """Returns whether requests are alike of which one has `two` where the other has `one`."""
    if one.kind in _WHEN:
        return True
    if one.kind == "clock":
        return _at_night(one) == _at_night(two)
    if one.kind in _HOW_MUCH:
        less, more = sorted((amount(one.value), amount(two.value)))
        return less > 0 and more <= MOST_TIMES * less
    return looks and one.kind in _WHICH


def _at_night(clock: Slot) -> bool:
    return not clock.form and clock.value < _MORNING


@lru_cache(maxsize=_KEPT)
def skeleton(text: str) -> Skeleton | None:
    """Returns what `text` comes down to; None where there is nothing to compare, or too much."""
    if len(text) > MAX_CHARS:
        return None
    normal = unicodedata.normalize("NFC", text)
    if len(normal) > MAX_CHARS:  # one character may become three
        return None
    said: list[Token] = []
    acts: set[str] = set()
    looks = True
    stop = END
    for sentence in _sentences(read(normal)):
        inner, light = _sentence(sentence, acts)
        said += [stop, *inner] if said else inner
        stop = sentence.stop
        looks = looks and light
    plain = [token.text for token in said if token.kind not in _SLOTS]
    if not any(word[0].isalpha() and word not in words.FUNCTION for word in plain):
        return None
    slots = tuple(Slot(token.kind, token.value, token.form) for token in said if token.kind in _SLOTS)
    negations = sum(word in words.NEGATIONS for word in plain)
    return Skeleton(tuple(map(_mark, said)), slots, frozenset(acts), negations, looks and acts <= words.LOOKS)


def _mark(token: Token) -> str:
    """Returns what stands for a token where requests are compared; "+" is for no space before it."""
    glue = "+" if token.glued else ""
    return f"<{glue}{token.kind} {_kept(token)}>" if token.kind in _SLOTS else f"{glue}{token.text}"


def _kept(token: Token) -> str:
    """Returns what of a slot is as fixed as a word: the currency, and how far away a beginning or an end is."""
    return token.form if token.kind in {"money", "bound"} else ""


@dataclass(slots=True)
class _Sentence:
    """The parts of a sentence between commas, and what it ends with."""

    parts: list[list[Token]]
    stop: Token

    @property
    def asks(self) -> bool:
        return "?" in self.stop.text


def _sentences(tokens: Sequence[Token]) -> list[_Sentence]:
    """Returns the sentences, without the words and parts of them that say nothing."""
    found: list[_Sentence] = []
    parts: list[list[Token]] = [[]]
    for token in [*tokens, END]:
        if token.kind == "end":
            found.append(_Sentence(parts, Token("end", token.text.strip() or ".")))
            parts = [[]]
        elif token.kind == "comma":
            parts.append([])
        else:
            parts[-1] += _plain(token)
    for sentence in found:
        sentence.parts = [part for part in sentence.parts if part]
    for place in (0, -1):
        while found and (not found[place].parts or _is_courtesy(found[place].parts[place])):
            if place and _announced(found):
                break
            if found[place].parts:
                del found[place].parts[place]
            if not found[place].parts:
                del found[place]
    return [sentence for sentence in found if sentence.parts]


def _plain(token: Token) -> Iterator[Token]:
    """Yields a token in its plain form: in small letters unless it is all in capitals, without contractions."""
    if token.kind in _SLOTS:
        yield token
        return
    capitals = len(token.text) > 1 and token.text.isupper()
    low = token.text if capitals or token.kind == "other" else token.low
    if token.kind != "word" or capitals or token.glued:
        yield token._replace(kind="word", text=low)
    elif low in words.CONTRACTIONS:
        yield from (Token("word", word) for word in words.CONTRACTIONS[low])
    elif low.endswith("n't") and len(low) > 3:
        yield from (Token("word", low.removesuffix("n't")), Token("word", "not"))
    elif low.endswith("'s") and len(low) > 2:
        yield from (Token("word", low.removesuffix("'s")), Token("word", "'s"))
    elif low not in words.FILLERS:
        yield Token("word", low)


def _announced(sentences: Sequence[_Sentence]) -> bool:
    """Tells whether the last part of a text may be what a colon before it announces: "Post this: well, thanks"."""
    return any(token.text == ":" for sentence in sentences for part in sentence.parts for token in part)


def _is_courtesy(part: Sequence[Token]) -> bool:
    said = tuple(token.text for token in part)
    greets = len(part) == 2 and said[0] in words.GREETINGS and part[1].kind == "name"
    return said in words.COURTESIES or greets


def _sentence(sentence: _Sentence, acts: set[str]) -> tuple[list[Token], bool]:
    """Returns what a sentence says, adds its verbs to `acts`, and whether it only asks, notes or tells something."""
    first, framed = _without_politeness(sentence.parts[0])
    said = list(first)
    for part in sentence.parts[1:]:
        said += [Token("word", ","), *part]
    if sentence.asks and len(said) > 1 and said[-1].text == "yet":
        said.pop()
    said = _canonical(said, acts)
    head = said[0].text if said and said[0].kind == "word" else ""
    if sentence.asks and not framed and head not in words.ASKS:
        said.append(Token("word", "?"))  # "Delete the files?" asks what "Delete the files." orders
    light = head in words.LOOKS or ((head in words.ASKS or head in words.TELLS) and "you" not in {t.text for t in said})
    return said, light


def _without_politeness(part: list[Token]) -> tuple[list[Token], bool]:
    """Returns the beginning of a sentence without what makes it polite, and whether it was put as a question."""
    texts = tuple(token.text if token.kind == "word" else "" for token in part)
    framed = False
    for frame in words.FRAMES:
        size = len(frame)
        if texts[:size] == frame and len(texts) > size and (act := _act(texts[size], frame[-1] == "mind")):
            part, framed = [Token("word", act), *part[size + 1 :]], True
            break
    if texts[:2] in words.FRAMES_TO_MEET and texts[2:3] == ("meet",):
        part, framed = part[2:], True
    texts = tuple(token.text if token.kind == "word" else "" for token in part)
    for opening in words.TELL_ME:
        size = len(opening)
        if texts[:size] == opening and len(texts) > size:
            if texts[size] in words.QUESTIONS:
                part = part[size:]
            elif opening == ("tell", "me") and texts[size] in {"the", "your", "my"}:
                part = [Token("word", "what"), Token("word", "is"), *part[size:]]
            break
    return part, framed


def _act(word: str, gerund: bool) -> str:
    """Returns the verb that `word` is, of "would you mind sending" too; empty when it is none of the table."""
    if not gerund:
        return word if word in words.ACTS else ""
    stem = word.removesuffix("ing") if word.endswith("ing") else ""
    return next((verb for verb in (stem, f"{stem}e", stem[:-1]) if verb in words.ACTS), "")


def _canonical(tokens: Sequence[Token], acts: set[str]) -> list[Token]:
    """Returns the tokens with verbs that mean the same as one, and adds the verbs to `acts`."""
    result: list[Token] = []
    before = "."
    for token, after in zip(tokens, [*tokens[1:], END], strict=True):
        word = token.text
        if token.kind == "word" and word in words.ACTS and before in words.BEFORE_VERB:
            acts.add(words.ACTS[word])
            if not token.glued and not after.glued:
                token = Token("word", words.ACTS[word])
        result.append(token)
        before = word
    return result
