"""Asynchronous work: this process's event loop, the database for coroutines, wake-ups between processes."""
