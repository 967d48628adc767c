"""Where templates/ and profiles/ lie: packaged under _data/, or the repository root when editable.

The only module that knows; it reads nothing itself.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path


@cache
def data_root() -> Path:
    """Folder that holds ``templates/`` and ``profiles/``."""
    package = Path(__file__).resolve().parent
    packaged = package / "_data"
    return packaged if packaged.is_dir() else package.parent


def profiles(kind: str) -> Path:
    """Folder of one kind of profile: ``gpus``, ``models``, ``engines``, ``multimodal``, ..."""
    return data_root() / "profiles" / kind


def templates() -> Path:
    """Folder of the Jinja templates."""
    return data_root() / "templates"
