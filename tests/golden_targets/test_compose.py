"""Compose files of every workload: the bytes as kept, and read back as Compose reads them.

``UPDATE_GOLDEN=1 pytest tests/golden_targets/test_compose.py`` rewrites the kept files.
"""

from __future__ import annotations

import dataclasses
import os
import shutil
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from judges.compose import compose_problems
from judges.compose_project import MissingVariable, docker_project, read_project

from vllm_advisor.api.planning import PlanReport, plan
from vllm_advisor.api.writing import write_artifacts
from vllm_advisor.knowledge.workloads import bundled_workloads
from vllm_advisor.parse.serve_command import ParsedCommand, parse_serve_command
from vllm_advisor.render.compose import render
from vllm_advisor.types.decision import Location
from vllm_advisor.types.plan import Artifact, Instance

HERE = Path(__file__).parent / "compose"
GOLDEN = Path(__file__).parent.parent / "golden"
OWN = {p.parent.name: p for p in (*GOLDEN.glob("*/workload.yaml"), *HERE.glob("*/workload.yaml"))}
NAMES = [*bundled_workloads(), *sorted(set(OWN) - set(bundled_workloads()))]
KEPT = ["contract-review", "coding-agents", "interactive-chat", "pipeline-parallel", "several-nodes"]
GIVEN = {
    "VLLM_API_KEY": "secret",
    "VLLM_BIND_ADDRESS": "10.0.0.5",
    "MASTER_ADDR": "10.0.0.4",
    "VLLM_HOST_IP": "10.0.0.5",
}
RANKS = {"master_addr", "node_rank", "headless", "host"}  # what a rank needs beyond the plan


@cache
def report(name: str) -> PlanReport:
    return plan("workload.yaml", text=OWN[name].read_text()) if name in OWN else plan(name)


@cache
def files(name: str) -> dict[str, Artifact]:
    return {a.path: a for a in render(report(name).plan, report(name).engine)}


def projects(name: str) -> list[dict[str, Any]]:
    """One for each node, in their order."""
    found = {p: a for p, a in files(name).items() if p.endswith("compose.yaml")}
    return [read_project(found[path].text, GIVEN) for path in sorted(found)]


def command_of(name: str, service: dict[str, Any]) -> ParsedCommand:
    words = [*service["entrypoint"], *service["command"]]
    place = Location(file="compose.yaml", line=1)
    return parse_serve_command([(word, place) for word in words], report(name).engine)


def services_of(name: str, instance: Instance) -> list[dict[str, Any]]:
    """Its containers on all nodes; these workloads have names that are labels already."""
    wanted = {f"{instance.name}-{n}" for n in range(1, instance.replicas + 1)}
    return [s for p in projects(name) for key, s in p["services"].items() if key in wanted]


def devices(service: dict[str, Any]) -> list[str]:
    (asked,) = service["deploy"]["resources"]["reservations"]["devices"]
    assert asked == {
        "driver": "nvidia",
        "device_ids": asked["device_ids"],
        "capabilities": ["gpu"],
    }
    return asked["device_ids"]


@pytest.mark.parametrize("name", KEPT)
def test_files_are_as_kept(name: str, tmp_path: Path) -> None:
    write_artifacts(tuple(files(name).values()), tmp_path, overwrite=False)
    written, expected = tmp_path / "compose", HERE / name / "expected"
    if os.environ.get("UPDATE_GOLDEN"):
        shutil.rmtree(expected, ignore_errors=True)
        shutil.copytree(written, expected)
    found, kept = (
        {p.relative_to(folder).as_posix(): p.read_text() for p in folder.rglob("*") if p.is_file()}
        for folder in (written, expected)
    )
    assert found == kept


