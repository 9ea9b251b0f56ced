"""The SQL of webhook deliveries. `a2a_server.queries` inserts each delivery in the statement that inserts its event."""

# Finds the next delivery of a webhook, due or not: the oldest pending one. No row while the webhook is failing or
# stopped. The claim of `volcanic.leased_work` uses it as a subquery and takes the row's lock.
DELIVERY_HEAD = """
    SELECT delivery.id
    FROM a2a_server_pushdelivery AS delivery JOIN a2a_server_pushconfig AS config ON config.id = delivery.config_id
    WHERE delivery.config_id = %(config)s AND delivery.state = 'pending' AND config.state = 'active'
    ORDER BY delivery.seq LIMIT 1
"""

# Finds the webhooks whose next delivery is due and not leased, for the sweep. Reads pending deliveries only, by the
# partial index delivery_pending. A plain read: the claim checks the lease again.
CONFIGS_DUE = """
    SELECT config.id
    FROM (SELECT DISTINCT ON (config_id) config_id, next_try_at, lease_expires_at FROM a2a_server_pushdelivery
          WHERE state = 'pending'
          ORDER BY config_id, seq) AS head
    JOIN a2a_server_pushconfig AS config ON config.id = head.config_id
    WHERE head.next_try_at <= %(now)s AND config.state = 'active'
      AND (head.lease_expires_at IS NULL OR head.lease_expires_at < %(now)s)
    ORDER BY head.next_try_at LIMIT %(limit)s
"""
