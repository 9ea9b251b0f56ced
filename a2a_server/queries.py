"""The SQL of the hot path, to be read alone: what makes tasks safe under concurrency stands here.

Each statement is one transaction by itself (autocommit), so it either happens whole or not at all. A statement that
changes a task's row also writes the event that tells of it, in the same statement, under the next number of that
task; the row lock gives all events of a task one order.
"""

from volcanic.events import EVENT_INSERT, TASK
from volcanic.services import TASK_RECORD

# The 1.0 wire form of a moment: UTC, milliseconds (5.6.1).
_TIMESTAMP = """to_char(status_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')"""

# The status update that tells of a task's present state. `status_message` may hold nulls that mean something, so it
# is added or left out whole.
_STATUS_UPDATE = f"""
    jsonb_build_object('statusUpdate', jsonb_build_object(
        'taskId', id, 'contextId', context_id, 'status',
        jsonb_build_object('state', 'TASK_STATE_' || upper(state), 'timestamp', {_TIMESTAMP})
        || CASE WHEN status_message IS NULL THEN '{{}}'::jsonb ELSE jsonb_build_object('message', status_message) END))
"""

_EVENT_OF = """
    event AS (
        INSERT INTO a2a_server_taskevent (task_id, seq, payload, created_at)
        SELECT id, seq, {payload}, %(now)s FROM {source})
"""
# A delivery for each webhook of the task: in the statement that changes the status, so that none is ever missing. A
# webhook that is being deleted meanwhile is waited for, and gets none.
_OUTBOX = """
    outbox AS (
        INSERT INTO a2a_server_pushdelivery (
            config_id, seq, state, attempt, retries, next_try_at, last_error, created_at)
        SELECT config.id, changed.seq, 'pending', 0, 0, %(now)s, '', %(now)s
        FROM changed JOIN a2a_server_pushconfig AS config ON config.task_id = changed.id AND config.state <> 'stopped'
        FOR KEY SHARE OF config
        RETURNING config_id)
"""
# The owner's pages hear of each change of state. In the statement, since tasks change often.
_SHOWN = f"""
    shown AS (
        {EVENT_INSERT}
        SELECT workspace_id, '{TASK}', changed.id::text, jsonb_build_object('state', changed.state), %(now)s
        FROM changed {{workspace}}
        RETURNING workspace_id)
"""
# A session that the statement itself makes can't be read by it.
_SHOWN_OF_NEW = _SHOWN.format(workspace="CROSS JOIN (SELECT %(workspace)s::bigint AS workspace_id) AS workspace")
_SHOWN_OF_SESSION = _SHOWN.format(workspace="JOIN volcanic_session AS session ON session.id = changed.session_id")
_STATUS_EVENT_OF_CHANGED = f"{_EVENT_OF.format(payload=_STATUS_UPDATE, source='changed')}, {_OUTBOX}"
# Who is told after commit: webhooks, and the owner's pages.
_TOLD = "ARRAY(SELECT config_id FROM outbox), (SELECT workspace_id FROM shown)"

# What the caller has of the quotas of open tasks, and whether one more fits. `stored` is the mark that the sweep keeps
# on the caller. Submissions that run in the same moment don't see each other: see `quotas`.
_QUOTA = """
    opened AS (
        SELECT count(*) FILTER (WHERE state IN ('submitted', 'working')) AS running,
               count(DISTINCT context_id) FILTER (WHERE context_id <> %(context)s::text) AS contexts
        FROM a2a_server_task
        WHERE %(count_open)s::bool AND caller_id = %(caller)s
          AND state IN ('submitted', 'working', 'input_required', 'auth_required')),
    quota AS (
        SELECT running < %(max_running)s AND contexts < %(max_contexts)s AND %(stored)s < %(max_stored)s AS fits,
               running, contexts
        FROM opened)
"""
_SUBMITTED = f"""
    SELECT changed.id, fits, running, contexts, {_TOLD}
    FROM quota LEFT JOIN changed ON true
"""

# The review of a caller in which the very same request waits for the owner, whatever the message's id; in another
# context that the caller named it is another request. Not where the owner has granted it since: then policy may have it
# done now; nor where the task waits no longer, and the review has not heard of it yet.
_WAITING_REVIEW = """
    SELECT task FROM trust_review AS review
    WHERE caller_id = %(caller)s AND request_digest = %(request_digest)s::text AND state = 'pending'
      AND EXISTS (SELECT FROM a2a_server_task AS waits WHERE waits.id = review.task AND waits.state = 'auth_required')
      AND NOT EXISTS (
        SELECT FROM trust_grant AS g
        JOIN trust_skill AS skill ON skill.id = g.skill_id JOIN trust_caller AS asks ON asks.id = g.caller_id
        WHERE g.caller_id = %(caller)s AND coalesce(nullif(g.level, ''), asks.level) = 'act'
          AND (skill.slug = review.skill
               OR skill.by_example AND review.skill = 'chat' AND g.created_at > review.created_at))
"""

