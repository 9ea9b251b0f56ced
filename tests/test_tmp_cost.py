import asyncio, statistics, time, uuid, pytest
from django.db import connection
from a2a_server.services import Submission, task_submit
from trust.limits import Limits

def sub(friend, limits):
    return Submission(caller_id=friend.caller.id, caller_name="f", workspace_id=friend.caller.workspace_id,
       message={"role":"ROLE_USER","messageId":str(uuid.uuid4()),"parts":[{"text":"x"}]}, digest=uuid.uuid4().hex, task_id=uuid.uuid4(), limits=limits)

@pytest.mark.django_db(transaction=True)
def test_cost(friend, monkeypatch):
    monkeypatch.setattr("a2a_server.services.publish", lambda *a: True)
    monkeypatch.setattr("a2a_server.services.wakeups.send", lambda *a: None)
    with connection.cursor() as c:
        c.execute("SET synchronous_commit=off")
        c.execute("""INSERT INTO volcanic_session (workspace_id, kind, scope, title, created_at, last_active_at)
              SELECT %s,'inbound','a2a-'||%s||'_c'||i,'t',now(),now() FROM generate_series(1,%s) i""",[friend.caller.workspace_id,friend.caller.id,1000])
        c.execute("""INSERT INTO a2a_server_task (id, caller_id, session_id, context_id, state, status_at, history, accepted_output_modes, hops, seq, attempt, worker, enqueued_at, created_at, pinned)
              SELECT gen_random_uuid(), %s, s.id, 'c', CASE WHEN k=1 AND s.id %% 10 = 0 THEN 'submitted' ELSE 'completed' END, now(), '[]', '[]',0,1,0,'',now(),now(),false
              FROM volcanic_session s, generate_series(1,15) k""",[friend.caller.id])
        c.execute("VACUUM ANALYZE")
    def run(limits, n=300):
        ts=[]
        for _ in range(n):
            s=sub(friend, limits); t=time.perf_counter(); task_submit(submission=s); ts.append(time.perf_counter()-t)
            with connection.cursor() as c: c.execute("UPDATE a2a_server_task SET state='completed' WHERE id=%s",[s.task_id])
        return f"{statistics.median(ts)*1e3:.3f} ms"
    none=Limits(0,0,0,0,0)
    for name, l in (("none",none),("default (100 running, 15000 stored)",Limits.of()),("stored each time", Limits.of([None,None,None,None,16500])),("locked", Limits.of([None,110]))):
        connection.close()
        with connection.cursor() as c: c.execute("SET synchronous_commit=off")
        print(name, run(l))
        with connection.cursor() as c:
            c.execute("SELECT length(statement), generic_plans, custom_plans FROM pg_prepared_statements WHERE statement LIKE '%receivedmessage%'"); print(c.fetchall())
