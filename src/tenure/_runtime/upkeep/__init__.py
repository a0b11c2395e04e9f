"""Background loops that tidy the store; any worker runs them, none is a leader."""
