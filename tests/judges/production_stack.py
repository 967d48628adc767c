"""Values for production-stack's chart: its schema, the keys its templates read, what Helm renders.

The chart keeps its schema out of its package (.helmignore), and Helm drops a value that no
template reads: both have to be looked at here. ``CHART`` is a stand-in of our own that takes the
values of one engine the way the chart does; the chart itself is judged with by giving its folder,
once ``without_subcharts`` has cut what cannot be had without a network.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import yaml

from judges.helm import rendered

DATA = Path(__file__).parents[1] / "data"
PROFILE = DATA / "chart_keys" / "vllm-stack-0.1.12.json"
CHART = DATA / "charts" / "vllm-stack"


def stack_values_problems(values: dict[str, Any]) -> list[str]:
    """What the chart's schema refuses, and keys that none of its templates reads."""
    schema = jsonschema.Draft7Validator(profile()["schema"])
    errors = sorted(schema.iter_errors(values), key=lambda error: error.json_path)
    refused = [f"{one.json_path}: {one.message[:200]}" for one in errors]
    return refused + [f"{path}: no template reads it" for path in unread(values, profile()["keys"])]


def unread(values: Any, keys: dict[str, Any], path: str = "$") -> Iterator[str]:
    """Paths of values that the tree of keys does not lead to."""
    if "**" in keys:
        return
    if isinstance(values, list):
        for index, value in enumerate(values):
            if isinstance(value, dict | list):
                yield from unread(value, keys.get("[]", {}), f"{path}[{index}]")
    elif isinstance(values, dict):
        for key, value in values.items():
            below = keys.get(key, keys.get("*"))
            if below is None:
                yield f"{path}.{key}"
            else:
                yield from unread(value, below, f"{path}.{key}")


def engine_commands(values: str, *, chart: Path = CHART, release: str = "demo") -> dict[str, Any]:
    """The words of each engine's ``vllm serve``, by its ``modelSpec`` name."""
    return {
        one["metadata"]["labels"]["model"]: one["spec"]["containers"][0]["command"]
        for one in engine_pods(values, chart=chart, release=release)
    }


def engine_pods(values: str, *, chart: Path = CHART, release: str = "demo") -> list[dict[str, Any]]:
    """The pod templates of all engines."""
    return [
        one["spec"]["template"]
        for one in rendered(chart, values, release=release)
        if one["kind"] == "Deployment" and one["metadata"]["name"].endswith("-deployment-vllm")
    ]


def without_subcharts(chart: Path, into: Path) -> Path:
    """A copy of a chart that renders without its dependencies, which are not at hand."""
    copy = Path(shutil.copytree(chart, into / chart.name))
    about = yaml.safe_load((copy / "Chart.yaml").read_text(encoding="utf-8"))
    about.pop("dependencies", None)
    (copy / "Chart.yaml").write_text(yaml.safe_dump(about), encoding="utf-8")
    (copy / "Chart.lock").unlink(missing_ok=True)
    return copy


@cache
def profile() -> dict[str, Any]:
    return json.loads(PROFILE.read_text(encoding="utf-8"))
