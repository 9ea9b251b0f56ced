"""Forms of the owner's decisions on reviews. trust.decisions checks the decision and its text."""

from django import forms
from unfold.widgets import UnfoldAdminTextareaWidget

from trust.admin.text_fields import TextField
from trust.decisions import DECISIONS


def _words(label: str, help_text: str = "") -> TextField:
    # Without autocompletion, so that a restored page does not show text that was typed for another request.
    widget = UnfoldAdminTextareaWidget({"rows": 3, "class": "volcanic-words", "autocomplete": "off"})
    return TextField(required=False, strip=False, widget=widget, label=label, help_text=help_text)


class DecisionForm(forms.Form):
    """A decision, the owner's words for it, and the digest of the content that was shown."""

    text = _words("Your text")
    decision = forms.ChoiceField(choices=[(one.value, one.label) for one in DECISIONS], widget=forms.HiddenInput)
    digest = forms.CharField(required=False, widget=forms.HiddenInput)


class DeclineForm(forms.Form):
    """The reason for declining several requests, which their callers are told."""

    text = _words("Reason", "Each caller is told the reason. May stay empty.")
