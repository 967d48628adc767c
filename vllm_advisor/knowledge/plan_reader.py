"""plan.yaml back to the plan it was written from, for everything that renders."""

from __future__ import annotations

import math
from typing import Any

from vllm_advisor.errors import InputError
from vllm_advisor.knowledge.environment_file import EnvironmentKeys
from vllm_advisor.knowledge.environments import environment_keys, make_environment
from vllm_advisor.knowledge.workload_problems import read_keys
from vllm_advisor.knowledge.yaml_marks import MarkedYaml
from vllm_advisor.types.accelerator import Accelerator, Interconnect, Node
from vllm_advisor.types.decision import Decision, Rejected
from vllm_advisor.types.engine import EngineArg, EngineArgs, EngineFacts
from vllm_advisor.types.environment import Environment
from vllm_advisor.types.plan import Alternative, Cost, Deployment, Instance, Plan, Route
from vllm_advisor.types.routing import RoutingPolicy
from vllm_advisor.types.sizing import (
    Capacity,
    Figure,
    InstanceFigures,
    KVCacheGroup,
    MemoryBudget,
)
from vllm_advisor.types.source import Assumption, Confidence, Source

_FIX = "plan again with this version: vllm-advisor plan WORKLOAD --output-dir DIR"


def read_plan(data: dict[str, Any], engine: EngineFacts, *, file: str) -> Plan:
    """The plan in the data of a plan.yaml.

    Args:
        data: what the YAML holds.
        engine: facts of the version that the plan names.
        file: what errors call it.

    Raises:
        InputError: a key is missing or not what this version writes, or a flag's value is not
            the one that its decision gives a reason for.
    """
    try:
        return _plan(data, engine, file)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(
            f"this plan.yaml cannot be read: {type(error).__name__} {error}", where=file, fix=_FIX
        ) from None


def _plan(data: dict[str, Any], engine: EngineFacts, file: str) -> Plan:
    decisions = {d["id"]: _decision(d, engine) for d in data["decisions"]}
    figures = tuple(
        Figure(**{**f, "inputs": tuple(f["inputs"]), "source": Source.parse(f["source"])})
        for f in data["figures"]
    )
    by_id = {f.id: f for f in figures}
    return Plan(
        name=data["name"],
        feasible=data["feasible"],
        model=data["model"],
        vllm_version=data["vllm_version"],
        node=_node(data["hardware"]),
        deployment=Deployment(
            instances=tuple(_instance(i, decisions, by_id, file) for i in data["instances"])
        ),
        routes=tuple(Route(**r) for r in data["routing"]),
        decisions=tuple(decisions.values()),
        figures=figures,
        alternatives=tuple(Alternative(**a) for a in data["alternatives"]),
        assumptions=tuple(_assumption(a) for a in data["assumptions"]),
        cost=Cost(**data["cost"]),
        infeasible_because=tuple(data["infeasible_because"]),
        nearest=data["nearest"],
        notes=tuple(data["notes"]),
        inputs=data["inputs"],
        environment=_environment(data["environment"], file),
        routing=_policy(data["routing_policy"]),
    )


def _policy(given: dict[str, Any] | None) -> RoutingPolicy | None:
    return None if given is None else RoutingPolicy.from_dict(given)


def _environment(given: dict[str, Any], file: str) -> Environment:
    marks: dict[tuple[str | int, ...], tuple[int, int]] = {(): (1, 1)}
    marked = MarkedYaml(file=f"{file} (environment)", data=given, marks=marks)
    return make_environment(environment_keys(read_keys(marked, EnvironmentKeys)))


def _node(given: dict[str, Any]) -> Node:
    major, minor = given["compute_capability"].split(".")
    return Node(
        accelerator=Accelerator(
            id=given["gpu"],
            name=given["gpu_name"],
            memory_total=given["memory_total"],
            memory_total_source=Source.parse(given["memory_total_source"]),
            compute_capability=(int(major), int(minor)),
        ),
        gpu_count=given["gpu_count"],
        node_count=given["node_count"],
        interconnect=Interconnect(given["interconnect"]),
        memory_used=given["memory_used"],
        source=Source.parse(given["source"]),
    )


