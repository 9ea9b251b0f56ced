"""Encrypted text in a database column: for other people's secrets, which have to be sent again as they are."""

import base64
import hashlib
from typing import TYPE_CHECKING, Any, NoReturn

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings
from django.core.exceptions import FieldError, ImproperlyConfigured
from django.db import models

if TYPE_CHECKING:
    _TextField = models.TextField[str | None, str | None]
else:
    _TextField = models.TextField


def _cipher() -> MultiFernet:
    keys = [base64.urlsafe_b64encode(hashlib.sha256(key.encode()).digest()) for key in settings.FIELD_KEYS]
    return MultiFernet([Fernet(key) for key in keys])


class EncryptedTextField(_TextField):
    """Text that is encrypted at rest with the first of FIELD_KEYS and read with any of them.

    Saving a row again encrypts it with the first key: that is how a key is rotated. A value that no key reads raises
    ImproperlyConfigured; ciphertext is never handed out. There are no lookups: equal texts encrypt differently.
    """

    def get_prep_value(self, value: str | None) -> str | None:
        """Encrypts on the way into the database."""
        return None if value is None else _cipher().encrypt(str(value).encode()).decode()

    def from_db_value(self, value: str | None, *_: Any) -> str | None:
        """Decrypts on the way out."""
        if value is None:
            return None
        try:
            return _cipher().decrypt(value.encode()).decode()
        except InvalidToken:
            raise ImproperlyConfigured(
                f"{self.model.__name__}.{self.name}: none of FIELD_KEYS reads a value."
            ) from None

    def get_lookup(self, lookup_name: str) -> Any:
        """Allows `isnull` only."""
        if lookup_name != "isnull":
            self._refuse(lookup_name)
        return super().get_lookup(lookup_name)

    def _refuse(self, lookup_name: str) -> NoReturn:
        raise FieldError(f"{self.name} is encrypted: it can't be looked up by {lookup_name}.")
