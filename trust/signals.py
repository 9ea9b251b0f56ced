"""What others may want to know of, told by signals. Sent inside the transaction: a receiver that raises undoes it all.

Trust knows no tasks and no turns. Who does connects a receiver here.
"""

from django.dispatch import Signal

# A grant is gone. Sent by Grant, with `caller_id`, the `skill`'s id, `stop`: whether what runs on it ends, too, and
# `keeps_evidence`: whether the decisions that it rests on still stand.
grant_revoked = Signal()

# The owner decided a review. Sent by Review, with the `review` as it is now.
review_decided = Signal()

# A review that waited is void: nobody decides it any more. Sent by Review, with the `review` as it is now.
review_voided = Signal()
