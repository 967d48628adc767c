"""LeaderWorkerSets: chosen by itself where an instance spans nodes, and as a target of its own."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from golden_plans import NAMES, SPANNING, report
from judges.kubelet import expanded_words
from judges.manifests import folder_problems
from read_back import assert_as_kept, engine_args, objects, replicas_of

from vllm_advisor.api.writing import write_artifacts
from vllm_advisor.render.names import object_name

LEADER = {"LWS_LEADER_ADDRESS": "leader.example", "LWS_GROUP_SIZE": "2", "LWS_WORKER_INDEX": "0"}
WORKER = {**LEADER, "LWS_WORKER_INDEX": "1"}


def test_files_are_as_kept(tmp_path: Path) -> None:
    assert_as_kept("kubernetes", SPANNING, SPANNING, tmp_path / "mp")
    assert_as_kept("kubernetes", SPANNING, f"{SPANNING}-ray", tmp_path / "ray", "multi_node=ray")
    assert_as_kept("leaderworkerset", "interactive-chat", "interactive-chat", tmp_path / "one")


def test_an_instance_over_two_nodes_is_a_group_of_two_pods() -> None:
    made = report(SPANNING)
    (instance,) = made.plan.deployment.instances
    (group,) = [o for o in objects(made, "kubernetes") if o["kind"] == "LeaderWorkerSet"]
    template = group["spec"]["leaderWorkerTemplate"]
    assert replicas_of(group, [group]) == instance.replicas
    assert template["size"] * 8 == instance.gpus == 16
    pods = [template["leaderTemplate"]["spec"], template["workerTemplate"]["spec"]]
    words = []
    for pod, variables in zip(pods, (LEADER, WORKER), strict=True):
        (container,) = pod["containers"]
        assert container["resources"]["limits"]["nvidia.com/gpu"] == "8"
        words.append(expanded_words(container["args"], variables))
    rank = ["--master-addr", "leader.example"]
    assert words[0][-2:] == rank
    assert words[1][-5:] == [*rank, "--node-rank", "1", "--headless"]
    assert words[0][:-2] == words[1][:-5]
    assert engine_args(words[0][:-2], made.engine) == instance.engine_args
    assert "startupProbe" in pods[0]["containers"][0]
    assert "startupProbe" not in pods[1]["containers"][0]


def test_only_the_leader_is_served_and_scraped() -> None:
    found = objects(report(SPANNING), "kubernetes")
    index = "leaderworkerset.sigs.k8s.io/worker-index"
    (service,) = [o for o in found if o["kind"] == "Service"]
    (monitor,) = [o for o in found if o["kind"] == "PodMonitor"]
    assert service["spec"]["selector"][index] == "0"
    assert monitor["spec"]["selector"]["matchLabels"][index] == "0"


def test_ray_gets_the_words_as_they_are(tmp_path: Path) -> None:
    """The script of the leader, run by bash with stand-ins for ray and vllm."""
    made = report(SPANNING, "multi_node=ray")
    (instance,) = made.plan.deployment.instances
    (group,) = [o for o in objects(made, "kubernetes") if o["kind"] == "LeaderWorkerSet"]
    template = group["spec"]["leaderWorkerTemplate"]
    (leader,) = template["leaderTemplate"]["spec"]["containers"]
    (worker,) = template["workerTemplate"]["spec"]["containers"]
    for name, body in (("ray", "exit 0"), ("vllm", "printf '%s\\0' \"$@\"")):
        (tmp_path / name).write_text(f"#!/bin/sh\n{body}\n")
        (tmp_path / name).chmod(0o755)
    env = {"PATH": f"{tmp_path}:/usr/bin:/bin", "VLLM_HOST_IP": "10.0.0.1", **LEADER}
    nasty = ["$(touch x)", "`id`", "a b", '"', "'", "{{x}}", "\n"]
    command = [*expanded_words(leader["command"]), *expanded_words(leader["args"]), *nasty]
    ran = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
    words = ran.stdout.split("\0")[:-1]
    assert words[0] == "serve"
    assert words[-2:] == ["--distributed-executor-backend", "ray"]
    assert words[-2 - len(nasty) : -2] == nasty
    read = engine_args(words[1 : -2 - len(nasty)], made.engine)
    kept = {dest: v for dest, v in instance.engine_args.as_dict().items() if dest != "nnodes"}
    assert read.as_dict() == kept
    assert "args" not in worker
    subprocess.run(worker["command"], env=env, check=True)


@pytest.mark.parametrize("name", NAMES)
def test_every_instance_as_a_group(name: str) -> None:
    made = report(name)
    found = objects(made, "leaderworkerset")
    groups = {o["metadata"]["name"]: o for o in found if o["kind"] == "LeaderWorkerSet"}
    for instance in made.plan.deployment.instances:
        whole = groups[object_name(made.plan, instance)]
        assert replicas_of(whole, found) == instance.replicas
        group = whole["spec"]
        template = group["leaderWorkerTemplate"]
        pod = template.get("leaderTemplate", template["workerTemplate"])["spec"]
        (container,) = pod["containers"]
        words = expanded_words(container["args"], LEADER)
        own = words[:-2] if template["size"] > 1 else words
        assert engine_args(own, made.engine) == instance.engine_args
        gpus = int(container["resources"]["limits"]["nvidia.com/gpu"])
        assert gpus * template["size"] == instance.gpus


@pytest.mark.parametrize("words", [(), ("namespace=llm", "multi_node=ray", "gpu_allocation=dra")])
@pytest.mark.parametrize(
    ("name", "target"), [(SPANNING, "kubernetes"), ("contract-review", "leaderworkerset")]
)
def test_a_cluster_would_accept_them(
    name: str, target: str, words: tuple[str, ...], tmp_path: Path
) -> None:
    made = report(name, *words)
    write_artifacts(made.artifacts((target,)), tmp_path / "out", overwrite=False)
    assert folder_problems(tmp_path / "out" / target) == []
