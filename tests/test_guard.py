"""The guard that fails a test in which the product's code blocks an event loop."""

from pathlib import Path

import pytest
from blockbuster import BlockingError

from volcanic.aio.loop import run_on_loop
from volcanic.toolbox.paths import WorkspaceFiles
from volcanic.toolbox.rules import Rules


async def _list(folder: Path) -> None:
    list(WorkspaceFiles(folder, Rules(None)).entries("", deep=False))


async def test_a_tests_own_loop(tmp_path: Path, blocked: list[str]) -> None:
    with pytest.raises(BlockingError):
        await _list(tmp_path)
    assert ["volcanic/toolbox/paths.py" in place for place in blocked] == [True]
    blocked.clear()


def test_the_loop_of_this_process(tmp_path: Path, blocked: list[str]) -> None:
    with pytest.raises(BlockingError):
        run_on_loop(_list(tmp_path))
    assert ["volcanic/toolbox/paths.py" in place for place in blocked] == [True]
    blocked.clear()


async def test_a_test_may_read_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("text")
    assert (tmp_path / "file").read_text() == "text"
