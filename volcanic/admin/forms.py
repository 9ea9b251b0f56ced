"""What the forms of rows share: of two pages of one row, the one that is saved last undoes nothing."""

from typing import TYPE_CHECKING, Any

from django import forms
from django.core.exceptions import ValidationError
from django.db.models import Manager

if TYPE_CHECKING:
    AnyModelForm = forms.ModelForm[Any]
else:
    AnyModelForm = forms.ModelForm

CHANGED_MEANWHILE = "This was changed meanwhile. Open the page anew to see what it is now."


class ShownForm(AnyModelForm):
    """A form of a row, which brings back in hidden fields what it showed.

    Changed is what differs from what was shown. Whatever else was changed elsewhere since stays as it is now; where
    both changed the same, the form is refused. What comes without those fields, from no page, is compared with the row.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        brought = any(self.add_initial_prefix(name) in self.data for name in self.fields)
        for field in self.fields.values():
            # What nobody can change here is not shown either: the hash of a password, say.
            known = self.instance.pk is not None and not field.disabled
            field.show_hidden_initial = known and (brought or not self.is_bound)

    def clean(self) -> dict[str, Any]:
        """Keeps what was changed elsewhere."""
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
        except ValidationError:  # something else was brought back
            return True


def _read(field: forms.Field, value: Any) -> Any:
    """Returns what a field makes of a value, whatever ends its lines: browsers send others than they were given."""
    read = field.to_python(value)
    return read.splitlines() if isinstance(read, str) else read
