"""Forms of the owner's decisions. What may be decided, and with which text, is the services' to say."""

from typing import Any

from django import forms
from unfold.widgets import UnfoldAdminTextareaWidget

from trust.models import Observation


class TextForm(forms.Form):
    """The owner's words."""

    text = forms.CharField(
        required=False,
        strip=False,
        widget=UnfoldAdminTextareaWidget({"rows": 3, "class": "volcanic-words"}),
        label="Your text",
    )

    def clean_text(self) -> str:
        """Returns the text with line ends as everywhere else: browsers send carriage returns along."""
        text: str = self.cleaned_data["text"]
        return text.replace("\r\n", "\n")


class DecisionForm(TextForm):
    """A decision, the words that go with it, and the digest of what was shown."""

    decision = forms.ChoiceField(choices=Observation.Decision.choices, widget=forms.HiddenInput)
    digest = forms.CharField(required=False, widget=forms.HiddenInput)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # What was typed into another request must not come up in this one when the browser restores the page.
        self.fields["text"].widget.attrs["autocomplete"] = "off"


class DeclineForm(TextForm):
    """The reason that several callers are told."""

    text = forms.CharField(
        required=False,
        strip=False,
        widget=UnfoldAdminTextareaWidget({"rows": 3, "class": "volcanic-words"}),
        label="Reason",
        help_text="Each caller is told it. May stay empty.",
    )
