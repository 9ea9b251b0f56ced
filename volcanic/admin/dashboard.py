"""First page of the admin: sections, figures and lists that other packages register.

The other packages register functions, because this package must not import their tables.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet
from django.http import HttpRequest

from volcanic.admin.base import is_owner

# Figures count up to this number. A higher count would read the whole table for a number that nobody needs.
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
    """Registers a function that returns a section for the top of the first page, or None for no section."""
    _sections.append(section)
    return section


def register_card(card: Callable[[HttpRequest], Card]) -> Callable[[HttpRequest], Card]:
    """Registers a function that returns a figure for the first page."""
    _cards.append(card)
    return card


def register_listing(listing: Callable[[HttpRequest], Listing]) -> Callable[[HttpRequest], Listing]:
    """Registers a function that returns a short table for the first page."""
    _listings.append(listing)
    return listing


def capped_count(rows: QuerySet[Any]) -> str:
    """Returns the number of rows as text; `99+` for more than 99."""
    seen = len(rows.order_by().values_list("pk")[: MOST + 1])
    return f"{MOST}+" if seen > MOST else str(seen)


def dashboard(request: HttpRequest, context: dict[str, Any]) -> dict[str, Any]:
    """Adds the sections, cards and listings to the first page's context, for owners only.

    The setting UNFOLD names this function.
    """
    if is_owner(request):
        context["sections"] = [found for section in _sections if (found := section(request)) is not None]
        context["cards"] = [card(request) for card in _cards]
        context["listings"] = [listing(request) for listing in _listings]
    return context
