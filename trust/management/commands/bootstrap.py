"""`manage.py bootstrap`: the first owner and two demo callers, for a newcomer's first `make up`."""

import secrets
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction

from trust.models import CHAT, Level
from trust.services import caller_create
from volcanic.management.shell import ShellCommand
from volcanic.services import workspace_create

PERSONA = "Helps {owner} and answers other agents on their behalf.\n"


class Command(ShellCommand):
    help = "Makes the first owner, their workspace and demo callers if there is no user yet, and prints their secrets."

    def handle(self, *args: Any, **options: Any) -> None:
        """Does everything in one transaction, or nothing where a user exists already."""
        with transaction.atomic():
            if User.objects.exists():
                self.stdout.write(f"owner's admin: {settings.PUBLIC_URL}/admin/")
                return
            lines = self._first_run()
        self.stdout.write("\n".join(lines))

    def _first_run(self) -> list[str]:
        password = secrets.token_urlsafe(12)
        owner = User.objects.create_superuser("owner", password=password)
        workspace = workspace_create(slug="main", owner=owner)
        persona = workspace.path / "PERSONA.md"
        if not persona.exists():
            persona.write_text(PERSONA.format(owner=owner.username))
        _, friend = caller_create(
            workspace=workspace, name="demo-friend", level=Level.ACT, skills=[CHAT], note="Demo: may chat at once."
        )
        _, stranger = caller_create(workspace=workspace, name="demo-stranger", note="Demo: nothing granted yet.")
        url = settings.PUBLIC_URL
        body = (
            '{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":'
            '{"role":"ROLE_USER","messageId":"m1","parts":[{"text":"hi"}]}}}'
        )
        return [
            f"owner's admin: {url}/admin/  login: owner  password: {password}",
            f"demo caller that may chat (demo-friend): {friend}",
            f"demo caller with nothing granted (demo-stranger): {stranger}",
            "These are shown only now. Try:",
            f"curl -s -H 'X-API-Key: {friend}' -H 'Content-Type: application/json' {url}/a2a -d '{body}'",
        ]
