"""Matching of names to skills. A wrong match would be run, so most names here match none."""

from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trust.name_matching import Match, normalised, skill_match


@dataclass(frozen=True)
class Named:
    """A skill, as far as it is looked at."""

    slug: str
    aliases: list[str] = field(default_factory=list)


CAST = [
    Named("chat"),
    Named("notify-user"),
    Named("query-availability"),
    Named("read-calendar", ["calendar"]),
    Named("schedule-meeting", ["book-meeting", "arrange-a-meeting"]),
    Named("change-account"),
    Named("convert-usd-eur"),
    Named("packing-list"),
    Named("share-contact"),
    Named("report-12"),
    Named("cancellation-policy"),
    Named("make-appointment"),
]


def meant(name: object, *skills: Named) -> str | None:
    found = skill_match(name, skills or CAST).skill
    return found.slug if found else None


@pytest.mark.parametrize(
    ("name", "slug"),
    [
        # By id.
        ("chat", "chat"),
        ("CHAT", "chat"),
        (" notify_user ", "notify-user"),
        ("Notify User", "notify-user"),
        ("notify--user", "notify-user"),
        ("_notify - user_", "notify-user"),
        # By alias.
        ("calendar", "read-calendar"),
        ("Book Meeting", "schedule-meeting"),
        ("ARRANGE_A_MEETING", "schedule-meeting"),
        # Words written together or apart.
        ("notifyUser", "notify-user"),
        ("ScheduleMeeting", "schedule-meeting"),
        ("bookmeeting", "schedule-meeting"),
        ("noti-fy-user", "notify-user"),
        # Two letters swapped, one doubled or not, one missing in a long word.
        ("read-calnedar", "read-calendar"),
        ("read-calendra", "read-calendar"),
        ("schedule-meetting", "schedule-meeting"),
        ("shcedule-meeting", "schedule-meeting"),
        ("cancelation-policy", "cancellation-policy"),
        ("query-availablity", "query-availability"),
        ("query availabiility", "query-availability"),
    ],
)
def test_names_that_mean_a_skill(name: str, slug: str) -> None:
    assert meant(name) == slug


@pytest.mark.parametrize(
    "name",
    [
        # Nothing, or no name at all.
        *("", " ", "-", "_-_", "\x00", "chat\x00", "chat\n", "chat!", "chat/../notify-user", "*", "%", "'; --"),
        *("-" * 100, "a" * 100, "a" * 101, "notify-user" + " " * 100, "chat" * 10_000),
        # Another word, however near.
        *("chats", "chart", "cha", "that", "hat", "caht", "chta", "c-h-a-t", "chatt"),
        *("delete-calendar", "write-calendar", "reads-calendar", "red-calendar", "lead-calendar", "head-calendar"),
        *("read-calendars", "read-calenda", "calendars", "un-read-calendar", "read", "read-the-calendar"),
        *("charge-account", "change-acount", "change-accounts", "change-amount", "unchange-account", "boook-meeting"),
        *("reschedule-meeting", "unschedule-meeting", "schedule-meetings", "scheduled-meeting", "scheduler-meeting"),
        *("parking-list", "backing-list", "packing-lists", "share-contract", "share-contacts", "shame-contact"),
        *("make-appointments", "take-appointment", "make-disappointment"),
        # Part of one, and more than one.
        *("notify", "user", "notify-user-now", "notify-users", "notify-admin", "notify-owner", "notifyusers"),
        *("availability", "query", "schedule", "meeting", "schedule-meeting-now", "policy"),
        # The same words in another order.
        *("user-notify", "calendar-read", "meeting-schedule", "convert-eur-usd", "usd-eur-convert", "list-packing"),
        # Digits are never a slip of the pen.
        *("report-21", "report-1-2", "report-1", "report-112", "report-13", "report"),
        # Two slips.
        *("shcedule-meetting", "read-clanedar", "cahnge-acount", "query-avialablity"),
        # Letters that look alike: Cyrillic, full width, accents, invisible ones, the Kelvin sign, a fine hyphen.
        *(
            "\u0441hat",
            "\uff43\uff48\uff41\uff54",
            "chát",
            "ch\u200bat",
            "cha\u0074\u0301",
            "\ufeffchat",
            "notify\u2010user",
            "notify\u00aduser",
        ),
        *("ma\u212ae-appointment", "read\u00a0calendar", "chat\ud800", "🗓"),
    ],
)
def test_names_that_mean_none(name: str) -> None:
    assert meant(name) is None


# Words that are each other but for a letter or a syllable.
CONFUSABLE = """
accept except, activate deactivate, activation aviation, approve disapprove, attach attack, attaching attacking,
available unavailable, casual causal, change charge, complement compliment, compute commute, confirmation conformation,
contact contract, contacting contracting, contracting contrasting, converting conversing, country county, debit credit,
diary dairy, discuss discus, enable disable, enable unable, encrypt decrypt, friend fiend, import export, import impart,
increase decrease, inform infirm, insert invert, inserting inverting, install uninstall, legal illegal, listing lifting,
lock unlock, million mission, month monthly, needles needless, parking packing, prescription proscription, read lead,
relocation revocation, restore restart, schedule reschedule, send lend, sending spending, subscribe unsubscribe,
testing texting, training trailing, united untied, upload download
"""


@pytest.mark.parametrize("pair", CONFUSABLE.replace("\n", " ").split(","))
def test_another_word_is_another_skill(pair: str) -> None:
    one, other = pair.split()
    for asked, there in ((one, other), (other, one)):
        for asked_name, known in ((asked, there), (f"{asked}-now", f"{there}-now"), (f"now {asked}", f"now-{there}")):
            assert meant(asked_name, Named(known)) is None
            assert meant(asked_name, Named("some-skill", [known])) is None


