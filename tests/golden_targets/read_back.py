"""What the tests of every render target share: kept files, and words back to arguments."""

from __future__ import annotations

import dataclasses
import shlex
from pathlib import Path
from typing import Any

import yaml
from golden_plans import TESTS, assert_kept, report

from vllm_advisor.api.planning import PlanReport
from vllm_advisor.parse.serve_command import parse_shell_script
from vllm_advisor.types.engine import EngineArgs, EngineFacts

LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
KEPT = ("contract-review", "coding-agents", "interactive-chat")  # whose files are kept


def assert_as_kept(target: str, name: str, kept_name: str, tmp_path: Path, *words: str) -> None:
    """The target's files are the bytes in ``<target>/<kept_name>``, below the target's folder."""
    own = list(report(name, *words).target_files((target,)))
    below = tuple(dataclasses.replace(a, path=a.path.removeprefix(f"{target}/")) for a in own)
    assert all(a.path != b.path for a, b in zip(own, below, strict=True))
    assert_kept(below, TESTS / "golden_targets" / target / kept_name, tmp_path)


def documents(text: str) -> list[Any]:
    """Every document of a YAML file that is not empty."""
    return [one for one in yaml.load_all(text, Loader=LOADER) if one is not None]


def objects(made: PlanReport, target: str) -> list[dict[str, Any]]:
    """Every document of the target's YAML files but kustomization.yaml, as PyYAML reads it."""
    return [
        document
        for artifact in made.target_files((target,))
        if artifact.path.endswith(".yaml") and not artifact.path.endswith("kustomization.yaml")
        for document in documents(artifact.text)
    ]


def replicas_of(controller: dict[str, Any], found: list[dict[str, Any]]) -> int:
    """Replicas that are kept at least: the controller's own, or its autoscaler's."""
    least = {"ScaledObject": "minReplicaCount", "HorizontalPodAutoscaler": "minReplicas"}
    name = controller["metadata"]["name"]
    scaled = [
        o["spec"][least[o["kind"]]]
        for o in found
        if o["kind"] in least and o["spec"]["scaleTargetRef"]["name"] == name
    ]
    assert len(scaled) + ("replicas" in controller["spec"]) == 1, "two would fight over it"
    return int(scaled[0] if scaled else controller["spec"]["replicas"])


def engine_args(words: list[str], engine: EngineFacts) -> EngineArgs:
    """The arguments of the command ``vllm serve WORDS``, read as a shell would hand them over."""
    (command,) = parse_shell_script(shlex.join(["vllm", "serve", *words]), "words", engine)
    assert not command.unknown
    assert not command.problems
    return command.engine_args
