import dataclasses
import enum
import json
import re
from pathlib import Path
from types import ModuleType
from typing import get_args

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from plan_example import (
    ENGINE,
    GIB,
    GUESS,
    capacity,
    decision,
    example_plan,
    expect,
    infeasible_plan,
    instance,
)

from vllm_advisor.cli import delivery
from vllm_advisor.errors import InputError
from vllm_advisor.render.figures import figures_dict
from vllm_advisor.render.markdown import render_markdown
from vllm_advisor.render.plan_file import plain, plan_dict, render_plan_file
from vllm_advisor.render.targets import TARGETS, collect_targets, render_plan
from vllm_advisor.types.plan import Deployment
from vllm_advisor.types.sizing import InstanceFigures
from vllm_advisor.types.source import Assumption

EXPECTED = Path(__file__).parent / "expected"
PLANS = {"example": example_plan, "infeasible": infeasible_plan}
TEXT = st.text(st.characters(exclude_categories=["Cs"]))


@pytest.mark.parametrize("name", PLANS)
def test_plan_file(name):
    artifact = render_plan_file(PLANS[name](), ENGINE)
    assert (artifact.path, artifact.executable) == ("plan.yaml", False)
    expect(EXPECTED / f"plan-{name}.yaml", artifact.text)


@pytest.mark.parametrize("name", PLANS)
def test_markdown(name):
    artifact = render_markdown(PLANS[name](), ENGINE)
    assert (artifact.path, artifact.executable) == ("PLAN.md", False)
    expect(EXPECTED / f"PLAN-{name}.md", artifact.text)


@pytest.mark.parametrize("name", PLANS)
def test_the_plan_file_loads_back_to_the_dict_and_is_json(name):
    data = plan_dict(PLANS[name](), ENGINE)
    assert yaml.safe_load(render_plan_file(PLANS[name](), ENGINE).text) == data
    assert json.loads(json.dumps(data, allow_nan=False)) == data


@settings(max_examples=40)
@given(TEXT, TEXT)
@example("\x85", "1e3")
def test_any_text_survives_the_plan_file(one, two):
    plan = dataclasses.replace(
        infeasible_plan(), name=one, notes=(one, two), nearest=two, inputs={one: [two, {two: one}]}
    )
    loaded = yaml.safe_load(render_plan_file(plan, ENGINE).text)
    assert loaded == plan_dict(plan, ENGINE)
    assert loaded["notes"] == [one, two]


@pytest.mark.parametrize(
    "text", ["1e3", "12345e67", "0o17", "0x1F", "1_000", "yes", "12:30", "1.5"]
)
def test_text_that_looks_like_a_number_is_quoted(text):
    loaded = render_plan_file(example_plan(name=text), ENGINE).text
    assert re.search(rf"^name: (['\"]){re.escape(text)}\1$", loaded, re.MULTILINE)


def test_figures_carry_the_numbers_of_the_log_line():
    figures = example_plan().deployment.instances[0].figures
    assert figures_dict(figures, 8192) == {
        "memory": {
            "total": 80 * GIB,
            "requested": 72 * GIB,
            "weights": 16 * GIB,
            "activations": 2 * GIB,
            "cuda_graphs": GIB // 2,
            "non_torch": GIB // 2,
            "kv_cache": 53 * GIB,  # 72 - 16 - 2 - 0.5 - 0.5
        },
        "kv_cache": {
            "tokens": 434176,  # 53 GiB / 128 KiB
            "num_gpu_blocks": 27136,
            "block_size": 16,
            "bytes_per_token": 131072,
            "available_bytes": 53 * GIB,
            "bytes_per_block": 16 * 131072,
            "blocks_per_request": 512,  # 8192 / 16
            "request_bytes": GIB,  # 8192 x 128 KiB
            "max_concurrency": 53.0,
            "engines": 1,
            "total_tokens": 434176,
            "total_concurrency": 53.0,
            "groups": [
                {
                    "kind": "full_attention",
                    "num_layers": 32,
                    "block_size": 16,
                    "page_size_bytes": 65536,  # 16 x 128 KiB / 32
                    "blocks_per_request": 512,
                    "window": None,
                }
            ],
        },
        "max_model_len": {"configured": 8192, "derived_limit": 131072, "fits": 434176},
        "fits": True,
        "refusal": None,
        "headroom": True,
        "spare_bytes": None,
        "may_miss_bytes": 0,
        "attention_backend": "FLASH_ATTN",
        "confidence": "medium",
        "assumptions": [{"id": GUESS.id, "text": GUESS.text, "lowers_to": "medium"}],
    }


def without_gpu():
    figures = InstanceFigures(
        budget=None,
        capacity=capacity(tokens=1024, max_model_len=512, bytes_per_token=64),
        derived_max_model_len=512,
        attention_backend="FLASH_ATTN",
    )
    made = instance("a", (), figures=figures), instance("b", (), figures=None)
    return example_plan(deployment=Deployment(instances=made))


