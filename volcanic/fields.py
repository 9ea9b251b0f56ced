"""Encrypted text field: for other people's secrets, which must be sent again unchanged and so can't be hashed."""

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
    """Text that is encrypted at rest with the first of FIELD_KEYS. Any of FIELD_KEYS can decrypt the text.

    To rotate a key, put a new key first and save every row again. Reading a value that none of the keys decrypts raises
    ImproperlyConfigured, so that ciphertext is never returned. Only the lookup `isnull` works, since equal texts have
    different ciphertexts; other lookups raise FieldError.
    """

    def get_prep_value(self, value: str | None) -> str | None:
        """Returns the encrypted value for the database."""
        return None if value is None else _cipher().encrypt(str(value).encode()).decode()

    def from_db_value(self, value: str | None, *_: Any) -> str | None:
        """Returns the decrypted value. Raises ImproperlyConfigured if none of FIELD_KEYS decrypts the value."""
        if value is None:
            return None
        try:
            return _cipher().decrypt(value.encode()).decode()
        except InvalidToken:
            raise ImproperlyConfigured(
                f"{self.model.__name__}.{self.name}: no key in FIELD_KEYS decrypts a value."
            ) from None

    def get_lookup(self, lookup_name: str) -> Any:
        """Returns the lookup `isnull`. Raises FieldError for any other lookup."""
        if lookup_name != "isnull":
            self._refuse(lookup_name)
        return super().get_lookup(lookup_name)

    def _refuse(self, lookup_name: str) -> NoReturn:
        raise FieldError(f"{self.name} is encrypted: it can't be looked up by {lookup_name}.")
