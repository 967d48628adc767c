"""Target compose: the kept bytes, and the plan read back from them as Compose reads them."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
import yaml
from golden_plans import NAMES, report
from hypothesis import given, settings
from hypothesis import strategies as st
from judges.compose import compose_problems
from judges.compose_project import MissingVariableError, docker_project, read_project
from other_plans import with_instances
from read_back import KEPT, assert_as_kept, engine_args

from vllm_advisor.api.planning import PlanReport
from vllm_advisor.api.writing import write_artifacts
from vllm_advisor.errors import OutputError
from vllm_advisor.render.argv import serve_argv
from vllm_advisor.render.compose import render
from vllm_advisor.types.decision import Decision
from vllm_advisor.types.engine import EngineArg, EngineArgs
from vllm_advisor.types.environment import Environment, MultiNode
from vllm_advisor.types.plan import Plan
from vllm_advisor.types.source import Source

GIVEN = {
    "VLLM_API_KEY": "secret",
    "VLLM_BIND_ADDRESS": "10.0.0.5",
    "MASTER_ADDR": "10.0.0.4",
    "VLLM_HOST_IP": "10.0.0.5",
}
RANKS = {"master_addr", "node_rank", "headless", "host"}  # what a rank needs beyond the plan
VARIANTS: dict[str, tuple[str, ...]] = {
    "defaults": (),
    "all-else": (
        "labels={team: search}",
        "image_registry=registry.example.com/mirror",
        "image_digest=sha256:" + "0" * 64,
        "image_pull_secrets=[registry]",
        "model_cache=ephemeral",
        "api_key_secret=null",
        "hf_token_secret=null",
    ),
}
HOSTILE = (
    "$(id) $HOME ${HOME} $$ ${HOME:?no} `id` $",
    "a: b # c",
    "{{ lookup }} {% raw %} *anchor &anchor !!python <<",
    "12345e67",
    "yes",
    "0o17",
    'it\'s "quoted" \\ \\n',
    "line\nbreak\r\ttab\x07bell\x85next\u2028line\ufeffbom\x7f",
    "höß 漢字 \N{GRINNING FACE} \u202eright",
    " blank ",
)


def projects(plan: Plan, made: PlanReport) -> list[dict[str, Any]]:
    """What Compose reads, for each node in their order."""
    texts = {a.path: a.text for a in render(plan, made.engine) if a.path.endswith("compose.yaml")}
    return [read_project(texts[path], GIVEN) for path in sorted(texts)]


def services(made: PlanReport) -> dict[tuple[int, str], dict[str, Any]]:
    """Every container by the number of its node and its name."""
    return {
        (node, name): service
        for node, project in enumerate(projects(made.plan, made))
        for name, service in project["services"].items()
    }


def args_of(service: dict[str, Any], made: PlanReport) -> EngineArgs:
    assert service["entrypoint"] == ["vllm", "serve"]
    return engine_args(service["command"], made.engine)


def devices(service: dict[str, Any]) -> list[str]:
    (asked,) = service["deploy"]["resources"]["reservations"]["devices"]
    assert asked.pop("driver") == "nvidia"
    assert asked.pop("capabilities") == ["gpu"]
    return asked["device_ids"]


@pytest.mark.parametrize("name", [*KEPT, "pipeline-parallel", "several-nodes"])
def test_files_are_as_kept(name: str, tmp_path: Path) -> None:
    assert_as_kept("compose", name, name, tmp_path)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("name", NAMES)
def test_the_plan_reads_back_from_the_files(name: str, variant: str) -> None:
    made = report(name, *VARIANTS[variant])
    found = services(made)
    for instance in made.plan.deployment.instances:
        names = {f"{instance.name}-{n}" for n in range(1, instance.replicas + 1)}
        own = [service for (_, name), service in found.items() if name in names]
        nodes = -(-instance.gpus // made.plan.node.gpu_count)
        assert len(own) == instance.replicas * nodes
        for service in own:
            assert len(devices(service)) == instance.gpus // nodes
            args = args_of(service, made)
            kept = tuple(a for a in args if nodes == 1 or a.dest not in RANKS)
            assert dataclasses.replace(args, args=kept) == instance.engine_args
            assert ("shm_size" in service) == (instance.gpus > 1)
    assert len(found) == sum(
        i.replicas * -(-i.gpus // made.plan.node.gpu_count) for i in made.plan.deployment.instances
    )


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("name", NAMES)
def test_compose_takes_it(name: str, variant: str) -> None:
    made = report(name, *VARIANTS[variant])
    for project in projects(made.plan, made):
        assert compose_problems(yaml.safe_dump(project)) == []


@pytest.mark.parametrize("name", NAMES)
def test_no_two_services_share_a_gpu_or_a_port(name: str) -> None:
    made = report(name)
    gpus, ports = [], []
    for (node, _), service in services(made).items():
        gpus += [(node, int(device)) for device in devices(service)]
        for port in service.get("ports", ()):
            address, published, target = port.split(":")
            assert address == GIVEN["VLLM_BIND_ADDRESS"]
            assert int(target) == args_of(service, made).get("port")
            assert service["healthcheck"]["test"][-1] == f"http://127.0.0.1:{target}/health"
            ports.append(published)
    assert len(gpus) == len(set(gpus)) == made.plan.cost.gpus
    assert {device for _, device in gpus} <= set(range(made.plan.node.gpu_count))
    assert len(ports) == len(set(ports))


@pytest.mark.parametrize("name", NAMES)
def test_every_variable_stands_in_the_example_and_secrets_have_no_value(name: str) -> None:
    files = {a.path: a.text for a in render(report(name).plan, report(name).engine)}
    for path, text in files.items():
        if not path.endswith("compose.yaml"):
            continue
        example = files[path.replace("compose.yaml", ".env.example")]
        listed = dict(line.split("=", 1) for line in example.splitlines() if line[0] != "#")
        assert listed.pop("VLLM_BIND_ADDRESS", "127.0.0.1") == "127.0.0.1"
        assert set(listed.values()) == {""}
        filled = dict.fromkeys(listed, "x")
        read_project(text, filled)
        for key in listed:
            assert f"${{{key}:" in text
            if key != "HF_TOKEN":
                with pytest.raises(MissingVariableError, match=key):
                    read_project(text, filled | {key: ""})


def test_replicas_share_downloads_but_no_compiled_kernels() -> None:
    """Four L40S a node: 3 x chat and the first of 2 x long-docs on one, the second on the next."""
    found = services(report("several-nodes"))
    names = ["chat-1", "chat-2", "chat-3", "long-docs-1", "long-docs-2"]
    assert list(found) == list(zip((0, 0, 0, 0, 1), names, strict=True))
    roots = [service["environment"]["VLLM_CACHE_ROOT"] for service in found.values()]
    assert roots == [f"/home/vllm/.cache/vllm/{name}" for name in names]
    published = [service["ports"] for service in found.values()]
    targets = (8000, 8000, 8000, 8003, 8003)
    assert published == [[f"10.0.0.5:{8000 + n}:{port}"] for n, port in enumerate(targets)]
    for service in found.values():
        (volume,) = service["volumes"]
        assert volume == {"type": "volume", "source": "cache", "target": "/home/vllm/.cache"}


def test_ranks_on_two_nodes_meet_at_the_first() -> None:
    """Llama 405B on 2 x 8 H100: rank 0 serves, rank 1 joins it and has no API to ask for health."""
    made = report("pipeline-parallel")
    leader, follower = services(made).values()
    for rank, service in enumerate((leader, follower)):
        args = args_of(service, made)
        assert (args.get("nnodes"), args.get("node_rank")) == (2, rank)
        assert args.get("master_addr") == "10.0.0.4"
        assert service["environment"]["VLLM_HOST_IP"] == "10.0.0.5"
        assert service["network_mode"] == "host"
        assert "ports" not in service
        assert service["shm_size"] == "8gb"  # 1 GiB for each of 8 GPUs
    assert args_of(leader, made).get("host") == "10.0.0.5"
    assert leader["healthcheck"]["test"][-1] == "http://10.0.0.5:8000/health"
    assert args_of(follower, made).get("headless") is True
    assert "healthcheck" not in follower
    assert "VLLM_API_KEY" not in follower["environment"]


def test_needs_no_more_gpus_than_it_uses() -> None:
    """contract-review plans 2 of the 4 GPUs of its node."""
    text = report("contract-review").artifacts(("compose",))[0].text
    assert "2 x NVIDIA H100" in " ".join(text.split("\n# "))


def test_a_server_has_the_time_it_needs() -> None:
    """15 GiB at 100 MiB/s and 500 MiB/s and 300 s: 9 minutes; 45 s to finish and 15 to exit."""
    chat = services(report("contract-review"))[0, "chat-1"]
    assert chat["healthcheck"]["start_period"] == "540s"
    assert "VLLM_ENGINE_READY_TIMEOUT_S" not in chat["environment"]  # vLLM's own 600 s are more
    large = next(iter(services(report("coding-agents")).values()))
    period = large["healthcheck"]["start_period"]
    assert f"{large['environment']['VLLM_ENGINE_READY_TIMEOUT_S']}s" == period
    assert chat["stop_grace_period"] == "60s"


def test_a_container_has_no_more_rights_than_it_needs() -> None:
    for service in services(report("contract-review")).values():
        assert service["user"] == "2000:0"
        assert service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges:true"]
        assert not {"privileged", "ipc", "pid", "network_mode", "cap_add"} & set(service)


def test_without_a_cache_nothing_is_kept() -> None:
    made = report("several-nodes", "model_cache=ephemeral")
    assert all("volumes" not in project for project in projects(made.plan, made))
    for service in services(made).values():
        assert "volumes" not in service
        assert "VLLM_CACHE_ROOT" not in service["environment"]


def test_a_digest_names_the_image_alone() -> None:
    digest = "sha256:" + "0" * 64
    found = services(report("contract-review", f"image_digest={digest}"))
    assert found[0, "chat-1"]["image"] == f"vllm/vllm-openai@{digest}"


def test_ray_is_refused_for_ranks_on_several_nodes() -> None:
    with pytest.raises(OutputError, match="Ray"):
        report("pipeline-parallel", "multi_node=ray").artifacts(("compose",))
    assert services(report("several-nodes", "multi_node=ray"))


def changed(made: PlanReport, model: str, texts: tuple[str, ...], **place: Any) -> Plan:
    """The plan with other words in its first instance, and a reason of the same kind."""
    first, *others = made.plan.deployment.instances
    reason = Decision(
        id="chat.any", subject="any", value=1, reason=texts[0], source=Source.parse("user:w.yaml:1")
    )
    args = (
        EngineArg(dest="served_model_name", value=list(texts), origin=reason),
        EngineArg(dest="chat_template", value=texts[0], origin=reason),
        EngineArg(dest="hf_overrides", value={texts[0]: texts[-1]}, origin=reason),
    )
    instance = dataclasses.replace(
        first, engine_args=EngineArgs(model=model, args=args, model_origin=reason)
    )
    return with_instances(made.plan, instance, *others, environment=Environment(**place))


words = st.lists(
    st.sampled_from(HOSTILE)
    | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1),
    min_size=1,
    max_size=3,
).map(lambda texts: tuple(t if t[0] != "-" else f"x{t}" for t in texts))


@given(words)
@settings(max_examples=60)
def test_no_text_changes_the_words_of_a_command(texts: tuple[str, ...]) -> None:
    made = report("contract-review")
    plan = changed(made, f"org/{texts[0]}", texts)
    (project,) = projects(plan, made)
    assert list(project["services"]) == ["chat-1", "long-docs-1"]
    wanted = serve_argv(plan.deployment.instances[0], made.engine)
    assert project["services"]["chat-1"]["command"] == wanted


@given(words)
@settings(max_examples=25)
def test_no_text_changes_what_is_mounted(texts: tuple[str, ...]) -> None:
    made, folder = report("contract-review"), f"/srv/{texts[0]}"
    (project,) = projects(changed(made, folder, texts), made)
    chat = project["services"]["chat-1"]
    assert chat["volumes"][0] == {
        "type": "bind",
        "source": folder,
        "target": folder,
        "read_only": True,
        "bind": {"create_host_path": False},
    }
    assert chat["command"][0] == folder
    assert chat["environment"]["HF_HUB_OFFLINE"] == "1"
    assert "HF_TOKEN" not in chat["environment"]


def test_a_model_folder_elsewhere_on_the_host() -> None:
    made = report("contract-review")
    plan = changed(made, "/models/tiny", ("a",), model_host_path="/srv/weights")
    plan = with_instances(plan, *plan.deployment.instances[:1])
    (project,) = projects(plan, made)
    mount = project["services"]["chat-1"]["volumes"][0]
    assert (mount["source"], mount["target"]) == ("/srv/weights", "/models")


@pytest.mark.parametrize(
    ("model", "place", "what"),
    [
        ("./tiny", {}, "has no meaning in a container"),
        ("~/tiny", {}, "has no meaning in a container"),
        ("/srv/tiny", {"model_host_path": "/srv"}, "not below /models"),
        ("org/tiny", {"model_host_path": "/srv"}, "on the Hub"),
        ("--tiny", {}, "read as a flag"),
    ],
)
def test_a_model_that_no_container_could_see(model: str, place: dict[str, Any], what: str) -> None:
    made = report("contract-review")
    with pytest.raises(OutputError, match=what) as caught:
        render(changed(made, model, ("a",), **place), made.engine)
    assert caught.value.fix


def test_ranks_need_flags_of_the_version() -> None:
    made = report("pipeline-parallel")
    flags = {k: v for k, v in made.engine.flags.items() if k != "headless"}
    with pytest.raises(OutputError, match="cannot start its ranks"):
        render(made.plan, dataclasses.replace(made.engine, flags=flags))
    assert made.plan.environment.multi_node is MultiNode.MP


def docker_agrees(plan: Plan, made: PlanReport, folder: Path, patch: pytest.MonkeyPatch) -> None:
    for key, value in GIVEN.items():
        patch.setenv(key, value)
    write_artifacts(render(plan, made.engine), folder, overwrite=False)
    folders = sorted(path.parent for path in folder.rglob("compose.yaml"))
    for where, ours in zip(folders, projects(plan, made), strict=True):
        theirs = docker_project(where)
        if theirs is None:
            pytest.skip("no docker with the compose plugin here")
        assert theirs["name"] == ours["name"]
        assert theirs["services"].keys() == ours["services"].keys()
        for key, service in ours["services"].items():
            for same in ("image", "entrypoint", "command", "environment", "user", "restart"):
                assert theirs["services"][key][same] == service[same]
            assert devices(theirs["services"][key]) == devices(service)


@pytest.mark.parametrize("name", NAMES)
def test_docker_reads_the_same(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    docker_agrees(report(name).plan, report(name), tmp_path, monkeypatch)


@pytest.mark.parametrize("text", HOSTILE)
def test_docker_reads_the_same_hostile_words(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = report("contract-review")
    for number, model in enumerate((f"org/{text}", f"/srv/{text}")):
        folder = tmp_path / str(number)
        docker_agrees(changed(made, model, (text, text)), made, folder, monkeypatch)