# A new task. Makes its session if need be. The row has no id when the same message was received within the window, when
# the same request waits for the owner, or when it does not fit a quota. A session that has a running task refuses
# another: task_one_running_per_session raises, and nothing is left behind.
_TASK_INSERT = f"""
    received AS (
        INSERT INTO a2a_server_receivedmessage AS known (caller_id, digest, task_id, received_at)
        SELECT %(caller)s, %(digest)s::text, %(task)s, %(now)s FROM quota WHERE fits AND NOT EXISTS ({_WAITING_REVIEW})
        ON CONFLICT (caller_id, digest) DO UPDATE
            SET task_id = excluded.task_id, received_at = excluded.received_at
            WHERE known.received_at < %(window_start)s
        RETURNING 1),
    session AS (
        INSERT INTO volcanic_session AS known (workspace_id, kind, scope, title, created_at, last_active_at)
        SELECT %(workspace)s, 'inbound', %(scope)s::text, %(title)s::text, %(now)s, %(now)s FROM received
        ON CONFLICT (workspace_id, scope) DO UPDATE SET last_active_at = excluded.last_active_at
        RETURNING id),
    changed AS (
        INSERT INTO a2a_server_task (
            id, caller_id, session_id, context_id, state, status_message, status_at, history, metadata,
            accepted_output_modes, hops, keys, request_digest, seq, attempt, worker, enqueued_at, created_at)
        SELECT %(task)s, %(caller)s, session.id, %(context)s::text, %(state)s::text, %(status_message)s::jsonb, %(now)s,
               %(history)s::jsonb, %(metadata)s::jsonb, %(modes)s::jsonb, %(hops)s, %(keys)s::bigint[],
               %(request_digest)s::text, %(first_seq)s, 0, '', %(now)s, %(now)s
        FROM session
        RETURNING id, session_id, context_id, state, status_message, status_at, seq)
"""
TASK_CREATE = f"""
    WITH {_QUOTA}, {_TASK_INSERT},
    {_STATUS_EVENT_OF_CHANGED},
    {_SHOWN_OF_NEW}
    {_SUBMITTED}
"""

# Marks a message as received, where it changed its task.
_RECEIVED_BY_CHANGED = """
    received AS (
        INSERT INTO a2a_server_receivedmessage (caller_id, digest, task_id, received_at)
        SELECT %(caller)s, %(digest)s::text, id, %(now)s FROM changed
        ON CONFLICT (caller_id, digest) DO UPDATE
            SET task_id = excluded.task_id, received_at = excluded.received_at)
"""

# The answer to a question: of two that race, one finds the task still waiting. The row has no id when the task is not
# this caller's, in another context, not waiting, when this message was received already, or over a quota.
TASK_CONTINUE = f"""
    WITH {_QUOTA},
    changed AS (
        UPDATE a2a_server_task
        SET state = %(state)s::text, status_at = %(now)s, seq = seq + 1, enqueued_at = %(now)s, hops = %(hops)s,
            keys = keys || (SELECT array_agg(key) FROM unnest(%(keys)s::bigint[]) AS key WHERE key <> ALL(keys)),
            retries = 0,
            accepted_output_modes = %(modes)s::jsonb,
            status_message = %(status_message)s::jsonb || jsonb_build_object('contextId', context_id),
            metadata = CASE WHEN %(metadata)s::jsonb IS NULL THEN metadata
                            ELSE coalesce(metadata, '{{}}'::jsonb) || %(metadata)s::jsonb END,
            history = history
                || CASE WHEN status_message IS NULL THEN '[]'::jsonb ELSE jsonb_build_array(status_message) END
                || jsonb_build_array(%(history)s::jsonb -> 0 || jsonb_build_object('contextId', context_id))
        WHERE id = %(task)s AND caller_id = %(caller)s AND state = 'input_required'
          AND (%(context)s::text = '' OR context_id = %(context)s::text)
          AND (SELECT fits FROM quota)
          AND NOT EXISTS (
            SELECT FROM a2a_server_receivedmessage
            WHERE caller_id = %(caller)s AND digest = %(digest)s::text AND received_at >= %(window_start)s)
        RETURNING id, session_id, context_id, state, status_message, status_at, seq),
    {_RECEIVED_BY_CHANGED},
    {_STATUS_EVENT_OF_CHANGED},
    {_SHOWN_OF_SESSION}
    {_SUBMITTED}
"""

