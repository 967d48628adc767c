"""The real shellcheck."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

SHELLCHECK = Path(sys.executable).with_name("shellcheck")


def script_problems(text: str, *, shell: str = "bash") -> list[str]:
    """Everything shellcheck remarks, style included."""
    done = subprocess.run(
        [SHELLCHECK, f"--shell={shell}", "--severity=style", "--norc", "--format=json", "-"],
        input=text,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    if done.returncode not in (0, 1):
        raise RuntimeError(done.stderr)
    return [
        f"line {one['line']}: SC{one['code']}: {one['message']}" for one in json.loads(done.stdout)
    ]
