"""Forms of what owners do to callers' levels and grants, with their reasons for it."""

from collections.abc import Sequence
from typing import Any, Literal

from django import forms
from unfold.widgets import UnfoldAdminSelectWidget, UnfoldAdminTextInputWidget, UnfoldBooleanSwitchWidget

from trust.models import Level

OWN_LEVEL = "as the caller's"


class LevelForm(forms.Form):
    """A caller's level for one skill."""

    level = forms.ChoiceField(
        choices=[("", OWN_LEVEL), *Level.choices],
        required=False,
        widget=UnfoldAdminSelectWidget({"aria-label": "Level for this skill"}),
        label="Level for this skill",
    )

    @property
    def chosen_level(self) -> Level | Literal[""] | None:
        """What was chosen, "" for the caller's own; None where nothing was asked."""
        chosen: str = self.cleaned_data["level"]
        if "level" not in self.data:
            return None
        return Level(chosen) if chosen else ""


class ReasonForm(forms.Form):
    """Why something is done."""

    reason = forms.CharField(
        required=False,
        max_length=500,
        widget=UnfoldAdminTextInputWidget({"aria-label": "Reason", "placeholder": "Reason"}),
        help_text="For the history. May stay empty.",
    )


class _SkillForm(ReasonForm):
    """One of the skills given, by id."""

    slug = forms.ChoiceField(widget=UnfoldAdminSelectWidget, label="Skill")

    def __init__(self, data: Any = None, *, skills: Sequence[tuple[str, str]]) -> None:
        super().__init__(data)
        field = self.fields["slug"]
        assert isinstance(field, forms.ChoiceField)
        field.choices = skills


class GrantSkillForm(LevelForm, _SkillForm):
    """What to grant, and at which level."""

    field_order = ("slug", "level", "reason")


class RevokeSkillForm(_SkillForm):
    """What to take back, and whether what runs on it ends."""

    stop = forms.BooleanField(
        required=False, widget=UnfoldBooleanSwitchWidget, label="Stop", help_text="What runs on it ends, too."
    )
    field_order = ("slug", "stop", "reason")