def test_figures_that_nobody_computed_are_null_and_still_render():
    data = plan_dict(without_gpu(), ENGINE)
    assert data["instances"][0]["figures"]["memory"] is None
    assert data["instances"][1]["figures"] is None
    text = render_markdown(without_gpu(), ENGINE).text
    assert "Memory of one GPU" not in text
    assert "| b | general |  | 1 x 1 | unknown | unknown | unknown |" in text


def test_values_become_json_types():
    class Kind(enum.StrEnum):
        FP8 = "fp8"

    assert plain({Kind.FP8: (1, [Kind.FP8, None])}) == {"fp8": [1, ["fp8", None]]}
    assert type(plain(Kind.FP8)) is str
    with pytest.raises(TypeError, match="set has no place"):
        plain({1, 2})


def hostile_plan(text):
    made = instance(
        text, (decision(f"{text}.x", text, "chat_template", reason=text),), model=f"m{text}"
    )
    plan = example_plan()
    return dataclasses.replace(
        plan,
        name=text,
        model=text,
        nearest=text,
        notes=(text,),
        infeasible_because=(text,),
        deployment=Deployment(
            instances=(
                dataclasses.replace(
                    made, role=text, classes=(text,), figures=plan.deployment.instances[0].figures
                ),
            )
        ),
        decisions=(decision(f"{text}.x", text, "chat_template", reason=text), decision(text, text)),
        routes=tuple(dataclasses.replace(r, request_class=text, reason=text) for r in plan.routes),
        alternatives=tuple(
            dataclasses.replace(a, name=text, loses=text, why=text) for a in plan.alternatives
        ),
        assumptions=(Assumption(id=text, text=text),),
    )


@pytest.mark.parametrize(
    "text",
    [
        "a|b",
        "<script>alert(1)</script>",
        "`x`\n```\n# out\n",
        "[x](javascript:1) ![y](z) *b* __c__ ~~d~~",
        "x\n\n| a | b |\n|---|---|\n",
        "1. [bold]$(x)$ {{ 7 }}",
        "- \\| \\",
        "&lt;b&gt; <!-- c -->",
    ],
)
def test_no_text_can_break_the_markdown(text):
    parser = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    kinds = [t.type for t in parser.parse(render_markdown(example_plan(), ENGINE).text)]
    tokens = parser.parse(render_markdown(hostile_plan(text), ENGINE).text)
    found = [t.type for t in tokens]
    inside = {c.type for t in tokens for c in t.children or ()}
    assert not {"html_block", "hr", "ordered_list_open"} & set(found)
    assert inside <= {"text", "text_special", "code_inline", "strong_open", "strong_close"}
    assert found.count("table_open") == kinds.count("table_open")
    # Every row of a table has as many cells as its head.
    rows = "".join(
        {"tr_open": "r", "td_open": "d", "th_open": "h", "table_open": "t"}.get(k, "")
        for k in found
    )
    for table in rows.split("t")[1:]:
        head, *body = table.split("r")[1:]
        assert body
        assert {len(row) for row in body} == {len(head)}


def test_every_file_of_a_plan_is_there_once():
    paths = [a.path for a in render_plan(example_plan(), ENGINE)]
    assert paths == ["serve-chat.sh", "serve-docs.sh", "plan.yaml", "PLAN.md"]
    assert render_plan(example_plan(), ENGINE, ("serve", "serve")) == render_plan(
        example_plan(), ENGINE
    )


def test_a_plan_that_is_not_feasible_has_nothing_to_start():
    plan = dataclasses.replace(example_plan(), feasible=False)
    assert [a.path for a in render_plan(plan, ENGINE)] == ["plan.yaml", "PLAN.md"]


def test_an_unknown_target_names_the_known_ones():
    with pytest.raises(InputError, match="'helmet'") as caught:
        render_plan(example_plan(), ENGINE, ("helmet",))
    assert "serve" in caught.value.fix


def test_targets_are_found_by_scanning_and_an_id_belongs_to_one_module():
    assert "serve" in TARGETS
    one, two, none = ModuleType("one"), ModuleType("two"), ModuleType("none")
    one.TARGET = two.TARGET = "x"
    one.render = two.render = render_plan_file
    assert list(collect_targets([one, none])) == ["x"]
    with pytest.raises(ValueError, match="two render targets are called 'x'"):
        collect_targets([one, two])


def test_every_target_is_told_of():
    """In the help of ``--target`` and in its page, neither of which loads the targets."""
    _, option = get_args(delivery.Targets)
    page = (Path(__file__).parents[3] / "docs" / "targets.md").read_text(encoding="utf-8")
    named = set(re.findall(r"^\| `([a-z-]+)`", page, re.MULTILINE))
    assert named == set(TARGETS)
    assert set(re.findall(r"[a-z][a-z-]+[a-z]", option.help)) >= set(TARGETS)
