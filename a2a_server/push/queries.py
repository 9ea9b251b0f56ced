"""The SQL of webhooks. A delivery is written by the statement that writes its event, see `a2a_server.queries`."""

# The next delivery of a webhook, due or not: the oldest that is not done. None while the webhook is failing or stopped.
DELIVERY_HEAD = """
    SELECT delivery.id
    FROM a2a_server_pushdelivery AS delivery JOIN a2a_server_pushconfig AS config ON config.id = delivery.config_id
    WHERE delivery.config_id = %(config)s AND delivery.state = 'pending' AND config.state = 'active'
    ORDER BY delivery.seq LIMIT 1
"""

# Webhooks whose next delivery is due and in nobody's hands. Only pending deliveries are looked at.
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
