"""Base form of admin rows: saving an outdated page never overwrites changes made elsewhere since."""

from typing import TYPE_CHECKING, Any

from django import forms
from django.core.exceptions import ValidationError
from django.db.models import Manager

if TYPE_CHECKING:
    AnyModelForm = forms.ModelForm[Any]
else:
    AnyModelForm = forms.ModelForm

CHANGED_MEANWHILE = "This field was changed elsewhere in the meantime. Reload the page to see its current value."


class ShownForm(AnyModelForm):
    """A form of a row that returns the values it showed in hidden fields.

    A field counts as changed if its value differs from the value shown. A field changed only elsewhere keeps its
    current value. A field changed both here and elsewhere makes the form invalid. A request without the hidden fields,
    which comes from no page, is compared with the row.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        brought = any(self.add_initial_prefix(name) in self.data for name in self.fields)
        for field in self.fields.values():
            # A hidden field must not disclose a value that the form only shows masked, such as a password hash.
            known = self.instance.pk is not None and not field.disabled
            field.show_hidden_initial = known and (brought or not self.is_bound)

    def clean(self) -> dict[str, Any]:
        """Returns the cleaned data, with the current values of fields that were changed only elsewhere."""
        data: dict[str, Any] = super().clean() or self.cleaned_data
        for name in [name for name in data if self._changed_elsewhere(name)]:
            if name in self.changed_data:
                self.add_error(name, CHANGED_MEANWHILE)
            else:
                now = getattr(self.instance, name, self[name].initial)
                data[name] = now.all() if isinstance(now, Manager) else now
        return data

    def _changed_elsewhere(self, name: str) -> bool:
        field = self.fields[name]
        if not field.show_hidden_initial:
            return False
        shown = field.hidden_widget().value_from_datadict(self.data, self.files, self.add_initial_prefix(name))
        try:
            return bool(_read(field, shown) != _read(field, field.prepare_value(self[name].initial)))
        except ValidationError:  # the hidden field came back with an invalid value
            return True


def _read(field: forms.Field, value: Any) -> Any:
    """Returns a field's Python value; a text as its lines, since browsers send other line ends than they received."""
    read = field.to_python(value)
    return read.splitlines() if isinstance(read, str) else read
