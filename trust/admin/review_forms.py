"""Forms of the owner's decisions. What may be decided, and with which text, is the services' to say."""

from django import forms
from unfold.widgets import UnfoldAdminTextareaWidget

from trust.admin.text_fields import TextField
from trust.decisions import DECISIONS


def _words(label: str, help_text: str = "") -> TextField:
    # What was typed into one request must not come up in another when the browser restores the page.
    widget = UnfoldAdminTextareaWidget({"rows": 3, "class": "volcanic-words", "autocomplete": "off"})
    return TextField(required=False, strip=False, widget=widget, label=label, help_text=help_text)


class DecisionForm(forms.Form):
    """A decision, the owner's words that go with it, and the digest of what was shown."""

    text = _words("Your text")
    decision = forms.ChoiceField(choices=[(one.value, one.label) for one in DECISIONS], widget=forms.HiddenInput)
    digest = forms.CharField(required=False, widget=forms.HiddenInput)


class DeclineForm(forms.Form):
    """The reason that several callers are told."""

    text = _words("Reason", "Each caller is told it. May stay empty.")
