"""Runs of tasks: policy, the full turn, triage and review for the owner, and reports."""
