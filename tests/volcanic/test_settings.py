"""The settings: the table in the documentation, and what a wrong environment says."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from volcanic.settings.env import BASE_DIR

PRODUCTION = {
    "VOLCANIC_ENV": "production",
    "SECRET_KEY": "x" * 60,
    "FIELD_KEYS": "y" * 40,
    "PUBLIC_URL": "https://assistant.example.com",
    "ALLOWED_HOSTS": "assistant.example.com",
    "DATABASE_URL": "postgresql://user:pass@db.example.com/volcanic",
    "REDIS_URL": "redis://redis.example.com/0",
}


def _python(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    keep = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    return subprocess.run(
        [sys.executable, "-c", code], env=keep | environment, cwd=BASE_DIR, capture_output=True, text=True
    )


def _settings(**environment: str) -> subprocess.CompletedProcess[str]:
    """Reads the settings in a new process, and prints each with its value."""
    return _python(
        "import volcanic.settings\n"
        "from volcanic.settings.env import env\n"
        "for name, value in env.dump().items(): print(f'{name}={value}')",
        **environment,
    )


def _table() -> dict[str, tuple[str, str]]:
    """The rows of the documentation's table: name, default, production."""
    rows = re.findall(r"^\| `(\w+)` \| (.*?) \| (.*?) \|", (BASE_DIR / "docs/settings.md").read_text(), re.MULTILINE)
    return {name: (default, production) for name, default, production in rows}


# Read by the embedded services themselves, which know no Django.
OUTSIDE = {"EMBEDDED_USER"}


def test_the_table_and_the_code_agree(tmp_path: Path) -> None:
    """Every setting has a row, every row a setting, and defaults are what the table says."""
    printed = _settings(VOLCANIC_VAR=str(tmp_path)).stdout
    read = dict(line.split("=", 1) for line in printed.splitlines())
    table = _table()
    assert set(table) - OUTSIDE == set(read)
    for name, (default, _) in table.items():
        if name not in OUTSIDE and name != "VOLCANIC_VAR" and (literal := re.fullmatch("`(.*)`", default)):
            assert read[name] in (literal[1], f"['{literal[1]}']"), name


def test_production_defaults(tmp_path: Path) -> None:
    read = dict(line.split("=", 1) for line in _settings(**PRODUCTION, VOLCANIC_VAR=str(tmp_path)).stdout.splitlines())
    for name, (_, production) in _table().items():
        if literal := re.fullmatch("`(.*)`", production):
            assert read[name] == literal[1], name
    assert not (tmp_path / "secrets").exists()


@pytest.mark.parametrize("missing", [name for name in PRODUCTION if name != "VOLCANIC_ENV"])
def test_production_names_what_is_missing(missing: str, tmp_path: Path) -> None:
    environment = {name: value for name, value in PRODUCTION.items() if name != missing}
    result = _settings(**environment, VOLCANIC_VAR=str(tmp_path))
    assert result.returncode != 0
    assert missing in result.stderr


def test_all_wrong_values_are_named_at_once(tmp_path: Path) -> None:
    result = _settings(
        VOLCANIC_VAR=str(tmp_path), MAX_HOPS="three", LEASE_SECONDS="0", LOG_LEVEL="LOUD", A2A_ENABLED="perhaps"
    )
    assert result.returncode != 0
    for name in ("MAX_HOPS", "LEASE_SECONDS", "LOG_LEVEL", "A2A_ENABLED"):
        assert name in result.stderr


def test_a_command_says_what_is_wrong_in_a_line(tmp_path: Path) -> None:
    keep = {"PATH": os.environ["PATH"], "VOLCANIC_VAR": str(tmp_path), "MAX_HOPS": "three"}
    command = [sys.executable, "manage.py", "migrate"]
    result = subprocess.run(command, env=keep, cwd=BASE_DIR, capture_output=True, text=True)
    assert result.returncode == 1
    (line,) = result.stderr.splitlines()
    assert line.startswith("error: ")
    assert "MAX_HOPS" in line
    shown = subprocess.run([*command, "--traceback"], env=keep, cwd=BASE_DIR, capture_output=True, text=True)
    assert "Traceback" in shown.stderr


def test_development_secrets_are_made_once_and_private(tmp_path: Path) -> None:
    first, second = (_settings(VOLCANIC_VAR=str(tmp_path)).stdout for _ in range(2))
    assert first == second
    secrets = sorted((tmp_path / "secrets").iterdir())
    assert [path.name for path in secrets] == ["field_key", "secret_key"]
    assert {path.stat().st_mode & 0o777 for path in secrets} == {0o600}


def test_a_secret_can_come_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("z" * 60)
    environment = {name: value for name, value in PRODUCTION.items() if name != "SECRET_KEY"}
    result = _settings(**environment, SECRET_KEY_FILE=str(tmp_path / "key"), VOLCANIC_VAR=str(tmp_path))
    assert f"SECRET_KEY={'z' * 60}" in result.stdout


def test_what_costs_seconds_is_not_imported_to_start_django(tmp_path: Path) -> None:
    """`manage.py check` must answer at once: neither the model library nor the SDK's server is loaded for it."""
    result = _python(
        "import sys, django\n"
        "django.setup()\n"
        "from django.core.management import call_command\n"
        "call_command('check')\n"
        "print([name for name in ('pydantic_ai', 'a2a', 'openai', 'apprise') if name in sys.modules])",
        DJANGO_SETTINGS_MODULE="volcanic.settings",
        VOLCANIC_VAR=str(tmp_path),
    )
    assert result.stdout.splitlines()[-1:] == ["[]"], result.stderr
