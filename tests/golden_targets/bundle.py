"""What the tests of every render target share: plans, golden folders, words back to arguments."""

from __future__ import annotations

import os
import shlex
import shutil
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from vllm_advisor.api.planning import PlanReport, plan
from vllm_advisor.api.writing import write_artifacts
from vllm_advisor.knowledge.workloads import bundled_workloads
from vllm_advisor.parse.serve_command import parse_shell_script
from vllm_advisor.types.engine import EngineArgs, EngineFacts

LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
HERE = Path(__file__).parent
WORKLOADS = HERE.parent / "golden"
OWN = sorted(p.parent.name for p in WORKLOADS.glob("*/workload.yaml"))
NAMES = [*bundled_workloads(), *OWN]
SPANNING = "pipeline-parallel"  # one replica takes two nodes of eight GPUs
KEPT = ("contract-review", "coding-agents", "interactive-chat")  # whose files are kept


@cache
def report(name: str, *environment: str) -> PlanReport:
    """The plan of a bundled or golden workload in an environment."""
    if name not in OWN:
        return plan(name, environment=environment)
    text = (WORKLOADS / name / "workload.yaml").read_text()
    return plan("workload.yaml", text=text, environment=environment)


def assert_as_kept(target: str, name: str, kept_name: str, tmp_path: Path, *words: str) -> None:
    """The target's files are the bytes in its golden folder; ``UPDATE_GOLDEN=1`` rewrites it."""
    artifacts = report(name, *words).artifacts((target,))
    own = tuple(a for a in artifacts if not a.about_the_plan)
    written = tmp_path / "out"
    write_artifacts(own, written, overwrite=False)
    expected = HERE / target / kept_name
    if os.environ.get("UPDATE_GOLDEN"):
        shutil.rmtree(expected, ignore_errors=True)
        shutil.copytree(written, expected)
    assert contents(written) == contents(expected)


def contents(folder: Path) -> dict[str, str]:
    """Text of every file by its path in a folder."""
    files = (p for p in sorted(folder.rglob("*")) if p.is_file())
    return {p.relative_to(folder).as_posix(): p.read_text() for p in files}


def documents(text: str) -> list[Any]:
    """Every document of a YAML file that is not empty."""
    return [one for one in yaml.load_all(text, Loader=LOADER) if one is not None]


def objects(made: PlanReport, target: str) -> list[dict[str, Any]]:
    """Every document of the target's YAML files but kustomization.yaml, as PyYAML reads it."""
    return [
        document
        for artifact in made.artifacts((target,))
        if artifact.path.endswith(".yaml")
        and not artifact.about_the_plan
        and not artifact.path.endswith("kustomization.yaml")
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


def kubernetes_words(words: list[str], variables: dict[str, str] | None = None) -> list[str]:
    """What a container gets for its command and args: ``$(NAME)`` expanded, ``$$`` one dollar."""
    return [_expanded(word, variables or {}) for word in words]


def _expanded(word: str, variables: dict[str, str]) -> str:
    out, rest = "", word
    while "$" in rest:
        before, _, rest = rest.partition("$")
        out += before
        name, closed, after = rest[1:].partition(")")
        if rest.startswith("$"):
            out, rest = out + "$", rest[1:]
        elif rest.startswith("(") and closed and name in variables:
            out, rest = out + variables[name], after
        else:
            out += "$"
    return out + rest


def engine_args(words: list[str], engine: EngineFacts) -> EngineArgs:
    """The arguments of the command ``vllm serve WORDS``, read as a shell would hand them over."""
    (command,) = parse_shell_script(shlex.join(["vllm", "serve", *words]), "words", engine)
    assert not command.unknown
    assert not command.problems
    return command.engine_args
