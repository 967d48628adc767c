"""Every golden workload through the command line: the same bytes as kept, and the invariants.

``UPDATE_GOLDEN=1 pytest tests/golden`` rewrites the kept files; read the diff before committing it.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import yaml
from golden_plans import NAMES, assert_kept, report, text_of

from vllm_advisor.api.checking import check
from vllm_advisor.api.planning import PlanReport, plan, read_report
from vllm_advisor.decide.tree import Serving, Strategy
from vllm_advisor.errors import OutputError
from vllm_advisor.knowledge.bundled_workloads import bundled_workload_path
from vllm_advisor.knowledge.workloads import load_workload
from vllm_advisor.parse.serve_command import parse_shell_script
from vllm_advisor.render.targets import TARGETS
from vllm_advisor.types.source import Source

HERE = Path(__file__).parent


def rendered(made: PlanReport, target: str) -> object:
    """The target's files, or why it has none for this plan."""
    try:
        return made.artifacts((target,))
    except OutputError as error:
        return error.what


@pytest.mark.parametrize("name", NAMES)
def test_files_are_as_kept(name: str, tmp_path: Path) -> None:
    written = assert_kept(report(name).artifacts(), HERE / name / "expected", tmp_path)
    assert all(os.access(p, os.X_OK) for p in written.glob("*.sh"))


@pytest.mark.parametrize("name", NAMES)
def test_the_same_inputs_give_the_same_bytes(name: str) -> None:
    text = text_of(name)
    again = plan(name) if text is None else plan("workload.yaml", text=text)
    assert again.artifacts() == report(name).artifacts()


@pytest.mark.parametrize("name", NAMES)
def test_what_is_rendered_reads_back_as_the_deployment(name: str) -> None:
    """parse(render(plan)) == plan.deployment, instance by instance."""
    kept = report(name)
    scripts = {a.path: a.text for a in kept.artifacts() if a.path.endswith(".sh")}
    assert len(scripts) == len(kept.plan.deployment.instances)
    for instance in kept.plan.deployment.instances:
        path = f"serve-{instance.name}.sh"
        (command,) = parse_shell_script(scripts[path], path, kept.engine)
        assert not command.unknown
        assert not command.problems
        assert not command.unresolved
        assert command.engine_args == instance.engine_args


@pytest.mark.parametrize("name", NAMES)
def test_what_is_rendered_passes_our_own_check(name: str) -> None:
    """check(render(plan)) has no error and no warning, and nothing it could not judge."""
    kept = report(name)
    node = kept.plan.node
    file = bundled_workload_path(name) if text_of(name) is None else HERE / name / "workload.yaml"
    workload = load_workload(file, file="workload.yaml")
    for artifact in kept.artifacts():
        if not artifact.path.endswith(".sh"):
            continue
        instance = next(i for i in kept.plan.deployment.instances if i.name in artifact.path)
        found = check(
            artifact.path,
            text=artifact.text,
            gpu=node.accelerator.id,
            gpu_count=node.gpu_count,
            node_count=node.node_count,
            vllm_version=kept.plan.vllm_version,
            workload=workload,
            classes=[r.request_class for r in kept.plan.routes if r.instance == instance.name],
            replicas=instance.replicas,
        )
        assert [f.message for f in found.findings] == []
        assert [n.reason for n in found.not_checked] == []
        (figures,) = found.figures.values()
        assert instance.figures is not None
        assert figures["kv_cache"]["tokens"] == instance.figures.capacity.tokens


@pytest.mark.parametrize("name", NAMES)
def test_every_flag_has_exactly_one_decision(name: str) -> None:
    kept = report(name).plan
    ids = [d.id for d in kept.decisions]
    assert len(ids) == len(set(ids))
    for instance in kept.deployment.instances:
        for arg in instance.engine_args:
            own = [
                d
                for d in kept.decisions
                if d.dest == arg.dest and d.id.startswith(f"{instance.name}.")
            ]
            assert len(own) == 1
            assert own[0].value == arg.value


@pytest.mark.parametrize("name", NAMES)
def test_every_reason_and_source_leads_somewhere(name: str) -> None:
    kept = report(name).plan
    figures = {f.id for f in kept.figures}
    assert len(figures) == len(kept.figures)
    for decision in kept.decisions:
        assert len(decision.reason) > 10
        assert Source.parse(str(decision.source)) == decision.source
        assert set(decision.because) <= figures, decision.id
    for figure in kept.figures:
        assert figure.formula
        assert set(figure.inputs) <= figures, figure.id


@pytest.mark.parametrize("name", NAMES)
def test_plan_yaml_reads_back_as_the_plan(name: str) -> None:
    text = next(a.text for a in report(name).artifacts() if a.path == "plan.yaml")
    assert yaml.safe_load(text) == report(name).to_dict()


@pytest.mark.parametrize("name", NAMES)
def test_a_plan_that_is_read_back_renders_the_same(name: str) -> None:
    text = next(a.text for a in report(name).artifacts() if a.path == "plan.yaml")
    again = read_report("plan.yaml", text=text)
    assert again.plan.deployment == report(name).plan.deployment
    for target in TARGETS:
        assert rendered(again, target) == rendered(report(name), target)


@pytest.mark.parametrize("name", NAMES)
def test_the_plan_serves_what_was_asked(name: str) -> None:
    kept = report(name).plan
    assert kept.feasible
    assert {r.request_class for r in kept.routes} == {
        str(c["name"]) for c in kept.inputs["classes"]
    }
    for instance in kept.deployment.instances:
        assert instance.figures is not None
        assert instance.figures.capacity.fits
        values = {f.id.removeprefix(f"{instance.name}."): f.value for f in kept.figures}
        if f"{instance.name}.kv.blocks" in {f.id for f in kept.figures}:
            assert values["kv.blocks_needed"] <= values["kv.blocks"]
    assert kept.cost.gpus == sum(i.replicas * i.gpus for i in kept.deployment.instances)
    assert kept.cost.gpus <= kept.node.total_gpus


def test_every_leaf_of_the_tree_is_reached() -> None:
    plans = [report(name).plan for name in NAMES]
    strategies = {r.strategy for p in plans for r in p.routes}
    assert strategies == {s.value for s in Strategy}
    servings = {d.value for p in plans for d in p.decisions if d.subject == "serving"}
    assert servings == {s.value for s in Serving}


@pytest.mark.parametrize("name", NAMES)
def test_the_four_schemes_stand_side_by_side(name: str) -> None:
    schemes = [a for a in report(name).plan.alternatives if a.subject == "schemes"]
    assert [a.name[0] for a in schemes] == ["A", "B", "C", "D"]
