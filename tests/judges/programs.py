"""Programs that may be installed: beside Python, where wheels put them, or anywhere."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path


def find_program(*names: str) -> str | None:
    """The path of the first that is there; those beside Python come first."""
    beside = (Path(sys.executable).with_name(name) for name in names)
    found = next((str(path) for path in beside if path.exists()), None)
    return found or next((path for name in names if (path := shutil.which(name))), None)
