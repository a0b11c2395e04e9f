"""Several processes that each run a worker. See `tenure.processes`, which is their front."""
