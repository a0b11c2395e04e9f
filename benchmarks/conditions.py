"""What the figures depend on, beside the versions of stores and packages."""

import os
import platform
from collections.abc import Mapping

__all__ = ["conditions", "told"]


def conditions(versions: Mapping[str, str]) -> dict[str, object]:
    """Nothing in it names the machine."""
    return {
        "Python": f"{platform.python_version()} ({platform.python_implementation()})",
        "system": f"{platform.system()} {platform.machine()}",
        "CPUs": os.cpu_count(),
        **versions,
    }


def told(versions: Mapping[str, str]) -> str:
    """The same in one line."""
    return ", ".join(f"{name} {value}" for name, value in conditions(versions).items())