@pytest.mark.parametrize("name", NAMES)
def test_what_is_rendered_reads_back_as_the_deployment(name: str) -> None:
    per_node = report(name).plan.node.gpu_count
    for instance in report(name).plan.deployment.instances:
        found = services_of(name, instance)
        taken = sum(len(devices(service)) for service in found)
        assert taken == instance.replicas * instance.gpus
        assert len(found) == instance.replicas * -(-instance.gpus // per_node)
        for service in found:
            command = command_of(name, service)
            assert not (command.unknown or command.problems or command.unresolved)
            args = command.engine_args
            kept = tuple(a for a in args if a.dest not in RANKS)
            assert dataclasses.replace(args, args=kept) == instance.engine_args
            if service.get("network_mode") != "host":
                assert args == instance.engine_args


@pytest.mark.parametrize("name", NAMES)
def test_no_two_services_share_a_gpu_or_a_port(name: str) -> None:
    ports = []
    for project in projects(name):
        used = [device for service in project["services"].values() for device in devices(service)]
        assert len(used) == len(set(used))
        assert {int(device) for device in used} <= set(range(report(name).plan.node.gpu_count))
        for service in project["services"].values():
            for port in service.get("ports", ()):
                address, published, target = port.split(":")
                assert address == GIVEN["VLLM_BIND_ADDRESS"]
                assert int(target) == command_of(name, service).engine_args.get("port")
                assert service["healthcheck"]["test"][-1] == f"http://127.0.0.1:{target}/health"
                ports.append(published)
    assert len(ports) == len(set(ports))
    assert ports or name == "pipeline-parallel"


@pytest.mark.parametrize("name", NAMES)
def test_compose_takes_it(name: str) -> None:
    for project in projects(name):
        assert compose_problems(yaml.safe_dump(project)) == []


@pytest.mark.parametrize("name", NAMES)
def test_docker_reads_the_same(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for key, value in GIVEN.items():
        monkeypatch.setenv(key, value)
    write_artifacts(tuple(files(name).values()), tmp_path, overwrite=False)
    folders = sorted(p.parent for p in tmp_path.rglob("compose.yaml"))
    for folder, ours in zip(folders, projects(name), strict=True):
        theirs = docker_project(folder)
        if theirs is None:
            pytest.skip("no docker with the compose plugin here")
        assert theirs["name"] == ours["name"]
        assert theirs["services"].keys() == ours["services"].keys()
        for key, service in ours["services"].items():
            for same in ("image", "entrypoint", "command", "environment", "user", "restart"):
                assert theirs["services"][key][same] == service[same]
            assert devices(theirs["services"][key]) == devices(service)


@pytest.mark.parametrize("name", NAMES)
def test_every_variable_stands_in_the_example_and_keys_have_no_value(name: str) -> None:
    for path, artifact in files(name).items():
        if not path.endswith("compose.yaml"):
            continue
        example = files(name)[path.replace("compose.yaml", ".env.example")].text
        listed = dict(line.split("=", 1) for line in example.splitlines() if line[:1] not in "#")
        assert listed.get("VLLM_API_KEY", "") == listed.get("HF_TOKEN", "") == ""
        filled = {key: value or "x" for key, value in listed.items()}
        read_project(artifact.text, filled)
        for key in ("VLLM_API_KEY", "MASTER_ADDR", "VLLM_HOST_IP"):
            assert (key in listed) == (f"${{{key}:?" in artifact.text)
            if key in listed:
                with pytest.raises(MissingVariable, match=key):
                    read_project(artifact.text, filled | {key: ""})


def test_replicas_share_downloads_but_no_compiled_kernels() -> None:
    first, second = projects("several-nodes")
    services = {**first["services"], **second["services"]}
    assert list(services) == ["chat-1", "chat-2", "chat-3", "long-docs-1", "long-docs-2"]
    roots = [s["environment"]["VLLM_CACHE_ROOT"] for s in services.values()]
    assert roots == [f"/home/vllm/.cache/vllm/{name}" for name in services]
    for service in services.values():
        (volume,) = service["volumes"]
        assert volume == {"type": "volume", "source": "cache", "target": "/home/vllm/.cache"}
    assert first["volumes"] == second["volumes"] == {"cache": {}}


def test_ranks_on_two_nodes_meet_at_the_first() -> None:
    """Llama 405B on 2 x 8 H100: rank 0 serves, rank 1 joins it and has no API to ask for health."""
    first, second = projects("pipeline-parallel")
    (leader,), (follower,) = first["services"].values(), second["services"].values()
    for rank, service in enumerate((leader, follower)):
        args = command_of("pipeline-parallel", service).engine_args
        assert args.get("master_addr") == "10.0.0.4"
        assert args.get("node_rank") == rank
        assert args.get("headless", False) is bool(rank)
        assert args.get("nnodes") == 2
        assert service["network_mode"] == "host"
        assert "ports" not in service
        assert devices(service) == [str(n) for n in range(8)]
        assert service["shm_size"] == "8gb"  # 1 GiB for each of 8 GPUs
    assert leader["healthcheck"]["test"][-1] == "http://10.0.0.5:8000/health"
    assert "healthcheck" not in follower
    assert "VLLM_API_KEY" not in follower["environment"]
