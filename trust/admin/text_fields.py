"""A form field for texts of several lines."""

from typing import Any

from django import forms
from unfold.widgets import UnfoldAdminTextareaWidget


class TextField(forms.CharField):
    """A text of several lines. Line ends become a single line feed, since browsers send carriage returns, too."""

    widget = UnfoldAdminTextareaWidget

    def to_python(self, value: Any) -> Any:
        """Returns the text without carriage returns before line feeds."""
        return str(super().to_python(value) or "").replace("\r\n", "\n")
