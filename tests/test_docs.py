"""The architecture page: every folder and file that it names is where it says."""

import re
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]
PACKAGES = ("a2a_server", "trust", "volcanic")


def _named() -> list[tuple[str, list[str], list[str]]]:
    """Returns the rows of the page's tables: the package, what the first cell names, and the files in the second."""
    rows, package = [], ""
    for line in (PROJECT / "docs/architecture.md").read_text().splitlines():
        if heading := re.match(r"`(\w+)`:", line):
            package = heading.group(1)
        elif line.startswith("| `") and package:
            first, second = line.strip("|").split("|")[:2]
            rows.append((package, re.findall(r"`([\w/]+(?:\.py)?)`", first), re.findall(r"`(\w+\.py)`", second)))
    return rows


def test_what_the_architecture_page_names_is_there() -> None:
    rows = _named()
    assert {package for package, _, _ in rows} == set(PACKAGES)
    for package, heads, files in rows:
        for head in heads:
            assert (PROJECT / package / head).exists(), f"{package}/{head}"
        for name in files:
            assert any((PROJECT / package / head / name).exists() for head in [*heads, "."]), f"{package}: {name}"


def test_every_folder_and_file_of_a_package_is_named() -> None:
    """But for what has the same meaning in each package, and for the small change of the assistant's own."""
    everywhere = {"__init__.py", "__pycache__", "migrations", "management", "apps.py", "errors.py"}
    everywhere |= {
        f"{name}{end}" for name in ("models", "selectors", "services", "tasks", "admin") for end in ("", ".py")
    }
    named = {(package, head.rstrip("/")) for package, heads, _ in _named() for head in heads}
    named |= {(package, name) for package, _, files in _named() for name in files}
    for package in ("a2a_server", "trust"):
        found = {path.name for path in (PROJECT / package).iterdir()} - everywhere
        assert found - {name for of, name in named if of == package} <= {
            *("wire.py", "receivers.py"),
            *("signals.py", "checks.py", "keys.py", "limits.py", "handlers.py", "outcomes.py", "toolbox.py"),
        }
