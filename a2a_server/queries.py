"""The SQL of the hot path: the statements that make and change tasks, and their safety under concurrency.

Each statement is one transaction by itself (autocommit), or part of a longer one that its service opens. Either way
all of its changes happen, or no change happens.

Four rules make tasks safe:

- A change names the states that it may start from in its WHERE clause. Of two changes that race, PostgreSQL lets the
  second wait for the row's lock and check the clause again, so the second changes no row.
- A write of a run also names the run's attempt, the fencing number. A worker whose run was taken over changes no row.
- A statement that changes a task's row writes the task's event too, numbered with the task's next `seq`. The row's
  lock gives all events of a task one order without gaps.
- A change of state writes the webhooks' deliveries and the owner's page event too, so that no change goes unseen.

Constants without a leading underscore are statements. The others are parts of statements: expressions, or common table
expressions (CTEs), as the comment of each says.
"""

from volcanic.events import EVENT_INSERT, TASK
from volcanic.services import TASK_RECORD

# An expression: the time of the last status in the 1.0 wire form, UTC with milliseconds (specification 5.6.1).
_TIMESTAMP = """to_char(status_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')"""

# An expression: the `statusUpdate` event for a task's present state. The status message is added or left out whole,
# since nulls inside of it have a meaning and stripping all nulls would lose them.
_STATUS_UPDATE = f"""
    jsonb_build_object('statusUpdate', jsonb_build_object(
        'taskId', id, 'contextId', context_id, 'status',
        jsonb_build_object('state', 'TASK_STATE_' || upper(state), 'timestamp', {_TIMESTAMP})
        || CASE WHEN status_message IS NULL THEN '{{}}'::jsonb ELSE jsonb_build_object('message', status_message) END))
"""

# A CTE: inserts an event with `payload` for each task row of the CTE `source`.
_EVENT_OF = """
    event AS (
        INSERT INTO a2a_server_taskevent (task_id, seq, payload, created_at)
        SELECT id, seq, {payload}, %(now)s FROM {source})
"""
# A CTE: inserts a delivery for each webhook of the changed task that is not stopped. It is part of the statement that
# changes the status, so that no webhook misses a status. FOR KEY SHARE waits for a transaction that is deleting a
# webhook; a deleted webhook gets no delivery.
_OUTBOX = """
    outbox AS (
        INSERT INTO a2a_server_pushdelivery (
            config_id, seq, state, attempt, retries, next_try_at, last_error, created_at)
        SELECT config.id, changed.seq, 'pending', 0, 0, %(now)s, '', %(now)s
        FROM changed JOIN a2a_server_pushconfig AS config ON config.task_id = changed.id AND config.state <> 'stopped'
        FOR KEY SHARE OF config
        RETURNING config_id)
"""
# A CTE: inserts the event from which the owner's open pages learn of a change of state. It is part of the statement
# that changes the task, since tasks change often and a second statement would be another round trip.
_SHOWN = f"""
    shown AS (
        {EVENT_INSERT}
        SELECT workspace_id, '{TASK}', changed.id::text, jsonb_build_object('state', changed.state), %(now)s
        FROM changed {{workspace}}
        RETURNING workspace_id)
"""
# Two forms of that CTE. A statement can't read the session row that it inserts itself, so a new task's workspace comes
# as a parameter; any other task's workspace is read from the session.
_SHOWN_OF_NEW = _SHOWN.format(workspace="CROSS JOIN (SELECT %(workspace)s::bigint AS workspace_id) AS workspace")
_SHOWN_OF_SESSION = _SHOWN.format(workspace="JOIN volcanic_session AS session ON session.id = changed.session_id")
_STATUS_EVENT_OF_CHANGED = f"{_EVENT_OF.format(payload=_STATUS_UPDATE, source='changed')}, {_OUTBOX}"
# The last two columns of a statement's row, for the messages sent after commit: the keys of the webhooks with a new
# delivery, and the workspace whose pages are woken.
_TOLD = "ARRAY(SELECT config_id FROM outbox), (SELECT workspace_id FROM shown)"

# CTEs: the amounts of the open-task quotas that a caller has used, and whether one more task fits. The parameter
# `stored` is the count of stored tasks on the caller's row, which a job corrects each minute. Submissions that run at
# the same time don't see each other's tasks, so they can exceed a quota by a few tasks: see `quotas.py`.
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
# The row of each statement that submits: the task's id, its session and the quotas used. The id is null when no task
# was made or changed.
_SUBMITTED = f"""
    SELECT changed.id, fits, running, contexts, {_TOLD}
    FROM quota LEFT JOIN changed ON true
"""

# A subquery: the task whose review holds the very same request of the caller, waiting for the owner. The digest leaves
# out the message's id and includes the context that the caller named. A review does not count when the owner has since
# granted its skill, since policy may run the request now. Nor does it count when its task no longer waits, which
# happens for a moment after a cancel, before the review is voided.
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

# CTEs: insert a task, with its session if the context is new. No task is inserted when the same message was received
# within the window, when the same request waits for the owner, or when the task does not fit a quota. Of two equal
# messages at the same time, the unique index of received messages lets the second wait; the second then finds
# `received_at` within the window. In a session with a running task, the unique index task_one_running_per_session
# raises an error, and the whole statement leaves nothing behind.
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
# Makes a task from a message without `taskId`, for `services.task_submit`. The two unique indexes make the insert safe.
TASK_CREATE = f"""
    WITH {_QUOTA}, {_TASK_INSERT},
    {_STATUS_EVENT_OF_CHANGED},
    {_SHOWN_OF_NEW}
    {_SUBMITTED}
"""

