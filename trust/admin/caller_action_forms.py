"""Forms for changes of callers' levels and grants, with the owner's reason."""

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
        """The chosen level, "" for the caller's own level, or None if the form did not ask for a level."""
        chosen: str = self.cleaned_data["level"]
        if "level" not in self.data:
            return None
        return Level(chosen) if chosen else ""


class ReasonForm(forms.Form):
    """The owner's reason for a change."""

    reason = forms.CharField(
        required=False,
        max_length=500,
        widget=UnfoldAdminTextInputWidget({"aria-label": "Reason", "placeholder": "Reason"}),
        help_text="Kept in the history. May stay empty.",
    )


class _SkillForm(ReasonForm):
    """A choice of one skill of `skills`, by its id."""

    slug = forms.ChoiceField(widget=UnfoldAdminSelectWidget, label="Skill")

    def __init__(self, data: Any = None, *, skills: Sequence[tuple[str, str]]) -> None:
        super().__init__(data)
        field = self.fields["slug"]
        assert isinstance(field, forms.ChoiceField)
        field.choices = skills


class GrantSkillForm(LevelForm, _SkillForm):
    """The skill to grant, and the caller's level for it."""

    field_order = ("slug", "level", "reason")


class RevokeSkillForm(_SkillForm):
    """The skill to revoke, and whether runs on its grant end."""

    stop = forms.BooleanField(
        required=False, widget=UnfoldBooleanSwitchWidget, label="Stop", help_text="Also ends runs on this grant."
    )
    field_order = ("slug", "stop", "reason")
