"""The version of this package, as its metadata has it. A value of its own, for whoever shows it."""

__all__ = ["VERSION"]

VERSION = "0.1.0"
