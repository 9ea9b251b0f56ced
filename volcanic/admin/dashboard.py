"""The first page of the admin: sections, figures and lists that the packages above put here.

They register functions, because this package knows none of their tables.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet
from django.http import HttpRequest

from volcanic.admin.base import is_owner

# Enough to tell "some" from "many"; counting further would read the table for a number nobody needs.
MOST = 99


@dataclass(frozen=True, kw_only=True)
class Card:
    """A figure with its link."""

    title: str
    value: str
    href: str
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class Listing:
    """A short table with its link."""

    title: str
    href: str
    headers: Sequence[str]
    rows: Sequence[Sequence[Any]]


@dataclass(frozen=True, kw_only=True)
class Section:
    """A part of the page with a template of its own, which finds `context` as `section`."""

    template: str
    context: dict[str, Any]


_sections: list[Callable[[HttpRequest], Section | None]] = []
_cards: list[Callable[[HttpRequest], Card]] = []
_listings: list[Callable[[HttpRequest], Listing]] = []


def register_section(section: Callable[[HttpRequest], Section | None]) -> Callable[[HttpRequest], Section | None]:
    """Puts a section above everything else on the first page, whenever it returns one."""
    _sections.append(section)
    return section


def register_card(card: Callable[[HttpRequest], Card]) -> Callable[[HttpRequest], Card]:
    """Puts a figure on the first page."""
    _cards.append(card)
    return card


def register_listing(listing: Callable[[HttpRequest], Listing]) -> Callable[[HttpRequest], Listing]:
    """Puts a table on the first page."""
    _listings.append(listing)
    return listing


def capped_count(rows: QuerySet[Any]) -> str:
    """Returns how many rows there are, or `99+`."""
    seen = len(rows.order_by().values_list("pk")[: MOST + 1])
    return f"{MOST}+" if seen > MOST else str(seen)


def dashboard(request: HttpRequest, context: dict[str, Any]) -> dict[str, Any]:
    """Adds the sections, cards and listings for whoever has a workspace. Named by the UNFOLD setting."""
    if is_owner(request):
        context["sections"] = [found for section in _sections if (found := section(request)) is not None]
        context["cards"] = [card(request) for card in _cards]
        context["listings"] = [listing(request) for listing in _listings]
    return context