def _decision(given: dict[str, Any], engine: EngineFacts) -> Decision:
    flag = engine.flag(given["flag"]) if given["flag"] else None
    return Decision(
        id=given["id"],
        subject=given["subject"],
        value=given["value"],
        reason=given["reason"],
        source=Source.parse(given["source"]),
        because=tuple(given["because"]),
        rejected=tuple(Rejected(**r) for r in given["rejected"]),
        dest=flag.dest if flag else None,
    )


def _instance(
    given: dict[str, Any],
    decisions: dict[str, Decision],
    figures: dict[str, Figure],
    file: str,
) -> Instance:
    name = given["name"]
    model = decisions[f"{name}.model"]
    own = [d for d in decisions.values() if d.id.startswith(f"{name}.") and d.dest]
    decided = {d.dest: d for d in own}
    args = []
    for dest, value in given["engine_args"].items():
        decision = decided.get(dest)
        if decision is None or decision.value != value:
            raise InputError(
                f"{dest}={value!r} of instance {name} has no decision that says so",
                where=file,
                fix="change the workload and plan again, or give vLLM your value after the script: "
                f"./serve-{name}.sh --{dest.replace('_', '-')} ...",
            )
        args.append(EngineArg(dest=dest, value=value, origin=decision))
    _check_gpus(given, file)
    return Instance(
        name=name,
        role=given["role"],
        engine_args=EngineArgs(model=str(model.value), args=tuple(args), model_origin=model),
        replicas=given["replicas"],
        gpus=given["gpus"],
        classes=tuple(given["classes"]),
        figures=_figures(given["figures"], name, figures) if given["figures"] else None,
    )


def _check_gpus(given: dict[str, Any], file: str) -> None:
    """A number of GPUs that is not that of the ranks would be asked for and stay idle."""
    sizes = ("tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size")
    ranks = math.prod(int(given["engine_args"].get(size, 1)) for size in sizes)
    ranks *= int(given["engine_args"].get("prefill_context_parallel_size", 1))
    if given["gpus"] != ranks or type(given["replicas"]) is not int or given["replicas"] < 1:
        raise InputError(
            f"instance {given['name']} has {given['replicas']!r} replicas of {given['gpus']!r} "
            f"GPUs; its flags make {ranks} ranks",
            where=file,
            fix=_FIX,
        )


def _figures(given: dict[str, Any], name: str, figures: dict[str, Figure]) -> InstanceFigures:
    cache, length = given["kv_cache"], given["max_model_len"]
    budget = given["memory"] and MemoryBudget(
        **{term: figures[f"{name}.memory.{term}"] for term in given["memory"]}
    )
    return InstanceFigures(
        budget=budget or None,
        capacity=Capacity(
            available_bytes=cache["available_bytes"],
            max_model_len=length["configured"],
            num_gpu_blocks=cache["num_gpu_blocks"],
            block_size=cache["block_size"],
            bytes_per_block=cache["bytes_per_block"],
            blocks_per_request=cache["blocks_per_request"],
            tokens=cache["tokens"],
            max_concurrency=cache["max_concurrency"],
            bytes_per_token=cache["bytes_per_token"],
            request_bytes=cache["request_bytes"],
            fits=given["fits"],
            estimated_max_model_len=length["fits"],
            groups=tuple(KVCacheGroup(**group) for group in cache["groups"]),
        ),
        derived_max_model_len=length["derived_limit"],
        attention_backend=given["attention_backend"],
        refusal=given["refusal"] or "",
        spare_bytes=given["spare_bytes"],
        may_miss_bytes=given["may_miss_bytes"],
        engines=cache["engines"],
        assumptions=tuple(_assumption(a) for a in given["assumptions"]),
    )


def _assumption(given: dict[str, Any]) -> Assumption:
    return Assumption(**{**given, "lowers_to": Confidence(given["lowers_to"])})