# What a message that is none for a new task belongs to: it was received before, or the same request waits.
RECEIVED_TASK = f"""
    SELECT task_id, false FROM a2a_server_receivedmessage
    WHERE caller_id = %(caller)s AND digest = %(digest)s::text AND received_at >= %(window_start)s
    UNION ALL
    SELECT task, true FROM ({_WAITING_REVIEW}) AS waiting WHERE NOT %(continues)s::bool
    LIMIT 1
"""

# What the caller says while the owner decides: kept in the history, and told as a status that says so.
TASK_ADD_MESSAGE = f"""
    WITH changed AS (
        UPDATE a2a_server_task
        SET status_at = %(now)s, seq = seq + 1,
            keys = keys || (SELECT array_agg(key) FROM unnest(%(keys)s::bigint[]) AS key WHERE key <> ALL(keys)),
            status_message = %(status_message)s::jsonb || jsonb_build_object('contextId', context_id),
            history = history || jsonb_build_array(%(message)s::jsonb || jsonb_build_object('contextId', context_id))
        WHERE id = %(task)s AND caller_id = %(caller)s AND state = 'auth_required'
          AND (%(context)s::text = '' OR context_id = %(context)s::text)
          AND NOT EXISTS (
            SELECT FROM a2a_server_receivedmessage
            WHERE caller_id = %(caller)s AND digest = %(digest)s::text AND received_at >= %(window_start)s)
        RETURNING id, session_id, context_id, state, status_message, status_at, seq),
    {_RECEIVED_BY_CHANGED},
    {_STATUS_EVENT_OF_CHANGED},
    {_SHOWN_OF_SESSION}
    SELECT id, {_TOLD} FROM changed
"""

# Every change of state but the two above. The caller of this statement says from which states it may start, and for a
# run which attempt it is; whoever comes too late changes no row.
TASK_TRANSITION = f"""
    WITH before AS (
        SELECT id AS task_id, state AS was FROM a2a_server_task
        WHERE id = %(task)s AND state = ANY(%(from_states)s::text[]) FOR NO KEY UPDATE),
    changed AS (
        UPDATE a2a_server_task
        SET state = %(state)s::text, status_at = %(now)s, seq = seq + 1,
            status_message = %(status_message)s::jsonb || jsonb_build_object('contextId', context_id),
            attempt = attempt + %(claims)s, worker = %(worker)s::text, lease_expires_at = %(lease)s,
            enqueued_at = CASE WHEN %(state)s::text = 'submitted' THEN %(now)s ELSE enqueued_at END,
            repeatable = repeatable AND %(claims)s = 0,
            retries = CASE WHEN state = 'auth_required' THEN 0 ELSE retries END
        FROM before
        WHERE id = task_id AND state = ANY(%(from_states)s::text[])
          AND (%(attempt)s::int IS NULL OR attempt = %(attempt)s)
          AND (%(caller)s::bigint IS NULL OR caller_id = %(caller)s)
          AND (%(lease_before)s::timestamptz IS NULL OR lease_expires_at < %(lease_before)s)
          AND (%(max_retries)s::int IS NULL OR (repeatable AND retries < %(max_retries)s))
        RETURNING a2a_server_task.*, was),
    {_STATUS_EVENT_OF_CHANGED},
    {_SHOWN_OF_SESSION}
"""
TASK_TRANSITION_ONLY = f"{TASK_TRANSITION} SELECT id, was, session_id, caller_id, pending_report, {_TOLD} FROM changed"

