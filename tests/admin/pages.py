"""Forms of admin pages: reads the values that a browser would send."""

from html.parser import HTMLParser
from typing import Any

from django.test import Client


class _Form(HTMLParser):
    """Reads the values of one form: inputs, selects, text areas."""

    def __init__(self, form_id: str) -> None:
        super().__init__()
        self.values: dict[str, list[str]] = {}
        self._form_id, self._inside = form_id, False
        self._select = self._textarea = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Takes the value of an input, or of a selected option."""
        given = dict(attrs)
        name, value = given.get("name") or "", given.get("value") or ""
        if tag == "form":
            self._inside = given.get("id") == self._form_id
        if not self._inside:
            return
        if tag == "select":
            self._select = name
        elif tag == "textarea":
            self._textarea = name
            self.values[name] = [""]
        elif tag == "option" and "selected" in given:
            self.values.setdefault(self._select, []).append(value)
        elif tag == "input" and name and given.get("type") != "submit":
            if given.get("type") not in ("checkbox", "radio"):
                self.values.setdefault(name, []).append(value)
            elif "checked" in given:
                self.values.setdefault(name, []).append(value or "on")

    def handle_endtag(self, tag: str) -> None:
        """Ends the form, or a text area."""
        self._inside = self._inside and tag != "form"
        self._textarea = "" if tag == "textarea" else self._textarea

    def handle_data(self, data: str) -> None:
        """Takes the text of a text area."""
        if self._textarea:
            self.values[self._textarea][0] += data


def form_of(client: Client, url: str, form_id: str) -> dict[str, Any]:
    """Returns the values that a page's form would send, with a browser's line ends, for a test to change and post."""
    page = client.get(url)
    assert page.status_code == 200
    reader = _Form(form_id)
    reader.feed(page.content.decode())
    assert reader.values, f"there is no form {form_id}"
    return {name: [_sent(value) for value in values] for name, values in reader.values.items()}


def _sent(value: str) -> str:
    return value.removeprefix("\n").replace("\n", "\r\n")
