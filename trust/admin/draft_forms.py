"""Forms of what owners do to drafts of skills, and of what they say about what was done. Rules are the services'."""

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
    """Which version of the draft was shown: a decision counts for that one only."""

    version = forms.IntegerField(widget=forms.HiddenInput)


class DraftForm(VersionForm):
    """What a draft says, for the owner to word it otherwise. `initial` is what it says now."""

    name = forms.CharField(max_length=100, widget=UnfoldAdminTextInputWidget)
    description = TextField(max_length=TEXTS["description"], widget=UnfoldAdminTextareaWidget({"rows": 3}))
    instructions = TextField(
        max_length=TEXTS["instructions"],
        widget=UnfoldAdminTextareaWidget({"rows": 10}),
        help_text="What the assistant is told when it works on such a request.",
    )
    tools = forms.MultipleChoiceField(
        required=False,
        widget=UnfoldAdminCheckboxSelectMultipleWidget,
        help_text="With nothing chosen it has no tools.",
    )
    examples = LinesField(
        help_text="What it covers, one a line: a request says the same as one of them, but for a day or a time of day "
        "where three of them have different ones. Any other is put before you."
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["tools"].choices = tool_choices()  # type: ignore[attr-defined]

    def clean_examples(self) -> list[str]:
        """Returns the examples; a skill takes no more of them, and none that is longer."""
        examples = as_before(self.cleaned_data["examples"], self.initial.get("examples"))
        most, longest = LISTS["examples"]
        if len(examples) > most or any(len(example) > longest for example in examples):
            raise forms.ValidationError(f"At most {most} entries of {longest} characters each.")
        return examples


class WordsForm(forms.Form):
    """What the owner says about something, if they do."""

    text = TextField(
        required=False,
        max_length=MAX_WORDS,
        widget=UnfoldAdminTextareaWidget({"rows": 3, "class": "volcanic-words", "autocomplete": "off"}),
        label="Your words",
    )


class RejectForm(WordsForm, VersionForm):
    """Why a draft is rejected."""
