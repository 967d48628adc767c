from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "routing"))  # policies.py

TEXT = "\n".join(
    f"Chapter {n} tells of a river. It runs past mill {n}. Nobody counts its fish!"
    for n in range(400)
)


@pytest.fixture(autouse=True)
def no_keys_no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.lower().endswith("_proxy") or name.endswith("_API_KEY"):
            monkeypatch.delenv(name)


@pytest.fixture
def document(tmp_path: Path) -> Path:
    path = tmp_path / "river.txt"
    path.write_text(TEXT)
    return path
