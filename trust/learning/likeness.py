"""The rule of likeness: two requests that ask for the same kind of thing, compared without a model.

Two requests are alike if they have the same words in the same order, with slots (see `reading`) in the same places. A
slot may differ only from a slot of the same kind. A point in time may differ, and an amount may differ within limits.
Names and ids may differ only if the request does no more than ask, note or tell something.

Nearly the same is not enough: "unlock" is the opposite of "lock". A wrong draft of a skill costs the owner's trust,
while a missed draft costs nothing. So an unknown word always counts. Only listed words of politeness are dropped. Verbs
that mean the same count as one verb.
"""

import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from rapidfuzz.distance import Indel

from trust.learning import words
from trust.learning.reading import END, Token, amount, read

# Longer texts aren't compared. If they were cut, two texts with the same beginning would count as alike.
MAX_CHARS = 1000
# The highest score of two texts that ask for different acts, or say "not" a different number of times.
OTHER_ACT = 0.5
# The highest score of two texts that aren't alike.
NOT_ALIKE = 0.99
# Two numbers may differ by this factor at most.
MOST_TIMES = 3
# The most texts whose skeletons are cached, since an owner's page or a sweep compares the same texts repeatedly.
_KEPT = 2048
# A slot of these kinds may have any other value. `_may_differ` has the rules of the other kinds.
_WHEN = frozenset(["day", "bound", "part", "month"])
_HOW_MUCH = frozenset(["number", "money"])
_WHICH = frozenset(["name", "id", "file", "quote", "path", "mail"])
_SLOTS = _WHEN | _HOW_MUCH | _WHICH | {"clock", "url", "host", "phone", "account", "ordinal"}
# A time of day before this one is at night.
_MORNING = "06:00"


class Slot(NamedTuple):
    """A detail in one place of a request: its kind, its value and the form of the value."""

    kind: str
    value: str
    form: str


@dataclass(frozen=True, slots=True)
class Skeleton:
    """The compared form of a request.

    `words` are its words in order, with a mark for each slot. `acts` are its verbs. `negations` counts words such as
    "not". `looks` is true if the request only asks, notes or tells something.
    """

    words: tuple[str, ...]
    slots: tuple[Slot, ...]
    acts: frozenset[str]
    negations: int
    looks: bool


def alike(first: str, second: str) -> bool:
    """Returns whether both texts ask for the same kind of thing. Only their details may differ.

    A text without a word of its own (empty, only emoji, "yes please") is like no other text. The same is true of a text
    longer than MAX_CHARS.
    """
    one, two = skeleton(first), skeleton(second)
    return one is not None and two is not None and _alike(one, two)


def similarity(first: str, second: str) -> float:
    """Returns the similarity of two texts, from 0 to 1. It is 1 for texts that are alike, and only for them.

    A value below 1 is good for sorting, not for deciding.
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
    """Returns the indexes of all texts in groups of texts that are alike, in the order of each group's first text.

    Each text in a group is alike to every other text of the group. A text that is alike to only some texts of a group
    goes to the next group that fits. A text that is like no other forms a group of its own.
    """
    return grouped(range(len(texts)), lambda one, other: alike(texts[one], texts[other]))


def grouped(places: Iterable[int], together: Callable[[int, int], bool]) -> list[list[int]]:
    """Returns places in groups. A place joins the first group in which it goes together with every other place."""
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
    """Tells whether two requests with the same words have a value in different places.

    "From Anna to Bob" is not the same request as "from Bob to Anna".
    """
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
    """Returns whether two requests with slots `one` and `two` in the same place can still be alike."""
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
    """Returns the skeleton of `text`, or None if it has no word of its own or more than MAX_CHARS characters."""
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
    """Returns the mark of a token by which requests are compared. A "+" marks a token without a space before it."""
    glue = "+" if token.glued else ""
    return f"<{glue}{token.kind} {_kept(token)}>" if token.kind in _SLOTS else f"{glue}{token.text}"


def _kept(token: Token) -> str:
    """Returns the part of a slot that is as fixed as a word: the currency, or the form of a beginning or an end."""
    return token.form if token.kind in {"money", "bound"} else ""


@dataclass(slots=True)
class _Sentence:
    """The parts of a sentence between commas, and the token that ends it."""

    parts: list[list[Token]]
    stop: Token

    @property
    def asks(self) -> bool:
        return "?" in self.stop.text


def _sentences(tokens: Sequence[Token]) -> list[_Sentence]:
    """Returns the sentences without their words and parts of politeness."""
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
    """Yields a token's plain form: contractions resolved, in small letters unless the token is all in capitals."""
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
    """Tells whether a colon in the text may announce its last part, as in "Post this: well, thanks"."""
    return any(token.text == ":" for sentence in sentences for part in sentence.parts for token in part)


def _is_courtesy(part: Sequence[Token]) -> bool:
    said = tuple(token.text for token in part)
    greets = len(part) == 2 and said[0] in words.GREETINGS and part[1].kind == "name"
    return said in words.COURTESIES or greets


def _sentence(sentence: _Sentence, acts: set[str]) -> tuple[list[Token], bool]:
    """Returns a sentence's tokens and whether it only asks, notes or tells something. Adds its verbs to `acts`."""
    first, framed = _without_politeness(sentence.parts[0])
    said = list(first)
    for part in sentence.parts[1:]:
        said += [Token("word", ","), *part]
    if sentence.asks and len(said) > 1 and said[-1].text == "yet":
        said.pop()
    said = _canonical(said, acts)
    head = said[0].text if said and said[0].kind == "word" else ""
    if sentence.asks and not framed and head not in words.ASKS:
        said.append(Token("word", "?"))  # "Delete the files?" is a question, "Delete the files." is an order
    light = head in words.LOOKS or ((head in words.ASKS or head in words.TELLS) and "you" not in {t.text for t in said})
    return said, light


def _without_politeness(part: list[Token]) -> tuple[list[Token], bool]:
    """Returns the beginning of a sentence without politeness, and whether it was a polite question."""
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
    """Returns the table's verb for `word`, else "". With `gerund`, `word` has the form "sending"."""
    if not gerund:
        return word if word in words.ACTS else ""
    stem = word.removesuffix("ing") if word.endswith("ing") else ""
    return next((verb for verb in (stem, f"{stem}e", stem[:-1]) if verb in words.ACTS), "")


def _canonical(tokens: Sequence[Token], acts: set[str]) -> list[Token]:
    """Returns the tokens with one verb for all verbs that mean the same. Adds these verbs to `acts`."""
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
