"""Observers that turn events into what other tools read. Each imports its extra, and no other."""
