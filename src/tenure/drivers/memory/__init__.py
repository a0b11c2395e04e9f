"""The memory store: the reference reading of the contract, gone with its process."""

from tenure.drivers.memory.driver import MemoryDriver

__all__ = ["MemoryDriver"]
