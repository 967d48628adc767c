"""What llm-d's router makes of its values: keys, the picker's configuration, and who takes a prompt.

The endpoint picker is a Go program that cannot be had here. Its plugins' names and parameters and
the rule of ``context-length-aware`` are those of llm-d-router v0.10.0 (cmd/epp/runner/runner.go,
pkg/epp/framework/plugins/scheduling/*). The chart itself is judged with by giving its folder.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from judges.production_stack import unread

DATA = Path(__file__).parents[1] / "data"
PROFILE = DATA / "chart_keys" / "llm-d-router-gateway-0.10.0.json"
RANGE = "llm-d.ai/context-length-range"
# By type: what kind of plugin it is, and the parameters that its factory reads.
PLUGINS: dict[str, tuple[str, frozenset[str]]] = {
    "context-length-aware": ("filter", frozenset({"label", "enableFiltering"})),
    "queue-scorer": ("scorer", frozenset()),
    "kv-cache-utilization-scorer": ("scorer", frozenset()),
    "prefix-cache-scorer": (
        "scorer",
        frozenset({"prefixMatchInfoProducerName", "matchLengthWeight", "matchLengthScaleTokens"}),
    ),
    "max-score-picker": ("picker", frozenset({"maxNumOfEndpoints"})),
}


def router_values_problems(values: dict[str, Any]) -> list[str]:
    """Keys that no template of the chart reads, and what the picker would refuse."""
    epp = values["router"]["epp"]
    text = epp["pluginsCustomConfig"].get(epp["pluginsConfigFile"])
    if text is None:
        return [f"{epp['pluginsConfigFile']} is not among the files"]
    config = yaml.safe_load(text)
    return [
        *(f"{path}: no template reads it" for path in unread(values, profile()["keys"])),
        *picker_problems(config),
    ]


def picker_problems(config: dict[str, Any]) -> list[str]:
    """What is wrong with an EndpointPickerConfig of plugins that are known here."""
    found = []
    if (config["apiVersion"], config["kind"]) != ("llm-d.ai/v1alpha1", "EndpointPickerConfig"):
        found.append(f"{config['apiVersion']} {config['kind']}")
    defined = [each.get("name", each["type"]) for each in config["plugins"]]
    for each in config["plugins"]:
        if each["type"] not in PLUGINS:
            found.append(f"no plugin {each['type']}")
        elif unknown := each.get("parameters", {}).keys() - PLUGINS[each["type"]][1]:
            found.append(f"{each['type']} does not read {sorted(unknown)}")
    for each in config["schedulingProfiles"]:
        used = [one["pluginRef"] for one in each["plugins"]]
        found += [f"{name} is not defined" for name in used if name not in defined]
        found += [f"{name} is not used" for name in defined if name not in used]
        kinds = [PLUGINS[name][0] for name in used if name in PLUGINS]
        if kinds.count("picker") != 1:
            found.append(f"{kinds.count('picker')} pickers in {each['name']}")
    return found


def takers(pods: Iterable[dict[str, Any]], tokens: int) -> list[str]:
    """Whose pods the filter leaves for a prompt, by the label app.kubernetes.io/instance.

    A pod without a range takes any prompt, one whose range cannot be read takes none.
    """
    found = []
    for pod in pods:
        labels = pod["metadata"]["labels"]
        if RANGE in labels:
            low, high = (int(part) for part in labels[RANGE].split("-"))
            if low > high or not low <= tokens <= high:
                continue
        found.append(labels["app.kubernetes.io/instance"])
    return found


def from_elsewhere(found: Iterable[dict[str, Any]], values: dict[str, Any]) -> list[dict[str, Any]]:
    """What routes point at and others make: the Gateway, and the pool that the chart makes."""
    made = []
    for route in (one for one in found if one["kind"] == "HTTPRoute"):
        metadata = route["metadata"]
        scope = {"namespace": metadata["namespace"]} if "namespace" in metadata else {}
        (gateway,) = route["spec"]["parentRefs"]
        where = {"namespace": gateway["namespace"]} if "namespace" in gateway else scope
        name = route["spec"]["rules"][0]["backendRefs"][0]["name"]
        made += [
            {
                "apiVersion": "gateway.networking.k8s.io/v1",
                "kind": "Gateway",
                "metadata": {"name": gateway["name"], **where},
            },
            {
                "apiVersion": "inference.networking.k8s.io/v1",
                "kind": "InferencePool",
                "metadata": {"name": name, **scope},
                "spec": {
                    "selector": {"matchLabels": values["router"]["modelServers"]["matchLabels"]},
                    "targetPorts": values["router"]["modelServers"]["targetPorts"],
                },
            },
        ]
    return made


def with_library(chart: Path, into: Path) -> Path:
    """A copy of the chart with its library where ``helm dependency build`` puts it."""
    copy = Path(shutil.copytree(chart, into / chart.name))
    about = yaml.safe_load((copy / "Chart.yaml").read_text(encoding="utf-8"))
    for one in about["dependencies"]:
        beside = (chart / one["repository"].removeprefix("file://")).resolve()
        shutil.copytree(beside, copy / "charts" / one["name"])
    return copy


@cache
def profile() -> dict[str, Any]:
    return json.loads(PROFILE.read_text(encoding="utf-8"))
