"""`manage.py chat`: the owner's conversation with the assistant, from a shell."""

import json
import sys
import time
from argparse import ArgumentParser
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import CommandError

from volcanic.management.arguments import add_workspace_argument, workspace_from
from volcanic.management.printing import indented, iso
from volcanic.management.shell import ShellCommand
from volcanic.models import Prompt, Session
from volcanic.presence import owner_seen
from volcanic.turns.prompts import MAIN, owner_session, owner_session_find, prompt_stop, prompt_submit

ORIGIN = "chat"
LOG_LENGTH = 10
_LOOK_SECONDS = 0.1
_ENDED = (Prompt.State.COMPLETED, Prompt.State.INPUT_REQUIRED, Prompt.State.FAILED, Prompt.State.STOPPED)


class Command(ShellCommand):
    help = (
        "Says TEXT to the assistant and prints the answer as it comes. `/stop` stops what runs. --log prints the "
        "conversation. Exit status: 0 answered, 1 failed or stopped, 3 no answer yet (it goes on)."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Adds the text and the options."""
        add_workspace_argument(parser)
        parser.add_argument("text", nargs="*", metavar="TEXT", help="what to say; several words are one text")
        parser.add_argument("--wait", type=float, metavar="SECONDS", help="how long to wait; default: to the end")
        parser.add_argument("--session", default=MAIN, metavar="NAME", help=f"the conversation; default: {MAIN}")
        parser.add_argument(
            "--log", nargs="?", type=int, const=LOG_LENGTH, metavar="N", help="print the last N messages instead"
        )
        parser.add_argument("--json", action="store_true", help="for scripts")

    def handle(self, *args: Any, **options: Any) -> None:
        """Does it. Raises CommandError for what can't be said or shown."""
        workspace = workspace_from(options)
        try:
            name, text = options["session"], " ".join(options["text"])
            if options["log"] is not None:
                session = owner_session_find(workspace=workspace, name=name)
                self._log(session, options["log"], as_json=options["json"])
            elif text.strip() == "/stop":
                self._stop(owner_session_find(workspace=workspace, name=name))
            else:
                owner_seen(workspace.owner_id)
                session = owner_session(workspace=workspace, name=name)
                prompt = prompt_submit(session=session, text=text, origin=ORIGIN)
                self._follow(prompt, options["wait"], as_json=options["json"])
        except ValidationError as error:
            raise CommandError(" ".join(error.messages)) from None

    def _stop(self, session: Session | None) -> None:
        stopped = session is not None and prompt_stop(session=session)
        self.stdout.write("Stopped." if stopped else "Nothing runs.")

    def _follow(self, prompt: Prompt, seconds: float | None, *, as_json: bool) -> None:
        """Prints the answer while it is written, and ends the process with what came of it."""
        until = None if seconds is None else time.monotonic() + seconds
        printer = _Printer(self, quiet=as_json)
        if Prompt.objects.filter(session=prompt.session_id, pk__lt=prompt.pk, state__in=("queued", "running")).exists():
            printer.note("It waits behind what runs in this conversation.")
        try:
            while True:
                prompt.refresh_from_db()
                printer.show(prompt.answer)
                if prompt.state in _ENDED or (until is not None and time.monotonic() >= until):
                    break
                time.sleep(_LOOK_SECONDS)
        except KeyboardInterrupt:
            printer.note(f"It goes on: `manage.py chat --log`, or `manage.py chat /stop` to stop it ({prompt.state}).")
            sys.exit(130)
        printer.end()
        if as_json:
            self.stdout.write(json.dumps(_facts(prompt), ensure_ascii=False, indent=2))
        if prompt.state not in _ENDED:
            printer.note(f"No answer within {seconds:g} seconds ({prompt.state}). It goes on: `manage.py chat --log`.")
            sys.exit(3)
        if prompt.state in (Prompt.State.FAILED, Prompt.State.STOPPED):
            printer.note(f"The prompt {prompt.state}.")
            sys.exit(1)

    def _log(self, session: Session | None, length: int, *, as_json: bool) -> None:
        newest = list(Prompt.objects.filter(session=session).order_by("-id")[: max(length, 0)])
        facts = [_facts(prompt) for prompt in reversed(newest)]
        if as_json:
            self.stdout.write(json.dumps(facts, ensure_ascii=False, indent=2))
        else:
            self.stdout.write("\n".join(_lines(one) for one in facts) or "Nothing was said yet.")


class _Printer:
    """Prints a growing text: each time the part that is new."""

    def __init__(self, command: Command, *, quiet: bool) -> None:
        self._command, self._quiet = command, quiet
        self._shown = ""

    def show(self, text: str) -> None:
        """Prints what is new. An answer that begins anew, after a tool call, gets a line of its own."""
        if self._quiet or text == self._shown:
            return
        if not text.startswith(self._shown):
            self._command.stdout.write("")
            self._shown = ""
        self._command.stdout.write(_safe(text[len(self._shown) :]), ending="")
        self._command.stdout.flush()
        self._shown = text

    def end(self) -> None:
        """Ends the line."""
        if self._shown and not self._quiet:
            self._command.stdout.write("")

    def note(self, text: str) -> None:
        """Prints something that is no answer, to standard error."""
        self._command.stderr.write(text)


def _safe(text: str) -> str:
    """Returns a text that moves no terminal's cursor; line breaks and tabs stay."""
    return "".join(char if char.isprintable() or char in "\n\t" else " " for char in text)


def _facts(prompt: Prompt) -> dict[str, Any]:
    return {
        "id": prompt.pk,
        "origin": prompt.origin,
        "kind": str(prompt.kind),
        "state": str(prompt.state),
        "text": prompt.text,
        "answer": prompt.answer,
        "created": iso(prompt.created_at),
        "finished": iso(prompt.finished_at),
    }


def _lines(facts: dict[str, Any]) -> str:
    head = f"{facts['created']}  {facts['kind']} ({facts['origin']}): {facts['state']}"
    answer = [indented(facts["answer"], "  < ")] if facts["answer"] else []
    return "\n".join([head, indented(facts["text"], "  > "), *answer])
