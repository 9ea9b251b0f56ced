"""Media type detection: the first bytes of a file decide, and a declared type can only refine the result."""

import codecs
import json
import mimetypes
import re

# `sniff` reads at most this many bytes from the start of a file.
HEAD_BYTES = 4096
UNKNOWN = "application/octet-stream"

# Magic numbers: offset, fixed bytes, media type. The first match counts.
_MAGIC: tuple[tuple[int, bytes, str], ...] = (
    (0, b"\x89PNG\r\n\x1a\n", "image/png"),
    (0, b"\xff\xd8\xff", "image/jpeg"),
    (0, b"GIF87a", "image/gif"),
    (0, b"GIF89a", "image/gif"),
    (0, b"BM", "image/bmp"),
    (0, b"II*\x00", "image/tiff"),
    (0, b"MM\x00*", "image/tiff"),
    (8, b"WEBP", "image/webp"),
    (8, b"WAVE", "audio/wav"),
    (8, b"AVI ", "video/x-msvideo"),
    (4, b"ftypavif", "image/avif"),
    (4, b"ftypheic", "image/heic"),
    (4, b"ftypM4A", "audio/mp4"),
    (4, b"ftypqt", "video/quicktime"),
    (4, b"ftyp", "video/mp4"),
    (0, b"\x1aE\xdf\xa3", "video/webm"),
    (0, b"OggS", "audio/ogg"),
    (0, b"fLaC", "audio/flac"),
    (0, b"ID3", "audio/mpeg"),
    (0, b"\xff\xfb", "audio/mpeg"),
    (0, b"%PDF-", "application/pdf"),
    (0, b"{\\rtf", "application/rtf"),
    (0, b"PK\x03\x04", "application/zip"),
    (0, b"PK\x05\x06", "application/zip"),
    (0, b"\x1f\x8b", "application/gzip"),
    (0, b"BZh", "application/x-bzip2"),
    (0, b"\xfd7zXZ\x00", "application/x-xz"),
    (0, b"7z\xbc\xaf'\x1c", "application/x-7z-compressed"),
    (0, b"(\xb5/\xfd", "application/zstd"),
    (0, b"Rar!\x1a\x07", "application/vnd.rar"),
    (257, b"ustar", "application/x-tar"),
    (0, b"SQLite format 3\x00", "application/vnd.sqlite3"),
    (0, b"\x7fELF", "application/x-executable"),
    (0, b"MZ", "application/vnd.microsoft.portable-executable"),
    (0, b"\xca\xfe\xba\xbe", "application/java-vm"),
    (0, b"\x00asm", "application/wasm"),
    (0, b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "application/x-ole-storage"),
    (0, b"wOF2", "font/woff2"),
)
# Container formats, and prefixes of the more exact types that a declared type may choose.
_MORE_EXACT: dict[str, tuple[str, ...]] = {
    "application/zip": (
        "application/vnd.openxmlformats-",
        "application/vnd.oasis.opendocument.",
        "application/epub+zip",
        "application/java-archive",
    ),
    "application/x-ole-storage": ("application/msword", "application/vnd.ms-"),
    "video/webm": ("audio/webm", "video/x-matroska"),
    "video/mp4": ("audio/mp4", "video/quicktime"),
    "audio/ogg": ("video/ogg", "audio/opus"),
}
_TEXT_APPLICATIONS = frozenset(
    {"json", "xml", "javascript", "x-javascript", "yaml", "x-yaml", "toml", "sql", "csv", "x-sh", "x-ndjson", "graphql"}
)
_HTML = re.compile(rb"<(?:!doctype\s+html|html|head|body|script|iframe)\b", re.I)
_XML = re.compile(rb"<\?xml\s", re.I)
_SVG = re.compile(rb"<svg[\s>]", re.I)
_TYPE = re.compile(r"[a-z0-9!#$&^_.+-]{1,64}/[a-z0-9!#$&^_.+-]{1,64}")

# A table of this module's own, since the system's table differs between machines.
_BY_NAME = mimetypes.MimeTypes()
for _ending, _type in {
    ".md": "text/markdown",
    ".yaml": "application/yaml",
    ".yml": "application/yaml",
    ".toml": "application/toml",
    ".csv": "text/csv",
    ".docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    ".xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    ".pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    ".odt": "application/vnd.oasis.opendocument.text",
    ".ods": "application/vnd.oasis.opendocument.spreadsheet",
    ".epub": "application/epub+zip",
}.items():
    _BY_NAME.add_type(_type, _ending)


def sniff(head: bytes, declared: str = "", filename: str = "") -> str:
    """Returns the media type of a file from its first bytes.

    The named type (`declared`, else the type for the ending of `filename`) counts only where the bytes allow that type.
    Text keeps a named text type. A zip archive can be a named document type. Bytes without a known magic number keep
    the named type, unless files of that type always begin with a known magic number.
    """
    head = head[:HEAD_BYTES]
    named = [kind for kind in (_bare(declared), _bare(_BY_NAME.guess_type(filename)[0] or "")) if kind]
    if not head:
        return next(iter(named), UNKNOWN)
    if found := _by_bytes(head):
        exact = _MORE_EXACT.get(found, ())
        return next((kind for kind in named if exact and kind.startswith(exact)), found)
    if _is_text(head):
        textual = [kind for kind in named if is_textual(kind)]
        # Text without a named text type is JSON only if the whole text parses.
        return next(iter(textual), "application/json" if _is_json(head) else "text/plain")
    return next((kind for kind in named if not is_textual(kind) and kind not in _KNOWN_BY_BYTES), UNKNOWN)


def is_textual(kind: str) -> bool:
    """Returns whether files of the media type `kind` are text."""
    main, _, sub = kind.partition("/")
    return main == "text" or sub.endswith(("+json", "+xml")) or (main == "application" and sub in _TEXT_APPLICATIONS)


def _bare(kind: str) -> str:
    """Returns a media type without parameters, in lower case; "" for an invalid type and for UNKNOWN."""
    kind = kind.partition(";")[0].strip().lower()
    return kind if _TYPE.fullmatch(kind) and kind != UNKNOWN else ""


def _by_bytes(head: bytes) -> str:
    for offset, magic, kind in _MAGIC:
        # An ordinary text can begin with the two letters of a short magic number, so text does not match these.
        if head.startswith(magic, offset) and (len(magic) > 2 or not _is_text(head)):
            return kind
    if _HTML.match(start := _without_comments(head)):
        return "text/html"
    if _SVG.match(start) or (_XML.match(start) and _SVG.search(start)):
        return "image/svg+xml"
    return ""


def _without_comments(head: bytes) -> bytes:
    """Returns markup without the byte order mark, white space and comments in front of its first tag."""
    head = head.removeprefix(codecs.BOM_UTF8).lstrip()
    while head.startswith(b"<!--"):
        head = head.partition(b"-->")[2].lstrip()
    return head


def _is_text(head: bytes) -> bool:
    if b"\0" in head:
        return False
    try:
        # The end of the head may cut a character in two, which is no error.
        codecs.getincrementaldecoder("utf-8-sig")().decode(head, final=len(head) < HEAD_BYTES)
    except UnicodeDecodeError:
        return False
    return True


def _is_json(head: bytes) -> bool:
    if len(head) == HEAD_BYTES or not head.lstrip().startswith((b"{", b"[")):
        return False
    try:
        json.loads(head)
    except (ValueError, RecursionError):
        return False
    return True


_KNOWN_BY_BYTES = frozenset({kind for _, _, kind in _MAGIC} | {"text/html", "image/svg+xml"})
