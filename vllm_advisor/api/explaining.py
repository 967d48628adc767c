"""explain(): reads a plan.yaml back, to answer why for any flag or number in it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from vllm_advisor.errors import InputError

PLAN_FILE = "plan.yaml"
_SCHEMA_VERSION = "1"
_EXPECTED = ("schema_version", "decisions", "figures", "instances")


def explain(plan_file: str | Path, *, text: str | None = None) -> dict[str, Any]:
    """The content of a plan.yaml.

    Args:
        plan_file: the file, or a folder that has a plan.yaml.
        text: the file's text, when ``plan_file`` is only its name.

    Raises:
        InputError: the file cannot be read or is no plan.
    """
    path = _path(plan_file)
    if text is None:
        text = plan_text(plan_file)
    try:
        data = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"{path}:{mark.line + 1}:{mark.column + 1}" if mark else str(path)
        raise InputError(
            f"this is no YAML: {getattr(error, 'problem', None) or error}",
            where=where,
            fix="plan again: vllm-advisor plan WORKLOAD --output-dir DIR",
        ) from None
    if not isinstance(data, dict) or any(key not in data for key in _EXPECTED):
        raise InputError(
            "this is no plan.yaml of vllm-advisor",
            where=str(path),
            fix="`vllm-advisor plan workload.yaml --output-dir DIR` writes one",
        )
    if str(data["schema_version"]) != _SCHEMA_VERSION:
        raise InputError(
            f"schema_version {data['schema_version']} is not {_SCHEMA_VERSION}, the one that "
            "this version reads",
            where=str(path),
            fix="plan again with this version: vllm-advisor plan WORKLOAD --output-dir DIR",
        )
    return data


def plan_text(plan_file: str | Path) -> str:
    """The text of a plan.yaml, named itself or by its folder.

    Raises:
        InputError: the file cannot be read.
    """
    path = _path(plan_file)
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"cannot read: {getattr(error, 'strerror', None) or error}",
            where=str(path),
            fix="name a plan.yaml that `vllm-advisor plan --output-dir` wrote",
        ) from None


def _path(plan_file: str | Path) -> Path:
    path = Path(plan_file)
    return path / PLAN_FILE if path.is_dir() else path