# Claims a submitted task, notes the interaction (once for each message: not again when it runs by an approval), and
# reads what the run needs: one statement instead of four.
TASK_CLAIM = f"""{TASK_TRANSITION},
    caller AS (
        UPDATE trust_caller AS caller
        SET first_seen_at = coalesce(first_seen_at, %(now)s), last_interaction_at = %(now)s,
            interaction_count = interaction_count + CASE WHEN EXISTS (
                SELECT FROM trust_review AS review
                WHERE review.task = changed.id AND review.state = 'approved'
                  AND review.message_count = jsonb_array_length(changed.history)
                ) THEN 0 ELSE 1 END
        FROM changed WHERE caller.id = changed.caller_id
        RETURNING caller.id, caller.name, caller.level, caller.enabled)
    SELECT changed.id, changed.attempt, changed.session_id, changed.context_id, changed.history -> -1,
           changed.metadata, changed.accepted_output_modes, changed.hops,
           caller.id, caller.name, caller.level, caller.enabled,
           workspace.id, workspace.slug, workspace.notify_owner,
           (SELECT coalesce(jsonb_object_agg(skill.slug, g.level), '{{}}')::text
            FROM trust_grant AS g JOIN trust_skill AS skill ON skill.id = g.skill_id
            WHERE g.caller_id = caller.id AND skill.enabled),
           EXISTS (SELECT FROM volcanic_turn AS turn WHERE turn.session_id = changed.session_id),
           EXISTS (SELECT FROM a2a_server_inboundfile AS file WHERE file.task_id = changed.id AND file.path = ''),
           changed.keys,
           EXISTS (SELECT FROM trust_callerkey WHERE id = ANY(changed.keys) AND revoked_at IS NOT NULL),
           changed.request_digest, jsonb_array_length(changed.history),
           (SELECT id FROM trust_review AS review WHERE review.task = changed.id),
           changed.skill, CASE WHEN jsonb_array_length(changed.history) > 1 THEN changed.history -> 0 END,
           {_TOLD}
    FROM changed
    JOIN caller ON caller.id = changed.caller_id
    JOIN volcanic_session AS session ON session.id = changed.session_id
    JOIN volcanic_workspace AS workspace ON workspace.id = session.workspace_id
"""

# Writes an artifact as it now is, and the event that shows what is new of it. Only the run that holds the task can.
_ARTIFACT_UPDATE = """
    jsonb_build_object('artifactUpdate', jsonb_build_object(
        'taskId', id, 'contextId', context_id, 'artifact', %(chunk)s::jsonb)
        || CASE WHEN %(append)s::bool THEN '{"append": true}'::jsonb ELSE '{}'::jsonb END
        || CASE WHEN %(last)s::bool THEN '{"lastChunk": true}'::jsonb ELSE '{}'::jsonb END)
"""
ARTIFACT_WRITE = f"""
    WITH changed AS (
        UPDATE a2a_server_task SET seq = seq + 1
        WHERE id = %(task)s AND state = 'working' AND attempt = %(attempt)s
        RETURNING id, context_id, seq),
    stored AS (
        INSERT INTO a2a_server_artifact (task_id, artifact_id, payload)
        SELECT id, %(artifact_id)s::text, %(payload)s::jsonb FROM changed
        ON CONFLICT (task_id, artifact_id) DO UPDATE SET payload = excluded.payload),
    {_EVENT_OF.format(payload=_ARTIFACT_UPDATE, source="changed")}
    SELECT id FROM changed
"""

# The last of a task: an artifact where there is one, and its state.
_LAST_EVENTS = f"""written AS (
        INSERT INTO a2a_server_artifact (task_id, artifact_id, payload)
        SELECT id, %(artifact_id)s::text, %(payload)s::jsonb FROM changed WHERE %(artifact_id)s::text IS NOT NULL
        ON CONFLICT (task_id, artifact_id) DO UPDATE SET payload = excluded.payload),
    event AS (
        INSERT INTO a2a_server_taskevent (task_id, seq, payload, created_at)
        SELECT id, seq - 1, {_ARTIFACT_UPDATE}, %(now)s FROM changed WHERE %(artifact_id)s::text IS NOT NULL
        UNION ALL
        SELECT id, seq, {_STATUS_UPDATE}, %(now)s FROM changed)"""

# The end of a run, all or nothing: the last of its answer where there is one, its state, and what the assistant's own
# tables keep of it. Only the run that holds the task can write it; or, without an attempt, the owner.
RUN_FINISH = f"""
    WITH changed AS (
        UPDATE a2a_server_task
        SET state = %(state)s::text, status_at = %(now)s, worker = '', lease_expires_at = NULL, pending_report = '',
            status_message = %(status_message)s::jsonb || jsonb_build_object('contextId', context_id),
            seq = seq + CASE WHEN %(artifact_id)s::text IS NULL THEN 1 ELSE 2 END
        WHERE id = %(task)s AND state = %(from_state)s::text AND (%(attempt)s::int IS NULL OR attempt = %(attempt)s)
        RETURNING id, session_id, context_id, state, status_message, status_at, seq),
    {_LAST_EVENTS},
    {_OUTBOX},
    {_SHOWN_OF_SESSION},
    {TASK_RECORD}
    SELECT id, {_TOLD} FROM changed
"""

