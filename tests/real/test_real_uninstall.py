"""Installed from the wheel, vLLM finds the plugin; uninstalled, nothing of it is left.

No server is started: one whose vLLM loads no plugin of ours is in test_real_plugin.py.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

pytestmark = [pytest.mark.vllm, pytest.mark.filterwarnings("ignore")]

REPOSITORY = Path(__file__).parents[2]
GROUPS = ("vllm.general_plugins", "vllm.stat_logger_plugins")
# What vLLM does as it starts, before and after.
LOOK = """
import json, logging, subprocess, sys
from importlib.metadata import entry_points, packages_distributions
from vllm.plugins import load_plugins_by_group

# Not all versions set their logging up where they are used as a library.
logging.getLogger("vllm").setLevel(logging.DEBUG)
logging.getLogger("vllm").addHandler(logging.StreamHandler(sys.stdout))

def seen(groups):
    loaded = {name: plugin.__module__ for name, plugin in load_plugins_by_group(groups[0]).items()}
    named = [sorted(e.value for e in entry_points(group=g, name="advisor")) for g in groups]
    return loaded.get("advisor"), named, "vllm_advisor" in packages_distributions()

groups = json.loads(sys.argv[1])
before = seen(groups)
subprocess.run(json.loads(sys.argv[2]), check=True)
print("uninstalled", flush=True)
print("found", json.dumps([before, seen(groups)]))
"""


def python_with_vllm(folder: Path) -> Path:
    """A new environment that sees all that this one has, but not this package."""
    shared = folder / "shared"
    shared.mkdir()
    for entry in Path(sysconfig.get_path("purelib")).iterdir():
        if "vllm_advisor" not in entry.name and entry.name != "__pycache__":
            (shared / entry.name).symlink_to(entry)
    venv.create(folder / "env")
    site = next((folder / "env" / "lib").glob("python3*/site-packages"))
    (site / "shared.pth").write_text(f"{shared}\n", encoding="utf-8")
    return folder / "env" / "bin" / "python"


def test_nothing_is_left(tmp_path: Path) -> None:
    python = python_with_vllm(tmp_path)
    env = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"} | {
        "VLLM_LOGGING_LEVEL": "DEBUG",
        "PIP_NO_INDEX": "1",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    }
    pip = [sys.executable, "-m", "pip", "--quiet"]
    make = [*pip, "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(tmp_path)]
    subprocess.run([*make, str(REPOSITORY)], check=True, env=env, cwd=tmp_path)
    (wheel,) = tmp_path.glob("vllm_advisor-*.whl")

    before = set((tmp_path / "env").rglob("*"))
    there = [*pip, "--python", str(python)]
    subprocess.run([*there, "install", "--no-deps", str(wheel)], check=True, env=env, cwd=tmp_path)
    assert (tmp_path / "env" / "bin" / "vllm-advisor").exists()
    done = subprocess.run(
        [
            *(python, "-c", LOOK, json.dumps(GROUPS)),
            json.dumps([*there, "uninstall", "--yes", "vllm-advisor"]),
        ],
        env=env,
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout[-4000:]
    log, _, after = done.stdout.partition("uninstalled\n")
    log_after, _, found = after.partition("found ")
    assert "advisor -> vllm_advisor.plugin:preflight" in log, "vLLM tells of its plugins"
    assert "plugins for group vllm.general_plugins" in log_after, "it looked once more"
    assert "advisor" not in log_after
    before_it, after_it = json.loads(found.splitlines()[0])
    entries = ["vllm_advisor.plugin:preflight"], ["vllm_advisor.plugin:StatLogger"]
    assert before_it == ["vllm_advisor.plugin", list(entries), True]
    assert after_it == [None, [[], []], False]
    assert set((tmp_path / "env").rglob("*")) - before == set()
