"""Target litellm: the kept bytes, groups and orders that follow the policy, where servers are."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
import yaml
from golden_plans import NAMES, SPANNING, report
from hypothesis import given
from hypothesis import strategies as st
from judges.litellm import litellm_problems
from other_plans import with_args, with_instances
from read_back import KEPT, assert_as_kept

from vllm_advisor.errors import OutputError
from vllm_advisor.render.litellm import render
from vllm_advisor.routing import Action, Router
from vllm_advisor.types.plan import Plan

ANYWHERE = [name for name in NAMES if name not in (SPANNING, "several-nodes")]


def config(plan: Plan, name: str) -> dict[str, Any]:
    (artifact,) = render(plan, report(name).engine)
    made: dict[str, Any] = yaml.safe_load(artifact.text)
    return made


def group(made: dict[str, Any], name: str) -> list[tuple[int, str, int]]:
    """Order, address and limit of each deployment of a public name."""
    return [
        (
            each["litellm_params"]["order"],
            each["litellm_params"]["api_base"],
            each["model_info"]["max_input_tokens"],
        )
        for each in made["model_list"]
        if each["model_name"] == name
    ]


@pytest.mark.parametrize("name", KEPT)
def test_files_are_as_kept(name: str, tmp_path: Path) -> None:
    assert_as_kept("litellm", name, name, tmp_path)


def test_groups_by_hand() -> None:
    """Ports 8000 and 8001 of the plan; 6,168 and 120,880 tokens."""
    plan = report("contract-review").plan
    made = config(plan, "contract-review")
    both = [(1, "http://127.0.0.1:8000/v1", 6168), (2, "http://127.0.0.1:8001/v1", 120_880)]
    for name in (plan.model, "chat", "rag"):
        assert group(made, name) == both
    assert group(made, "long-docs") == [(1, "http://127.0.0.1:8001/v1", 120_880)]
    settings = made["router_settings"]
    assert settings["model_group_alias"] == {"clause-lookup": "rag", "contract-review": "long-docs"}
    assert settings["context_window_fallbacks"] == [
        {plan.model: ["long-docs"]},
        {"chat": ["long-docs"]},
        {"rag": ["long-docs"]},
    ]
    assert made["litellm_settings"]["disable_hf_tokenizer_download"] is True


@pytest.mark.parametrize("name", ANYWHERE)
def test_a_name_is_asked_of_servers_that_answer_to_it(name: str) -> None:
    plan = report(name).plan
    served = {
        i.engine_args.get("port"): i.engine_args.get("served_model_name")
        for i in plan.deployment.instances
    }
    for each in config(plan, name)["model_list"]:
        port = int(each["litellm_params"]["api_base"].split(":")[2].split("/")[0])
        own = served.get(port) or next(iter(served.values()))  # replicas take the ports that follow
        assert each["litellm_params"]["model"].removeprefix("hosted_vllm/") in own


@given(tokens=st.integers(0, 200_000), name=st.sampled_from(["contract-review", "yarn"]))
def test_the_lowest_order_that_takes_a_prompt_is_the_librarys_choice(
    tokens: int, name: str
) -> None:
    plan = report(name).plan
    made = config(plan, name)
    decision = Router(plan.routing).decide(prompt_tokens=tokens)
    takers = [
        each for each in made["model_list"]
        if each["model_name"] == plan.model and tokens <= each["model_info"]["max_input_tokens"]
    ]  # fmt: skip
    if decision.action is Action.REFUSE:
        assert takers == []
        return
    first = min(takers, key=lambda each: each["litellm_params"]["order"])
    assert first["model_info"]["id"] == f"by-length:{decision.instance}-1"


def test_replicas_share_an_order() -> None:
    urls = "instance_urls={chat: [http://10.0.0.5:8000, http://10.0.0.6:8000], long-docs: [https://docs:443]}"
    of = report("contract-review", urls)
    made = config(of.plan, "contract-review")
    assert litellm_problems(made) == []
    assert [(order, base) for order, base, _ in group(made, "chat")] == [
        (1, "http://10.0.0.5:8000/v1"),
        (1, "http://10.0.0.6:8000/v1"),
        (2, "https://docs:443/v1"),
    ]


def test_servers_of_a_cluster() -> None:
    made = config(
        report("contract-review", "router_place=kubernetes", "namespace=llm").plan,
        "contract-review",
    )
    assert group(made, "long-docs")[0][1] == "http://contract-review-long-docs.llm.svc:8000/v1"


def test_without_an_api_key_none_is_sent() -> None:
    made = config(report("contract-review", "api_key_secret=null").plan, "contract-review")
    assert {each["litellm_params"]["api_key"] for each in made["model_list"]} == {"none"}
    (artifact,) = render(
        report("contract-review", "api_key_secret=null").plan, report("contract-review").engine
    )
    assert "VLLM_API_KEY" not in artifact.text


def test_instances_without_the_models_name_are_refused() -> None:
    plan = report("contract-review").plan
    first, second = plan.deployment.instances
    other = with_instances(plan, first, with_args(second, served_model_name=["long-docs"]))
    with pytest.raises(OutputError, match="does not answer to"):
        config(other, "contract-review")
    with pytest.raises(OutputError, match="no routing policy"):
        config(dataclasses.replace(plan, routing=None), "contract-review")


def test_the_judge_sees_what_is_wrong() -> None:
    made = config(report("contract-review").plan, "contract-review")
    assert litellm_problems(made) == []
    entry = made["model_list"][0]
    for change in (
        {"model_list": [*made["model_list"], entry]},
        {"general_settings": {"master_key": "sk-1234"}},
        {"router_settings": {"model_group_alias": {"x": "nowhere"}}},
        {"model_list": [*made["model_list"][1:]]},
    ):
        assert litellm_problems(made | change)
