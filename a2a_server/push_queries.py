"""The SQL of webhooks. A delivery is written by the statement that writes its event, see `queries`."""

# Takes a config for one process, for as long as its lease: only then may it deliver. One that is failing or stopped
# is nobody's.
CONFIG_CLAIM = """
    UPDATE a2a_server_pushconfig SET holder = %(holder)s::text, lease_expires_at = %(lease)s
    WHERE id = %(config)s AND state = 'active' AND (lease_expires_at IS NULL OR lease_expires_at < %(now)s)
    RETURNING id
"""

# Keeps the lease and reads what is next, as of now: the oldest delivery that is not done, due or not.
DELIVERY_NEXT = """
    WITH held AS (
        UPDATE a2a_server_pushconfig SET lease_expires_at = %(lease)s
        WHERE id = %(config)s AND state = 'active' AND holder = %(holder)s::text AND lease_expires_at >= %(now)s
        RETURNING id, task_id)
    SELECT delivery.id, delivery.seq, delivery.attempts, delivery.next_try_at, held.task_id
    FROM held JOIN a2a_server_pushdelivery AS delivery ON delivery.config_id = held.id
    WHERE delivery.state = 'pending'
    ORDER BY delivery.seq LIMIT 1
"""

DELIVERY_DONE = """
    UPDATE a2a_server_pushdelivery
    SET state = 'delivered', delivered_at = %(now)s, attempts = attempts + 1, last_status = %(status)s, last_error = ''
    WHERE id = %(delivery)s AND state = 'pending'
"""

DELIVERY_FAILED = """
    UPDATE a2a_server_pushdelivery
    SET attempts = attempts + 1, next_try_at = %(next)s, last_status = %(status)s::int, last_error = %(error)s::text
    WHERE id = %(delivery)s AND state = 'pending'
"""

CONFIG_RELEASE = """
    UPDATE a2a_server_pushconfig SET holder = '', lease_expires_at = NULL
    WHERE id = %(config)s AND holder = %(holder)s::text
"""

# Gives a config up after its last try, for the owner to see. Its deliveries stay, in order.
CONFIG_GIVE_UP = """
    UPDATE a2a_server_pushconfig SET state = 'failing', holder = '', lease_expires_at = NULL
    WHERE id = %(config)s AND holder = %(holder)s::text AND state = 'active'
    RETURNING id
"""

# Configs whose next delivery is due and that nobody holds. Only pending deliveries are looked at.
CONFIGS_DUE = """
    SELECT config.id
    FROM (SELECT DISTINCT ON (config_id) config_id, next_try_at FROM a2a_server_pushdelivery
          WHERE state = 'pending'
          ORDER BY config_id, seq) AS head
    JOIN a2a_server_pushconfig AS config ON config.id = head.config_id
    WHERE head.next_try_at <= %(now)s AND config.state = 'active'
      AND (config.lease_expires_at IS NULL OR config.lease_expires_at < %(now)s)
    ORDER BY head.next_try_at LIMIT %(limit)s
"""

# Whether the next delivery of one config is due and nobody holds it.
CONFIG_DUE = """
    SELECT 1
    FROM (SELECT config_id, next_try_at FROM a2a_server_pushdelivery
          WHERE state = 'pending' AND config_id = %(config)s ORDER BY seq LIMIT 1) AS head
    JOIN a2a_server_pushconfig AS config ON config.id = head.config_id
    WHERE head.next_try_at <= %(now)s AND config.state = 'active'
      AND (config.lease_expires_at IS NULL OR config.lease_expires_at < %(now)s)
"""
