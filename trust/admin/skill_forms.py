"""The form of an owner's skill. It only reads the input; every rule is in trust.services.skills."""

from typing import Any

from django import forms
from django.conf import settings
from django.core.exceptions import ValidationError
from unfold.widgets import (
    UnfoldAdminCheckboxSelectMultipleWidget,
    UnfoldAdminSelectWidget,
    UnfoldAdminTextareaWidget,
    UnfoldBooleanSwitchWidget,
)

from trust.models import Skill
from trust.services import skill_check
from trust.services.skills import WORDS
from volcanic.admin.forms import ShownForm
from volcanic.runtime import tools
from volcanic.text import one_line

# The things that tools read and change, in an owner's words. A word that is not in this table stands for itself.
_TOUCHED = {
    "workspace": "the workspace's files",
    "memory": "memories",
    "caller": "what the caller is shown",
    "owner": "what you are shown",
    "processes": "which programs run",
    "network": "other hosts",
    "working": "its notes on the request",
}


def tool_choices() -> list[tuple[str, str]]:
    """Returns every tool with a label that says what it reads and changes."""
    labels = {tools.REQUEST_INPUT: f"{tools.REQUEST_INPUT}: asks the caller something"}
    for tool in tools.get(tools.known()):
        if (tool.reads | tool.changes) & {tools.WORKING, tools.SKILLS}:
            continue  # only the turn that reads a request for the owner has these tools
        touched = [
            f"{verb} {', '.join(_TOUCHED.get(word, word) for word in sorted(words))}"
            for verb, words in (("reads", tool.reads), ("changes", tool.changes))
            if words
        ]
        labels[tool.name] = f"{tool.name}: {'; '.join(touched) or 'touches nothing'}"
    return sorted(labels.items())


def as_before(lines: list[str], before: Any) -> list[str]:
    """Returns the lines. A line that shows an earlier text of several lines is replaced by this text."""
    known = {one_line(str(text)): str(text) for text in before or ()}
    return [known.get(line, line) for line in lines]


class LinesField(forms.CharField):
    """A list of short texts, one on each line. A text of several lines is shown on one line; see `as_before`."""

    widget = UnfoldAdminTextareaWidget

    def prepare_value(self, value: Any) -> Any:
        """Returns the stored list as lines."""
        return "\n".join(one_line(str(item)) for item in value) if isinstance(value, list) else value

    def to_python(self, value: Any) -> Any:
        """Returns the lines as the list that is stored."""
        text = super().to_python(value) or ""
        return [one_line(line) for line in text.splitlines() if line.strip()]

    def has_changed(self, initial: Any, data: Any) -> bool:
        """Tells whether the lists differ."""
        return bool(self.to_python(data) != [one_line(str(item)) for item in initial or ()])


class SkillForm(ShownForm):
    """A skill of a workspace."""

    tags = LinesField(required=False, help_text="One on each line.")
    examples = LinesField(required=False, help_text="Requests for this skill, one on each line.")
    aliases = LinesField(required=False, help_text="Other ids by which callers may ask for it, one on each line.")
    input_modes = LinesField(
        required=False, label="Takes", help_text="Media types, one on each line. Empty: the agent card's media types."
    )
    output_modes = LinesField(
        required=False, label="Gives", help_text="Media types, one on each line. Empty: the agent card's media types."
    )
    handler = forms.ChoiceField(
        required=False,
        label="Answered by",
        widget=UnfoldAdminSelectWidget,
        help_text="The assistant, or a function that the operator offers. A function gets the tools, but need not "
        "follow the instructions.",
    )
    tools_of_chat = forms.BooleanField(
        required=False,
        label="The tools of chat",
        widget=UnfoldBooleanSwitchWidget,
        help_text="The skill has all tools of chat. Switch this off to choose tools. With no choice it has no tools.",
    )
    tools = forms.MultipleChoiceField(
        required=False, label="Only these tools", widget=UnfoldAdminCheckboxSelectMultipleWidget
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if "workspace" in self.fields:
            self.fields["workspace"].required = True  # without one it would be built in
        if "slug" in self.fields:
            self.fields["slug"].error_messages["invalid"] = WORDS
        for name, text in (
            ("instructions", "The assistant gets these instructions when it works on such a request."),
            ("advertised", "Anybody can read id, name, description and examples on the public agent card."),
        ):
            if name in self.fields:
                self.fields[name].help_text = text
        self.fields["tools"].choices = tool_choices()  # type: ignore[attr-defined]
        self.fields["tools_of_chat"].initial = self.instance.tools is None
        offered = handler_choices(self.instance)
        if offered:
            self.fields["handler"].choices = [("", "The assistant"), *offered]  # type: ignore[attr-defined]
        else:
            del self.fields["handler"]

    def clean_examples(self) -> list[str]:
        """Returns the examples. Learned examples keep their line breaks, since requests are compared with them."""
        return as_before(self.cleaned_data["examples"], self.initial.get("examples"))

    def clean(self) -> dict[str, Any]:
        """Returns the data. The tools are either the tools of chat or the chosen tools."""
        data = super().clean()
        if data.get("tools_of_chat"):
            if data.get("tools"):
                self.add_error("tools", "Choose either the tools of chat or single tools, not both.")
            data["tools"] = None
        return data

    def _post_clean(self) -> None:
        """Checks the skill by the rules of the services, and shows each error at its field."""
        super()._post_clean()  # type: ignore[misc]
        if self.errors:
            return
        if "handler" in self.fields:
            self.instance.kind = Skill.Kind.HANDLER if self.instance.handler else Skill.Kind.ASSISTANT
        try:
            skill_check(self.instance)
        except ValidationError as error:
            for field, messages in error.message_dict.items():
                self.add_error(field if field in self.fields else None, messages)


def handler_choices(skill: Skill | None) -> list[tuple[str, str]]:
    """Returns the handlers that a skill may have, and its own handler even if this one is not offered any more."""
    offered = [(path, path) for path in settings.SKILL_HANDLERS]
    if skill is not None and skill.handler and skill.handler not in settings.SKILL_HANDLERS:
        offered.append((skill.handler, f"{skill.handler} (not offered any more)"))
    return offered
