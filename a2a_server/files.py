"""Files that messages bring: kept with the task when it is made, put into the workspace's inbox when it is run."""

import base64
import binascii
import io
import logging
import re
import uuid
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote_to_bytes

from django.conf import settings
from django.db import transaction

from a2a_server.errors import InvalidParams
from a2a_server.models import InboundFile
from volcanic import outbound
from volcanic.a2a_json import free_file_name, safe_file_name
from volcanic.aio.loop import run_on_loop
from volcanic.media_types import HEAD_BYTES, sniff
from volcanic.runtime.base import TurnFailedError
from volcanic.runtime.tools import ToolError
from volcanic.toolbox.paths import WorkspaceFiles
from volcanic.toolbox.rules import INBOX, Rules

logger = logging.getLogger(__name__)

DOWNLOAD_SECONDS = 120.0


@dataclass(frozen=True, kw_only=True)
class IncomingFile:
    """A file part of a message, with its bytes in `content` or the address to fetch them from in `url`."""

    position: int
    filename: str
    declared_type: str
    content: bytes | None = None
    url: str = ""

    @property
    def label(self) -> str:
        """Returns the file's name for error messages to its sender: the file name, or the part's position."""
        return repr(self.filename) if self.filename else f"in parts[{self.position}]"


def incoming_file(*, position: int, filename: str, declared_type: str, content: bytes) -> IncomingFile:
    """Returns a file given by its bytes. Raises InvalidParams for a file over MAX_FILE_BYTES."""
    file = IncomingFile(position=position, filename=filename[:255], declared_type=declared_type[:255], content=content)
    if len(content) > settings.MAX_FILE_BYTES:
        raise InvalidParams(f"The file {file.label} is over {settings.MAX_FILE_BYTES} bytes.")
    return file


def incoming_url(*, position: int, filename: str, declared_type: str, url: str) -> IncomingFile:
    """Returns a file given by its URL; a `data:` URL is decoded at once. Raises InvalidParams for a bad URL."""
    if url[:5].lower() == "data:":
        media_type, content = _decode_data_url(position, url)
        return incoming_file(
            position=position, filename=filename, declared_type=declared_type or media_type, content=content
        )
    if not re.match(r"https?://[^/]", url, re.IGNORECASE) or len(url) > 2048:
        raise InvalidParams(f"parts[{position}].url is no https or data URL of at most 2048 characters.")
    return IncomingFile(position=position, filename=filename[:255], declared_type=declared_type[:255], url=url)


def _decode_data_url(position: int, url: str) -> tuple[str, bytes]:
    head, comma, body = url[5:].partition(",")
    try:
        if not comma:
            raise ValueError("no comma")
        media_type, _, encoding = head.rpartition(";") if head.endswith(";base64") else (head, "", "")
        raw = unquote_to_bytes(body)
        return media_type.partition(";")[0], base64.b64decode(raw, validate=True) if encoding else raw
    except (ValueError, binascii.Error):
        raise InvalidParams(f"parts[{position}].url is a broken data URL.") from None


def files_keep(*, task_id: uuid.UUID, files: Sequence[IncomingFile]) -> None:
    """Stores the files of a message in the database until the task's run, in the transaction that makes the task.

    Files of a later message of the same task get the positions after the earlier files.
    """
    start = InboundFile.objects.filter(task_id=task_id).count()
    InboundFile.objects.bulk_create(
        InboundFile(
            task_id=task_id,
            position=start + offset,
            filename=file.filename,
            declared_type=file.declared_type,
            content=file.content,
            url=file.url,
        )
        for offset, file in enumerate(files)
    )


def file_line(filename: str, declared_type: str, url: str = "") -> str:
    """Returns the line that shows a file to the owner or the assistant before the file is opened.

    The line holds the name and type that the caller gave, and the address of a file that has to be fetched.
    """
    line = f"{filename or 'a file without a name'} ({declared_type or 'type not given'})"
    return f"{line}, to be fetched from {url}" if url.startswith(("http:", "https:")) else line


@dataclass(frozen=True)
class StoredFile:
    """A file in the inbox: its path in the workspace, its detected media type, and its size in bytes."""

    path: str
    media_type: str
    size: int


def files_store(*, task_id: uuid.UUID, workspace: Path, caller: str) -> list[StoredFile]:
    """Writes the files that came for this run into the caller's inbox and returns them. Runs in a worker's thread.

    All files are written, or no file. If one can't be fetched or written, the files that this call wrote are removed,
    and TurnFailedError names the file and the reason. A worker that died in the middle has left files of this task
    only, and the next run writes them again. The files are written under the rules of the caller's own turns, since
    such a turn may have put a link in the way.
    """
    waiting = list(InboundFile.objects.filter(task_id=task_id, path="").order_by("position"))
    stored_before = InboundFile.objects.filter(task_id=task_id).exclude(path="")
    taken = {path.rpartition("/")[2].lower() for path in stored_before.values_list("path", flat=True)}
    (workspace / INBOX).mkdir(mode=0o700, parents=True, exist_ok=True)  # the rules let no caller make it
    inbox = WorkspaceFiles(workspace, Rules(caller))
    stored: dict[int, StoredFile] = {}
    written: list[str] = []
    try:
        for file in waiting:
            name = free_file_name(safe_file_name(file.filename, file.url), taken)
            content = _fetch(file) if file.url else bytes(file.content or b"")
            written.append(f"{INBOX}/{caller}/{task_id}/{name}")
            path = inbox.write(written[-1], content)
            media_type = sniff(content[:HEAD_BYTES], file.declared_type, name)
            stored[file.pk] = StoredFile(path=path, media_type=media_type, size=len(content))
        with transaction.atomic():
            for key, found in stored.items():
                InboundFile.objects.filter(pk=key).update(
                    path=found.path, media_type=found.media_type, size=found.size, content=None
                )
    except BaseException as error:
        for path in written:
            with suppress(ToolError, OSError):
                inbox.remove(path)
        if isinstance(error, ToolError | OSError):
            logger.warning("files of task %s could not be stored: %s", task_id, error)
            raise TurnFailedError("The files could not be put into the inbox.") from error
        raise
    return list(stored.values())


def _fetch(file: InboundFile) -> bytes:
    label = repr(file.filename) if file.filename else f"number {file.position + 1}"
    into = io.BytesIO()
    work = outbound.download(file.url, limit=settings.MAX_FILE_BYTES, timeout=DOWNLOAD_SECONDS, into=into)
    try:
        run_on_loop(work)
    except outbound.OutboundError as error:
        raise TurnFailedError(f"The file {label} could not be fetched: {error}.") from error
    return into.getvalue()