@pytest.mark.parametrize("name", [None, 1, True, 1.5, [], ["chat"], {}, {"chat": 1}, b"chat"])
def test_what_is_no_text_means_none(name: object) -> None:
    assert skill_match(name, CAST) == Match(None)


def test_without_skills_nothing_is_meant() -> None:
    assert skill_match("chat", []) == Match(None)


@pytest.mark.parametrize(
    ("name", "first", "second"),
    [
        # The same alias; an alias of one and the id of another, in its own letters and in others.
        ("book", Named("book-table", ["book"]), Named("book-flight", ["book"])),
        ("BOOK", Named("book-table", ["book"]), Named("book-flight", ["Book"])),
        # The same id: a workspace's own wins over nothing.
        ("chat", Named("chat"), Named("chat")),
        ("Notify User", Named("notify-user"), Named("notify--user")),
        # The same when written together.
        ("nowhere", Named("now-here"), Named("no-where")),
        ("bookTable", Named("book-table"), Named("order", ["boo-ktable"])),
        # One slip away from both, or nearly.
        ("read-calnedar", Named("read-calendar"), Named("read-calnedars")),
        ("schedule-meetting", Named("schedule-meeting"), Named("schedule-meetings")),
        ("schedule-meetting", Named("schedule-meeting"), Named("reschedule-meeting")),
        ("read-calnedar", Named("read-calendar"), Named("lead-calendar")),
        ("read-calnedar", Named("read-calendar"), Named("x", ["head-calendar"])),
        ("send-invocies-home", Named("send-invoices-home"), Named("lend-invoices-home")),
    ],
)
def test_what_fits_two_skills_is_neither(name: str, first: Named, second: Named) -> None:
    for skills in ([first, second], [second, first]):
        match = skill_match(name, skills)
        assert match.skill is None
        assert set(match.near) == {first.slug, second.slug}


def test_an_id_goes_before_an_alias_and_both_before_a_guess() -> None:
    calendar, other = Named("calendar"), Named("read-dates", ["calendar"])
    assert meant("calendar", other, calendar) == "calendar"
    assert meant("Calendar", other, calendar) == "calendar"
    assert meant("book", Named("books"), Named("order", ["book"])) == "order"
    # The very id, where two are the same but for the hyphens.
    assert meant("now--here", Named("now-here"), Named("now--here")) == "now--here"
    assert meant("schedule-meetings", Named("schedule-meeting"), Named("schedule-meetings")) == "schedule-meetings"


def test_two_names_of_one_skill_are_no_doubt() -> None:
    assert meant("book-a-tabel-tonight", Named("book-a-table-tonight")) is None  # "table" is short
    assert meant("boook-meeting-romoss", Named("book-meeting-rooms")) is None
    assert meant("reserv-meetingg", Named("x", ["reserve-meeting", "reserve-meetings"])) is None
    assert meant("reserve-meetting", Named("x", ["reserve-meeting", "reserve-meetings"])) == "x"


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("notify", ("notify-user",)),
        ("delete-calendar", ("read-calendar",)),
        ("meeting-schedule", ("schedule-meeting",)),
        ("chats", ("chat",)),
        ("\u0441hat", ("chat",)),
        ("xyzzy", ()),
        ("", ()),
        ("a" * 101, ()),
    ],
)
def test_what_may_have_been_meant_is_told(name: str, near: tuple[str, ...]) -> None:
    match = skill_match(name, CAST)
    assert (match.skill, match.ambiguous) == (None, False)
    assert match.near[: len(near)] == near
    assert bool(match.near) == bool(near)


def test_only_a_few_are_told() -> None:
    match = skill_match("book", [Named(f"book-{letter}") for letter in "edcba"])
    assert match.near == ("book-a", "book-b", "book-c")


@pytest.mark.parametrize("aliases", [None, "chat", {"a": 1}, [1, None, ["chat"]], ["", "-", "\u0441hat", "x" * 101]])
def test_aliases_that_are_none(aliases: object) -> None:
    """Every type of value that a JSON column can hold."""
    odd = Named("odd-skill", aliases)  # type: ignore[arg-type]
    assert meant("odd-skill", odd) == "odd-skill"
    for name in ("chat", "", "a", "\u0441hat"):
        assert meant(name, odd) is None


def test_normal_names() -> None:
    assert [normalised(name) for name in ("A b_C--d", "-", "é", "a.b", "x" * 101)] == ["a-b-c-d", "", "", "", ""]


@settings(deadline=None)  # other processes' load is no fault
@given(st.text(max_size=120))
def test_any_text_is_taken(name: str) -> None:
    """What is found has the name's own letters and digits, or one more, fewer, or two swapped."""
    found = skill_match(name, CAST).skill
    if found is not None:
        letters = [character for character in name.lower() if character.isalnum()]
        known = [sorted(one.replace("-", "")) for one in (found.slug, *found.aliases)]
        assert any(abs(len(letters) - len(one)) <= 1 for one in known)
        assert name.isascii()


@settings(deadline=None)
@given(st.lists(st.from_regex(r"[a-z0-9-]{1,20}", fullmatch=True), min_size=1, max_size=8, unique=True))
def test_an_id_is_always_its_own(slugs: list[str]) -> None:
    """However near others come."""
    skills = [Named(slug) for slug in slugs]
    for slug in slugs:
        if normalised(slug):
            assert skill_match(slug, skills).skill == Named(slug)
