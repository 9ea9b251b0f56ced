"""Benchmark of this product against the A2A SDK's own server, on one machine, in one run. See README.md."""
