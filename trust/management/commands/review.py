"""`manage.py review`: takes the owner's decision on a waiting request."""

from argparse import ArgumentParser
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import CommandError

from trust.decisions import DECISIONS, review_decide
from trust.errors import ReviewError
from trust.models import Observation, Review
from trust.outcomes import outcome
from volcanic.management.shell import ShellCommand


class Command(ShellCommand):
    help = "Decides a request that waits for the owner, and prints the result. `manage.py reviews` lists the requests."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Adds ID, the decision and the options."""
        parser.add_argument("id", type=int)
        parser.add_argument("decision", choices=[decision.value for decision in DECISIONS])
        parser.add_argument("--text", default="", help="an instruction, the reply, the question or the reason")
        parser.add_argument("--digest", help="digest that was shown; default: the current digest of the request")

    def handle(self, *args: Any, **options: Any) -> None:
        """Takes the decision. Raises CommandError for an unknown review or a decision that can't be taken any more."""
        review = Review.objects.filter(pk=options["id"]).first()
        if review is None:
            raise CommandError(f"There is no review {options['id']}.")
        decision = Observation.Decision(options["decision"])
        digest = review.digest if options["digest"] is None else options["digest"]
        try:
            done = review_decide(review_id=review.pk, decision=decision, digest=digest, text=options["text"])
        except ValidationError as error:
            raise CommandError(" ".join(error.messages)) from error
        except ReviewError as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"{outcome(done, decision)} (task {done.task})")
