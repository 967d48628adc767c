"""The real Helm (its Go SDK): how it reads values, and what it makes of a chart.

``tests/data/charts`` has charts of our own; a real chart is rendered by giving its folder.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import helm_python
import yaml

from judges.kubectl import differences, read_by_kubectl

# Helm's own (SplitManifests): a chart may go on in the same line.
SEPARATOR = re.compile(r"(?:^|\s*\n)---\s*")


def values_problems(text: str) -> list[str]:
    """Why Helm does not read a values file, or where it reads other values than PyYAML."""
    try:
        theirs = helm_python.values_from_yaml(text)
    except helm_python.HelmError as refused:
        return [str(refused)]
    return differences(yaml.safe_load(text) or {}, theirs, "")


def rendered(
    chart: Path, values: str, *, release: str = "demo", namespace: str = "llm"
) -> list[dict[str, Any]]:
    """The objects that ``helm template RELEASE CHART -f VALUES`` prints, as kubectl reads them.

    Raises:
        helm_python.HelmError: the chart or a template refuses the values.
        subprocess.CalledProcessError: what came out is no YAML.
    """
    with helm_python.Chart.load(chart) as loaded:
        # Like helm, from the values' text: a template sees Go's numbers, not Python's.
        parts = loaded.render(
            helm_python.values_from_yaml(values), name=release, namespace=namespace
        )
    files = [text for name, text in sorted(parts.items()) if name.endswith((".yaml", ".yml"))]
    manifests = [one for text in files for one in SEPARATOR.split(text)]
    return read_by_kubectl("\n---\n".join(text for text in manifests if text.strip()))


def lint_problems(chart: Path, values: str) -> list[str]:
    """What ``helm lint --strict CHART -f VALUES`` says from warning up."""
    report = helm_python.lint(chart, helm_python.values_from_yaml(values), strict=True)
    found = [one["error"] for one in report["messages"] if one["severity"] >= 2]
    return found or report["errors"]
