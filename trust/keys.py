"""Callers' keys: generation, digest and hint."""

import hashlib
import secrets

PREFIX = "vk_"  # lets secret scanners and our own redaction recognise a key


def key_generate() -> str:
    """Returns a new random key: 256 bits, URL-safe."""
    return PREFIX + secrets.token_urlsafe(32)


def key_digest(key: str) -> str:
    """Returns the digest by which a key is stored and found.

    A plain SHA-256 is enough, because all our keys are random and long: no dictionary helps to guess one.
    """
    return hashlib.sha256(key.encode("utf-8", "surrogateescape")).hexdigest()


def key_hint(key: str) -> str:
    """Returns the last four characters of a key of 12 characters or more, else ""."""
    return key[-4:] if len(key) >= 12 else ""
