"""Every file that the project renders, read back by the product's own readers, and checked.

``parse(render(plan)) == plan.deployment`` and ``check(render(plan))`` has no error and no warning,
for every target that starts servers and for plan.yaml.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from golden_plans import EVERY_SETTING, NAMES, SPANNING, report

from vllm_advisor.api.checking import check
from vllm_advisor.api.planning import PlanReport
from vllm_advisor.api.writing import write_artifacts
from vllm_advisor.parse.deployed import Deployed, ServedInstance
from vllm_advisor.parse.kinds import kind_of
from vllm_advisor.parse.sources import read_source
from vllm_advisor.render.names import dns_label, object_name
from vllm_advisor.types.finding import Severity
from vllm_advisor.types.plan import Instance

ONE_NODE = ("helm-production-stack", "kserve")  # have no replicas over several nodes
KINDS = {
    "compose": "compose",
    "helm-production-stack": "helm-production-stack",
    "kserve": "kubernetes",
    "kubernetes": "kubernetes",
    "leaderworkerset": "kubernetes",
    "llm-d": "kubernetes",
    "plan": "plan",
    "serve": "shell",
}
# What a platform adds to the plan's own arguments, or each of several pods or nodes to its own.
ADDED = {
    "compose": {"node_rank", "headless", "master_addr", "host"},
    "helm-production-stack": {"host", "port"},
    "kserve": {"port", "served_model_name"},
    "kubernetes": {"node_rank", "headless", "distributed_executor_backend"},
    "leaderworkerset": {"node_rank", "headless"},
    "llm-d": {"node_rank", "headless", "port"},
    "plan": set(),
    "serve": set(),
}
WORDS = [
    (),
    ("namespace=llm", "labels={team: search}", "gpu_allocation=dra", "autoscaler=hpa"),
    ("model_cache=ephemeral", "autoscaler=none", "monitoring=none"),
]


def artifacts_of(made: PlanReport, target: str) -> dict[str, str]:
    """The files of a target that start servers."""
    every = made.artifacts() if target == "plan" else made.target_files((target,))
    wanted = (".sh",) if target == "serve" else ("plan.yaml",) if target == "plan" else (".yaml",)
    return {a.path: a.text for a in every if a.path.endswith(wanted)}


def read(made: PlanReport, target: str) -> list[Deployed]:
    """What the target's files deploy, their kinds found out by name and content."""
    found = []
    for path, text in artifacts_of(made, target).items():
        if kind_of(path, text) == KINDS[target]:
            found.append(read_source(text, path, lambda _image: made.engine))
    return found


def servers_of(made: PlanReport, target: str) -> dict[str, list[ServedInstance]]:
    """The servers read, by the names of the plan's instances."""
    servers = [server for each in read(made, target) for server in each.instances]
    named: dict[str, list[ServedInstance]] = {}
    for instance in made.plan.deployment.instances:
        own = object_name(made.plan, instance)
        names = {own, instance.name, f"serve-{instance.name}.sh", dns_label(instance.name)}
        named[instance.name] = [
            server
            for server in servers
            if names & {*server.name.split("/"), server.location.file}
            or (target == "compose" and server.name.rpartition("-")[0] in names)
        ]
    assert sum(map(len, named.values())) == len(servers), "a server of no instance"
    return named


def assert_same(server: ServedInstance, instance: Instance, target: str) -> None:
    command = server.command
    assert (command.unknown, command.problems) == ((), ())
    assert {u.dest for u in command.unresolved} <= {"master_addr"}
    assert command.engine_args.model == instance.engine_args.model

    def compared(args: dict[str, Any]) -> dict[str, Any]:
        return {dest: v for dest, v in args.items() if dest not in ADDED[target]}

    planned = compared(instance.engine_args.as_dict())
    if command.engine_args.get("distributed_executor_backend") == "ray":
        planned.pop("nnodes", None)
    assert compared(command.engine_args.as_dict()) == planned
    if server.gpus is not None:
        nodes = server.nodes.value if server.nodes else 1
        assert server.gpus.value * (1 if target == "compose" else nodes) <= instance.gpus


@pytest.mark.parametrize("target", KINDS)
@pytest.mark.parametrize("name", [*NAMES, EVERY_SETTING])
def test_the_plan_is_read_back(name: str, target: str) -> None:
    if name == SPANNING and target in ONE_NODE:
        pytest.skip("refused: a replica spans nodes")
    made = report(name)
    for instance_name, servers in servers_of(made, target).items():
        instance = next(i for i in made.plan.deployment.instances if i.name == instance_name)
        assert servers
        for server in servers:
            assert_same(server, instance, target)


@pytest.mark.parametrize("words", WORDS[1:], ids=" ".join)
@pytest.mark.parametrize("target", ["kubernetes", "kserve", "llm-d"])
@pytest.mark.parametrize("name", ["contract-review", "coding-agents"])
def test_it_is_read_back_from_other_places(name: str, target: str, words: tuple[str, ...]) -> None:
    made = report(name, *words)
    for instance_name, servers in servers_of(made, target).items():
        instance = next(i for i in made.plan.deployment.instances if i.name == instance_name)
        (server,) = servers
        assert_same(server, instance, target)
        assert server.gpus is not None
        assert server.gpus.value == instance.gpus
        # NVML's name in a device claim, the label of it in a node selector.
        (gpu,) = {name.value.replace(" ", "-") for name in server.gpu_names}
        assert gpu == "-".join(made.plan.node.accelerator.name.split())
        assert server.vllm_version is not None
        assert server.vllm_version.value == made.plan.vllm_version


@pytest.mark.parametrize("target", KINDS)
@pytest.mark.parametrize("name", [*NAMES, EVERY_SETTING])
def test_check_finds_nothing(name: str, target: str, tmp_path: Path) -> None:
    """GPUs, versions and counts come from the files wherever they state them."""
    if name == SPANNING and target in ONE_NODE:
        pytest.skip("refused: a replica spans nodes")
    made, node = report(name), report(name).plan.node
    states_gpu = target not in ("compose", "serve")
    for words in WORDS if target == "kubernetes" and name == "contract-review" else WORDS[:1]:
        placed = report(name, *words)
        folder = tmp_path / "-".join(words)[:40] / "out"
        own = target not in ("plan", "serve")
        write_artifacts(
            placed.artifacts((target,)) if own else placed.artifacts(), folder, overwrite=False
        )
        sources = [folder / path for path in artifacts_of(placed, target)]
        sources = [s for s in sources if kind_of(s.name, s.read_text("utf-8")) == KINDS[target]]
        found = check(
            sources,
            gpu=None if states_gpu else node.accelerator.id,
            gpu_count=node.gpu_count if target == "serve" else None,
            node_count=None if states_gpu else node.node_count,
            vllm_version=None if target != "serve" else made.plan.vllm_version,
        )
        bad = (Severity.ERROR, Severity.WARNING)
        assert [f.message for f in found.findings if f.severity in bad] == []
        # No workload is given, so the rules of load say that they were not asked.
        asked = [n.reason for n in found.not_checked if "give --workload" not in n.reason]
        assert asked == []
        assert found.vllm_version == made.plan.vllm_version
        assert {row.gpu for row in found.instances} == {node.accelerator.id}
        tokens = {i.figures.capacity.tokens for i in made.plan.deployment.instances if i.figures}
        assert {f["kv_cache"]["tokens"] for f in found.figures.values()} == tokens
