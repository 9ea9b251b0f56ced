"""Running turns: leases, time limits, streamed text, and the prompts of owners' sessions.

`leases` keeps what this process runs, `execution` runs one turn within its time, `buffer` writes its text as it comes.
All three serve tasks of callers (a2a_server) and prompts of owners alike. `prompts` has the verbs of prompts, `owner`
runs one.
"""
