"""Text that tries to leave its place: structure and words stay what the plan means."""

from __future__ import annotations

import dataclasses
from functools import cache
from typing import Any

import pytest
from golden_plans import report
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from judges.kubectl import read_by_kubectl, yaml_problems
from judges.kubelet import expanded_words
from other_plans import with_instances
from read_back import documents

from vllm_advisor.api.planning import PlanReport
from vllm_advisor.errors import InputError
from vllm_advisor.knowledge.workloads import load_workload
from vllm_advisor.render.scaling import scaling_view
from vllm_advisor.render.targets import TARGETS
from vllm_advisor.types.engine import EngineArg, EngineArgs

NASTY = (
    "a'b",
    'a"b',
    "a\\b",
    "$(touch x)",
    "$(LWS_LEADER_ADDRESS)",
    "$$(HOME)",
    "${HOME}",
    "`id`",
    "{{ .Values.x }}",
    "{% raw %}",
    "12345e67",
    "1e3",
    "0o17",
    "0x1F",
    "1_000",
    "12:30",
    "yes",
    "Null",
    "~",
    "=",
    "<<",
    "? a",
    "a: b",
    "a # b",
    "&a *b !c",
    "| x",
    "> x",
    "%YAML",
    "@a",
    "[a, {b",
    "...",
    " a ",
    "é\u00a0ß",
    "\U0001f600",
    "\u202e",
    "a\nb: c",
    "a\u2028b",
)
# What the reader of a workload lets through, and more: line breaks come from no workload.
TEXT = st.text(
    st.characters(exclude_categories=("Cs", "Cc"), include_characters="\n\t"), min_size=1
).filter(lambda text: not text.startswith("-"))


def with_text(model: str, names: list[str]) -> PlanReport:
    """The plan of a bundled workload with other text where text is written into files."""
    made = report("contract-review", "autoscaler=none")
    instances = []
    for instance in made.plan.deployment.instances:
        decided = instance.engine_args.model_origin
        args = tuple(
            dataclasses.replace(arg, value=names) if arg.dest == "served_model_name" else arg
            for arg in instance.engine_args
        )
        extra = EngineArg(dest="hf_overrides", value={names[0]: [names[-1]]}, origin=decided)
        changed = EngineArgs(model=model, args=(*args, extra), model_origin=decided)
        instances.append(dataclasses.replace(instance, engine_args=changed))
    return dataclasses.replace(made, plan=with_instances(made.plan, *instances))


def written(made: PlanReport, target: str) -> list[Any]:
    return [
        document
        for artifact in TARGETS[target](made.plan, made.engine)
        for document in documents(artifact.text)
    ]


@cache
def plain(target: str) -> list[Any]:
    return written(with_text("org/model", ["name", "other"]), target)


def without_args(document: Any) -> Any:
    """A document whose containers have no arguments: everything that must not change."""
    if isinstance(document, dict):
        return {k: without_args(v) for k, v in document.items() if k != "args"}
    if isinstance(document, list):
        return [without_args(item) for item in document]
    return document


def args_of(found: list[Any]) -> list[list[str]]:
    kinds = ("Deployment", "StatefulSet", "LeaderWorkerSet")
    controllers = [d for d in found if d["kind"] in kinds]
    specs = [
        d["spec"].get("template") or d["spec"]["leaderWorkerTemplate"]["workerTemplate"]
        for d in controllers
    ]
    return [expanded_words(s["spec"]["containers"][0]["args"]) for s in specs]


@pytest.mark.parametrize("target", ["kubernetes", "leaderworkerset"])
@given(model=TEXT, names=st.lists(TEXT, min_size=2, max_size=4))
@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])
def test_text_changes_words_and_nothing_else(target: str, model: str, names: list[str]) -> None:
    if model.startswith(("/", "./", "../", "~")):
        model = "x" + model
    found = written(with_text(model, names), target)
    assert without_args(found) == without_args(plain(target))
    started = args_of(found)
    assert len(started) == 2
    for words in started:
        assert words[0] == model
        at = words.index("--served-model-name")
        assert words[at + 1 : at + 1 + len(names)] == names


def test_gos_parser_reads_the_same_words() -> None:
    """kubectl and PyYAML agree on every nasty word at once, in every file."""
    made = with_text("org/model", list(NASTY))
    _, *instances = TARGETS["kubernetes"](made.plan, made.engine)
    assert len(instances) == 2
    for artifact in instances:
        assert yaml_problems(artifact.text) == []
        (words,) = args_of(read_by_kubectl(artifact.text))
        at = words.index("--served-model-name")
        assert words[at + 1 : at + 1 + len(NASTY)] == list(NASTY)


@given(st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1))
def test_a_query_keeps_a_name_inside_its_quotes(name: str) -> None:
    made = with_text("org/model", [name, "other"])
    query = scaling_view(made.plan, made.plan.deployment.instances[0])["scaling_query"]
    first = query[query.index('model_name="') + len('model_name="') :]
    out, rest = "", first
    while not rest.startswith('"'):
        taken = rest[1] if rest.startswith("\\") else rest[0]
        out, rest = out + taken, rest[2 if rest.startswith("\\") else 1 :]
    assert out == name


@pytest.mark.parametrize("character", ["\x00", "\x07", "\x1b", "\x7f", "\x85", "\u2028", "\u202e"])
def test_control_characters_are_refused_where_text_comes_in(character: str) -> None:
    text = (
        f'model: "org/a\\u{ord(character):04x}b"\n'
        "hardware: {gpu: h100-sxm}\n"
        "classes: [{name: chat, prompt_tokens: 10, output_tokens: 10, concurrent_requests: 1}]\n"
    )
    with pytest.raises(InputError, match="is not allowed"):
        load_workload(text, file="w.yaml")
