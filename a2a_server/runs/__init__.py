"""Running a task: policy, the turn, triage for the owner, reports."""
