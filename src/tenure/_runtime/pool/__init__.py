"""Handlers in processes that can be killed. The way in is `calls.py`; the other side `child.py`."""
