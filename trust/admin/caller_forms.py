"""Forms of the screens of callers and grants. They only check the input; trust.services has the rules."""

from typing import TYPE_CHECKING, Any, ClassVar

from django import forms
from django.conf import settings
from django.db.models import QuerySet
from unfold.widgets import (
    UnfoldAdminCheckboxSelectMultipleWidget,
    UnfoldAdminSelectWidget,
    UnfoldAdminTextInputWidget,
)

from trust.limits import DEFAULTS
from trust.models import Caller, Grant, Skill
from volcanic.admin.forms import ShownForm

if TYPE_CHECKING:
    CallerModelForm = forms.ModelForm[Caller]
    GrantModelForm = forms.ModelForm[Grant]
else:
    CallerModelForm = GrantModelForm = forms.ModelForm


class CallerForm(ShownForm):
    """An existing caller, with the owner's reason for changes."""

    reason = forms.CharField(
        required=False,
        max_length=500,
        widget=UnfoldAdminTextInputWidget,
        help_text="Your reason for a new level or access. Kept in the history. May stay empty.",
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name, setting in DEFAULTS.items():
            if name in self.fields:
                self.fields[name].help_text = f"Empty: {setting}, {getattr(settings, setting):,}. 0: no limit."


class CallerAddForm(CallerModelForm):
    """A new caller, with the skills that are granted to it at once."""

    skill_choices: ClassVar[QuerySet[Skill]] = Skill.objects.none()

    skills = forms.ModelMultipleChoiceField(
        queryset=Skill.objects.none(),
        required=False,
        widget=UnfoldAdminCheckboxSelectMultipleWidget,
        help_text="Granted at once. More can be granted at any time.",
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        field = self.fields["skills"]
        assert isinstance(field, forms.ModelMultipleChoiceField)
        field.queryset = self.skill_choices
        field.label_from_instance = _with_workspace  # type: ignore[method-assign,assignment]
        workspace = self.fields["workspace"]
        assert isinstance(workspace, forms.ModelChoiceField)
        only = list(workspace.queryset[:2]) if workspace.queryset is not None else []
        if len(only) == 1:
            workspace.initial = only[0].pk

    def clean(self) -> dict[str, Any]:
        """Returns the data. A skill must belong to the caller's workspace or be built in."""
        data = super().clean() or self.cleaned_data
        workspace = data.get("workspace")
        wrong = [skill.slug for skill in data.get("skills", ()) if not _fits(skill, workspace)]
        if workspace is not None and wrong:
            self.add_error("skills", f"The workspace {workspace} does not have these skills: {', '.join(wrong)}.")
        return data


class GrantForm(GrantModelForm):
    """A grant: a skill for a caller of the same workspace."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if "level" in self.fields:
            self.fields["level"].help_text = "The caller's level for this skill. Empty: the caller's own level."

    def clean(self) -> dict[str, Any]:
        """Returns the data. A skill must belong to the caller's workspace or be built in."""
        data = super().clean() or self.cleaned_data
        caller, skill = data.get("caller"), data.get("skill")
        if caller is not None and skill is not None and not (skill.enabled and _fits(skill, caller.workspace)):
            self.add_error("skill", f"The workspace {caller.workspace} does not have this skill.")
        return data


def _fits(skill: Skill, workspace: Any) -> bool:
    return skill.workspace_id is None or (workspace is not None and skill.workspace_id == workspace.pk)


def _with_workspace(skill: Skill) -> str:
    return f"{skill.name} ({skill.slug})" if skill.workspace is None else f"{skill.name} ({skill.workspace.slug})"


class RotateForm(forms.Form):
    """The time that old keys still work after a new key is made."""

    GRACES = (
        ("0", "at once"),
        ("3600", "in 1 hour"),
        ("86400", "in 1 day"),
        ("604800", "in 7 days"),
    )
    grace = forms.ChoiceField(choices=GRACES, widget=UnfoldAdminSelectWidget, label="Old keys end")

    @property
    def grace_label(self) -> str:
        """The chosen time in words, such as "1 hour"."""
        return dict(self.GRACES)[self.cleaned_data["grace"]].removeprefix("in ")
