"""Plans of the bundled and the golden workloads, made once, and files held against kept ones."""

from __future__ import annotations

import os
import shutil
from functools import cache
from pathlib import Path

from vllm_advisor.api.planning import PlanReport, plan
from vllm_advisor.api.writing import write_artifacts
from vllm_advisor.knowledge.bundled_workloads import bundled_workloads
from vllm_advisor.types.plan import Artifact

TESTS = Path(__file__).parent
_OF_TARGETS = TESTS / "golden_targets" / "every-setting.yaml"
_FILES = {path.parent.name: path for path in (TESTS / "golden").glob("*/workload.yaml")}
OWN = sorted(_FILES)
NAMES = [*bundled_workloads(), *OWN]
SPANNING = "pipeline-parallel"  # one replica takes two nodes of eight GPUs
EVERY_SETTING = _OF_TARGETS.stem  # for targets alone: its plan is nothing new


@cache
def report(name: str, *environment: str) -> PlanReport:
    """The plan of a bundled or golden workload in an environment."""
    text = text_of(name)
    if text is None:
        return plan(name, environment=environment)
    return plan("workload.yaml", text=text, environment=environment)


def text_of(name: str) -> str | None:
    """The workload's file; None where it is bundled with the package."""
    path = (_FILES | {EVERY_SETTING: _OF_TARGETS}).get(name)
    return None if path is None else path.read_text(encoding="utf-8")


def assert_kept(artifacts: tuple[Artifact, ...], expected: Path, scratch: Path) -> Path:
    """The bytes are those of a folder, which ``UPDATE_GOLDEN=1`` rewrites; where they are now."""
    written = scratch / "out"
    write_artifacts(artifacts, written, overwrite=False)
    if os.environ.get("UPDATE_GOLDEN"):
        shutil.rmtree(expected, ignore_errors=True)
        shutil.copytree(written, expected)
    assert _contents(written) == _contents(expected)
    return written


def _contents(folder: Path) -> dict[str, bytes]:
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}
