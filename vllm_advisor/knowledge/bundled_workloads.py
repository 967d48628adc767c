"""The workloads that come with the tool, by name: nothing in them is read here."""

from __future__ import annotations

from difflib import get_close_matches
from pathlib import Path

from vllm_advisor import resources
from vllm_advisor.errors import InputError


def bundled_workloads() -> tuple[str, ...]:
    """Names of the bundled workloads, sorted."""
    return tuple(sorted(path.stem for path in resources.profiles("workloads").glob("*.yaml")))


def bundled_workload_path(name: str) -> Path:
    """File of a bundled workload.

    Raises:
        InputError: there is none of that name.
    """
    names = bundled_workloads()
    if name not in names:
        near = get_close_matches(name, names, n=1, cutoff=0.4)
        fix = f"did you mean {near[0]}? " if near else ""
        what = f"there is no bundled workload {name[:60]!r}"
        raise InputError(what, where=name[:60], fix=f"{fix}Bundled are {', '.join(names)}")
    return resources.profiles("workloads") / f"{name}.yaml"


def starter_text(profile: str) -> str:
    """A commented workload file to start from: the bundled workload itself.

    Raises:
        InputError: there is none of that name.
    """
    return bundled_workload_path(profile).read_text(encoding="utf-8")
