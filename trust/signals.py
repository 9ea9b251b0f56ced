"""Signals about grants and reviews, sent inside the transaction: a receiver that raises undoes the whole change.

The package `trust` knows no tasks and no turns. Packages that know them connect receivers to these signals.
"""

from django.dispatch import Signal

# A grant was revoked. Sent by Grant with `caller_id` and the id of the `skill`. `stop` tells whether runs on the grant
# end, too. `keeps_evidence` tells whether the decisions behind the grant still stand.
grant_revoked = Signal()

# The owner decided a review, or its time has passed. Sent by Review with the current `review`.
review_decided = Signal()

# A review became void: nobody can decide it any more. Sent by Review with the current `review`.
review_voided = Signal()
