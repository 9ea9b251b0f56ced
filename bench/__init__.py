"""The benchmark: this product beside the A2A SDK's own server, on one machine, in one run. See README.md."""