# A CTE: marks a message as received if it changed its task.
_RECEIVED_BY_CHANGED = """
    received AS (
        INSERT INTO a2a_server_receivedmessage (caller_id, digest, task_id, received_at)
        SELECT %(caller)s, %(digest)s::text, id, %(now)s FROM changed
        ON CONFLICT (caller_id, digest) DO UPDATE
            SET task_id = excluded.task_id, received_at = excluded.received_at)
"""

# Continues a task with the caller's answer to a question (input_required → submitted, or → failed over MAX_HOPS), for
# `services.task_submit`. Of two answers that race, only the first finds the task in the state input_required. The row
# has no id when the task is another caller's, in another context, not waiting or over a quota, or when the same message
# was received already.
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

# Finds the task of a message that made or changed no task, for `services.task_submit`: the same message was received
# before (false), or the same request waits for the owner (true). A plain read.
RECEIVED_TASK = f"""
    SELECT task_id, false FROM a2a_server_receivedmessage
    WHERE caller_id = %(caller)s AND digest = %(digest)s::text AND received_at >= %(window_start)s
    UNION ALL
    SELECT task, true FROM ({_WAITING_REVIEW}) AS waiting WHERE NOT %(continues)s::bool
    LIMIT 1
"""

# Adds a caller's message to a task that waits for the owner, for `services.task_submit`. The message goes into the
# history, and a status update confirms it. The state stays auth_required. If the owner decides first, the state has
# changed and the statement changes no row. The service locks the review before the task, as a decision does.
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

# CTEs: every change of state except making and continuing a task, finishing a run and answering a request. The
# parameters name the states that the change may start from, and optionally the attempt, the caller, the time before
# which the lease must have passed, and the maximum of retries. A change that comes too late does not find the task so,
# and changes no row. `before` locks the row first, so that the former state can be returned. A claim adds 1 to the
# attempt.
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
# The statement of `services.transitions.task_move`: the change alone.
TASK_TRANSITION_ONLY = f"{TASK_TRANSITION} SELECT id, was, session_id, caller_id, pending_report, {_TOLD} FROM changed"

# Claims a submitted task for a worker (submitted → working), for `services.task_claim`. Of two workers that race, only
# the first finds the task submitted. The statement also counts the caller's interaction and reads all data of the run:
# one statement instead of four. A message counts once, so a run by the owner's approval does not count it again. Locks
# the task and then the caller.
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

# An expression: the `artifactUpdate` event with the new piece of an artifact.
_ARTIFACT_UPDATE = """
    jsonb_build_object('artifactUpdate', jsonb_build_object(
        'taskId', id, 'contextId', context_id, 'artifact', %(chunk)s::jsonb)
        || CASE WHEN %(append)s::bool THEN '{"append": true}'::jsonb ELSE '{}'::jsonb END
        || CASE WHEN %(last)s::bool THEN '{"lastChunk": true}'::jsonb ELSE '{}'::jsonb END)
"""
# Stores an artifact in its present form, and the event with its new piece, while a run goes on; for
# `services.artifact_write`. Only the run that holds the task can write: state and attempt are in the WHERE clause.
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

# CTEs: the last artifact of a task, if there is one, with its event under `seq - 1`, and the status event under `seq`.
# The statement that includes them has raised `seq` by 2 with an artifact, else by 1.
_LAST_EVENTS = f"""written AS (
        INSERT INTO a2a_server_artifact (task_id, artifact_id, payload)
        SELECT id, %(artifact_id)s::text, %(payload)s::jsonb FROM changed WHERE %(artifact_id)s::text IS NOT NULL
        ON CONFLICT (task_id, artifact_id) DO UPDATE SET payload = excluded.payload),
    event AS (
        INSERT INTO a2a_server_taskevent (task_id, seq, payload, created_at)
        SELECT id, seq - 1, {_ARTIFACT_UPDATE}, %(now)s FROM changed WHERE %(artifact_id)s::text IS NOT NULL
        UNION ALL
        SELECT id, seq, {_STATUS_UPDATE}, %(now)s FROM changed)"""

# Ends a run with the last piece of its answer, if there is one, the new state, and TASK_RECORD (transcript and report);
# for `services.run_finish`. Only the run that holds the task can end it so: state and attempt are in the WHERE clause.
# `services.task_answer` uses the statement without an attempt for the owner's reply to a task that waits; then the
# state alone protects the task.
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

# Makes a task from a request for a built-in skill and completes it with the answer at once, without a worker; for
# `services.task_submit`. The insert of TASK_CREATE makes it safe. Counts the caller's interaction too.
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

# Notes the skill, repeatability and pending report of a run before its turn begins, for `services.run_note`. Changes no
# row for a run that lost its task, or whose grant was revoked. FOR KEY SHARE holds the grant until the end of the
# statement: a transaction that revokes the grant waits, and then finds this run among the running ones to cancel.
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

# Stores the pending report of a run before a tool runs, for `services.run_uses`: the report names that tool too. Only
# the run that holds the task can write.
RUN_USES = """
    UPDATE a2a_server_task SET pending_report = %(pending_report)s
    WHERE id = %(task)s AND state = 'working' AND attempt = %(attempt)s
"""
