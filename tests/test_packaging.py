"""The wheel carries what git tracks and nothing else, and works outside the repository."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("dist")
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "build",
            "--wheel",
            "--no-isolation",
            "--outdir",
            str(out),
            str(ROOT),
        ],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return next(out.glob("*.whl"))


def test_wheel_carries_the_tracked_data(wheel: Path) -> None:
    tracked = subprocess.run(
        ["git", "ls-files", "templates", "profiles", "vllm_advisor"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    ).stdout.split()
    if not tracked:
        pytest.skip("not a git checkout")
    expected = {
        name if name.startswith("vllm_advisor/") else f"vllm_advisor/_data/{name}"
        for name in tracked
        if (ROOT / name).exists()
    }
    found = {n for n in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in n}
    assert expected <= found
    assert not [n for n in found - expected if not n.endswith((".py", ".yaml", ".j2", ".typed"))]


def test_wheel_plans_outside_the_repository(wheel: Path, tmp_path: Path) -> None:
    site = tmp_path / "site"
    zipfile.ZipFile(wheel).extractall(site)
    code = (
        f"import sys; sys.path.insert(0, {str(site)!r})\n"
        "import vllm_advisor, vllm_advisor.resources as r\n"
        f"assert vllm_advisor.__file__.startswith({str(site)!r}), vllm_advisor.__file__\n"
        "assert r.data_root().name == '_data'\n"
        "sys.argv = ['vllm-advisor', 'plan', 'contract-review', '--format', 'json']\n"
        "from vllm_advisor.cli import main\n"
        "main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert '"feasible": true' in done.stdout


def test_py_typed_is_shipped(wheel: Path) -> None:
    assert "vllm_advisor/py.typed" in zipfile.ZipFile(wheel).namelist()


def test_the_plugin_is_registered(wheel: Path) -> None:
    archive = zipfile.ZipFile(wheel)
    name = next(n for n in archive.namelist() if n.endswith(".dist-info/entry_points.txt"))
    text = archive.read(name).decode()
    assert "[vllm.general_plugins]\nadvisor = vllm_advisor.plugin:preflight\n" in text
    assert "[vllm.stat_logger_plugins]\nadvisor = vllm_advisor.plugin:StatLogger\n" in text
