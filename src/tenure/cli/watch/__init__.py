"""What `tenure worker` tells of itself while it runs: its health port, its metrics, systemd."""
