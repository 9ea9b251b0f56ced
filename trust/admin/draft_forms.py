"""Forms for owners' decisions on drafts and their words on finished requests. The services have the rules."""

from typing import Any

from django import forms
from unfold.widgets import (
    UnfoldAdminCheckboxSelectMultipleWidget,
    UnfoldAdminTextareaWidget,
    UnfoldAdminTextInputWidget,
)

from trust.admin.skill_forms import LinesField, as_before, tool_choices
from trust.admin.text_fields import TextField
from trust.services.skills import LISTS, TEXTS

MAX_WORDS = 2000


class VersionForm(forms.Form):
    """The version of the draft that was shown. A decision counts for this version only."""

    version = forms.IntegerField(widget=forms.HiddenInput)


class DraftForm(VersionForm):
    """The text of a draft, for the owner to edit. `initial` is the current text."""

    name = forms.CharField(max_length=100, widget=UnfoldAdminTextInputWidget)
    description = TextField(max_length=TEXTS["description"], widget=UnfoldAdminTextareaWidget({"rows": 3}))
    instructions = TextField(
        max_length=TEXTS["instructions"],
        widget=UnfoldAdminTextareaWidget({"rows": 10}),
        help_text="The assistant gets these instructions when it works on such a request.",
    )
    tools = forms.MultipleChoiceField(
        required=False,
        widget=UnfoldAdminCheckboxSelectMultipleWidget,
        help_text="If you choose no tools, the assistant only answers.",
    )
    examples = LinesField(
        help_text="Requests that the skill covers, one on each line. A request must say the same as one example. Only "
        "a day or a time may differ, and only if three examples differ there. Other requests still come to you."
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["tools"].choices = tool_choices()  # type: ignore[attr-defined]

    def clean_examples(self) -> list[str]:
        """Returns the examples. Raises ValidationError for more or longer ones than a skill may have."""
        examples = as_before(self.cleaned_data["examples"], self.initial.get("examples"))
        most, longest = LISTS["examples"]
        if len(examples) > most or any(len(example) > longest for example in examples):
            raise forms.ValidationError(f"At most {most} entries of {longest} characters each.")
        return examples


class WordsForm(forms.Form):
    """The owner's words on something. They may stay empty."""

    text = TextField(
        required=False,
        max_length=MAX_WORDS,
        widget=UnfoldAdminTextareaWidget({"rows": 3, "class": "volcanic-words", "autocomplete": "off"}),
        label="Your words",
    )


class RejectForm(WordsForm, VersionForm):
    """The owner's reason for rejecting a draft."""
