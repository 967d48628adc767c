"""Every workload, every target, every judge: what is written is accepted by what it is for."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from golden_plans import NAMES, SPANNING, report
from judges.compose import compose_problems
from judges.compose_project import read_project
from judges.envoy import envoy_problems
from judges.litellm import litellm_problems
from judges.manifests import folder_problems
from judges.nginx import nginx_problems
from judges.production_stack import stack_values_problems
from judges.shell import script_problems
from read_back import documents

from vllm_advisor.api.writing import write_artifacts
from vllm_advisor.errors import OutputError
from vllm_advisor.render.targets import TARGETS
from vllm_advisor.routing import Router

# What a cluster has before: llm-d's Gateway, and the pool that its router's chart makes.
EXISTS = {"Gateway/inference-gateway"}
# What a person fills into .env.
SET = dict.fromkeys(("VLLM_API_KEY", "HF_TOKEN", "MASTER_ADDR", "VLLM_HOST_IP"), "set")
ONE_NODE = ("helm-production-stack", "kserve")  # have no replicas over several nodes
ROUTERS = {"envoy", "litellm", "nginx"}  # which have to know where the servers are
VALUES = "router-values.yaml"  # for a chart: no manifest


def judged_scripts(folder: Path) -> list[str]:
    return [line for path in folder.glob("*.sh") for line in script_problems(path.read_text())]


def judged_manifests(folder: Path) -> list[str]:
    (folder / VALUES).unlink(missing_ok=True)
    pools = {
        f"InferencePool/{reference['name']}"
        for path in folder.glob("*.yaml")
        for document in documents(path.read_text())
        if document["kind"] == "HTTPRoute"
        for rule in document["spec"]["rules"]
        for reference in rule["backendRefs"]
    }
    return folder_problems(folder, external=EXISTS | pools)


def judged_values(folder: Path) -> list[str]:
    (values,) = documents((folder / "values.yaml").read_text())
    return stack_values_problems(values)


def judged_compose(folder: Path) -> list[str]:
    return [
        line
        for path in folder.rglob("compose.yaml")
        for line in compose_problems(yaml.safe_dump(read_project(path.read_text(), SET)))
    ]


def judged_policy(folder: Path) -> list[str]:
    return [] if Router(folder / "routing.yaml").policy.routes else ["no routes"]


def judged_litellm(folder: Path) -> list[str]:
    (config,) = documents((folder / "config.yaml").read_text())
    return litellm_problems(config)


def judged_envoy(folder: Path) -> list[str]:
    return envoy_problems((folder / "envoy.yaml").read_text())


def judged_nginx(folder: Path) -> list[str]:
    return nginx_problems((folder / "nginx.conf").read_text())


JUDGES = {
    "gateway-api": judged_manifests,
    "litellm": judged_litellm,
    "routing": judged_policy,
    "serve": judged_scripts,
    "kubernetes": judged_manifests,
    "leaderworkerset": judged_manifests,
    "llm-d": judged_manifests,
    "kserve": judged_manifests,
    "helm-production-stack": judged_values,
    "compose": judged_compose,
    "envoy": judged_envoy,
    "nginx": judged_nginx,
}


def test_every_target_has_a_judge() -> None:
    assert set(JUDGES) == set(TARGETS)


@pytest.mark.parametrize("target", JUDGES)
@pytest.mark.parametrize("name", NAMES)
def test_it_is_accepted(name: str, target: str, tmp_path: Path) -> None:
    made = report(name, "namespace=llm")
    if target in ROUTERS:
        # Addresses that the real nginx does not have to look up.
        urls = ", ".join(
            f"{i.name}: [http://10.0.0.5:8000]" for i in made.plan.deployment.instances
        )
        made = report(name, f"instance_urls={{{urls}}}")
    if name == SPANNING and target in ONE_NODE:
        with pytest.raises(OutputError, match="nodes"):
            made.artifacts((target,))
        return
    artifacts = made.artifacts((target,))
    write_artifacts(artifacts, tmp_path / "out", overwrite=False)
    folder = tmp_path / "out" / ("" if target in ("serve", "routing") else target)
    assert any(folder.iterdir())
    assert JUDGES[target](folder) == []
