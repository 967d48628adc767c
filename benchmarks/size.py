"""What a plain install brings: megabytes of this package and of all it needs."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
LIMIT_MB = 60


def megabytes(folder: Path) -> float:
    return sum(p.stat().st_size for p in folder.rglob("*") if p.is_file()) / 1e6


def main() -> None:
    with tempfile.TemporaryDirectory() as made:
        subprocess.run(
            [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
             "--target", made, str(ROOT)],
            check=True,
        )  # fmt: skip
        parts = sorted(
            ((megabytes(p) if p.is_dir() else p.stat().st_size / 1e6, p.name)
             for p in Path(made).iterdir()),
            reverse=True,
        )  # fmt: skip
    total = sum(size for size, _ in parts)
    for size, name in parts[:8]:
        print(f"{size:7.1f} MB  {name}")
    print(f"Base install: {total:.1f} MB with byte code (limit {LIMIT_MB} MB).")


if __name__ == "__main__":
    main()