# A request for a built-in skill, from its arrival to its answer: no worker has a part in it.
TASK_ANSWER = f"""
    WITH {_QUOTA}, {_TASK_INSERT},
    {_LAST_EVENTS},
    caller AS (
        UPDATE trust_caller
        SET interaction_count = interaction_count + 1, last_interaction_at = %(now)s,
            first_seen_at = coalesce(first_seen_at, %(now)s)
        WHERE id IN (SELECT %(caller)s FROM changed)),
    {_OUTBOX},
    {_SHOWN_OF_NEW},
    {TASK_RECORD}
    {_SUBMITTED}
"""

# What a worker notes of its run before the turn begins; not when it is to run on a grant that was revoked since.
# Whoever revokes waits for it, and then finds what runs.
RUN_NOTE = """
    WITH held AS (
        SELECT FROM trust_grant AS g JOIN trust_skill AS skill ON skill.id = g.skill_id
        WHERE g.caller_id = %(caller)s AND skill.slug = %(granted)s::text FOR KEY SHARE OF g)
    UPDATE a2a_server_task
    SET skill = %(skill)s, repeatable = %(repeatable)s, retries = retries + %(retries)s,
        pending_report = %(pending_report)s
    WHERE id = %(task)s AND state = 'working' AND attempt = %(attempt)s
      AND (%(granted)s::text = '' OR EXISTS (SELECT FROM held))
"""

# What it has used, before it uses it.
RUN_USES = """
    UPDATE a2a_server_task SET pending_report = %(pending_report)s
    WHERE id = %(task)s AND state = 'working' AND attempt = %(attempt)s
"""

LEASES_RENEW = """
    UPDATE a2a_server_task AS task SET lease_expires_at = %(lease)s
    FROM unnest(%(tasks)s::uuid[], %(attempts)s::int[]) AS run (id, attempt)
    WHERE task.id = run.id AND task.attempt = run.attempt AND task.state = 'working'
"""

# Of the runs that a worker believes it holds, those it holds no more: canceled, expired, or taken over.
RUNS_LOST = """
    SELECT run.id, run.attempt
    FROM unnest(%(tasks)s::uuid[], %(attempts)s::int[]) AS run (id, attempt)
    LEFT JOIN a2a_server_task AS task
        ON task.id = run.id AND task.attempt = run.attempt AND task.state = 'working'
    WHERE task.id IS NULL
"""

# Submitted tasks whose message seems lost. Taking them moves their time on, so that two sweeps don't take the same.
UNCLAIMED_TAKE = """
    UPDATE a2a_server_task SET enqueued_at = %(now)s
    WHERE id IN (
        SELECT id FROM a2a_server_task
        WHERE state = 'submitted' AND enqueued_at < %(before)s
        ORDER BY enqueued_at LIMIT %(limit)s
        FOR UPDATE SKIP LOCKED)
    RETURNING id
"""

RUNS_EXPIRED = """
    SELECT id FROM a2a_server_task WHERE state = 'working' AND lease_expires_at < %(now)s LIMIT %(limit)s
"""

# A task as the wire shows it. JSON comes as text: it is put together, not parsed and written again.
TASK_COLUMNS = """
    id, context_id, state, status_at, status_message::text, history::text, metadata::text, seq, lease_expires_at
"""
_ARTIFACTS = """
    (SELECT jsonb_agg(payload ORDER BY artifact.id)::text
     FROM a2a_server_artifact AS artifact WHERE artifact.task_id = task.id)
"""
TASK_READ = f"""
    SELECT {TASK_COLUMNS}, {_ARTIFACTS}
    FROM a2a_server_task AS task WHERE id = %(task)s AND caller_id = %(caller)s
"""

TASKS_COUNT = "SELECT count(*) FROM a2a_server_task WHERE {conditions}"
TASKS_PAGE = f"""
    SELECT {TASK_COLUMNS}, CASE WHEN %(artifacts)s::bool THEN coalesce({_ARTIFACTS}, '[]') END
    FROM a2a_server_task AS task WHERE {{conditions}}
    ORDER BY status_at DESC, id DESC LIMIT %(limit)s
"""

EVENTS_AFTER = """
    SELECT seq, payload::text FROM a2a_server_taskevent WHERE task_id = %(task)s AND seq > %(seq)s ORDER BY seq
"""
