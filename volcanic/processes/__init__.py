"""Processes outside of Django: embedded PostgreSQL and Valkey, and the supervisor of `make up`."""
