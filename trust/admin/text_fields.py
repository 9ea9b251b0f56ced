"""The field of texts that have several lines."""

from typing import Any

from django import forms
from unfold.widgets import UnfoldAdminTextareaWidget


class TextField(forms.CharField):
    """Text of several lines, with line ends as everywhere else: browsers send carriage returns along."""

    widget = UnfoldAdminTextareaWidget

    def to_python(self, value: Any) -> Any:
        """Returns the text."""
        return str(super().to_python(value) or "").replace("\r\n", "\n")
