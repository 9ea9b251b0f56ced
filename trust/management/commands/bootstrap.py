"""`manage.py bootstrap`: makes the first owner, and outside production two demo callers for the first `make up`."""

import secrets
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.core.management.base import CommandError
from django.db import connection, transaction

from trust.models import CHAT, Level
from trust.services import caller_create
from volcanic.management.shell import ShellCommand
from volcanic.models import Workspace
from volcanic.services import workspace_create
from volcanic.settings.env import PRODUCTION

PERSONA = "Helps {owner} and answers other agents on their behalf.\n"


class Command(ShellCommand):
    help = "Makes the first owner and their workspace if there is no user yet. Outside production adds demo callers."

    def handle(self, *args: Any, **options: Any) -> None:
        """Makes everything in one transaction, or nothing if a user exists already. CommandError without tables."""
        if User._meta.db_table not in connection.introspection.table_names():
            raise CommandError("The database has no tables yet. First: manage.py migrate")
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
        url = settings.PUBLIC_URL
        shown = [f"owner's admin: {url}/admin/  login: owner  password: {password}"]
        if PRODUCTION:
            return [*shown, "The password is shown only now."]
        return [*shown, *self._demo_callers(workspace)]

    def _demo_callers(self, workspace: Workspace) -> list[str]:
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
            f"demo caller that may chat (demo-friend): {friend}",
            f"demo caller with nothing granted (demo-stranger): {stranger}",
            "The password and keys are shown only now. Try:",
            f"curl -s -H 'X-API-Key: {friend}' -H 'Content-Type: application/json' {url}/a2a -d '{body}'",
        ]
