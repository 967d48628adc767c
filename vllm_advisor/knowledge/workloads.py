"""workload.yaml: reading it, and its JSON Schema."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from vllm_advisor.errors import InputError
from vllm_advisor.knowledge import workload_file as keys
from vllm_advisor.knowledge.environments import environment_keys
from vllm_advisor.knowledge.workload_hardware import (
    AnyHardware,
    Described,
    DescribedHardware,
    GpuHardware,
    LabelledHardware,
)
from vllm_advisor.knowledge.workload_limits import (
    ConstraintsKeys,
    PricesKeys,
    RagKeys,
    RoutingKeys,
)
from vllm_advisor.knowledge.workload_problems import read_keys, read_workload_keys
from vllm_advisor.knowledge.yaml_marks import MAX_CHARACTERS, MarkedYaml, load_marked
from vllm_advisor.types import workload as types
from vllm_advisor.types.accelerator import Accelerator, Node, Price
from vllm_advisor.types.source import Source, SourceKind

MAX_BYTES = 4 * MAX_CHARACTERS  # of UTF-8


def read_workload(path: str | Path) -> types.Workload:
    """Read a workload file.

    Raises:
        InputError: the file cannot be read, or something in it is wrong (see ``load_workload``).
    """
    return load_workload(_text_of(Path(path)), file=str(path))


def load_workload(text: str | Path, *, file: str) -> types.Workload:
    """Read a workload from its text.

    Args:
        text: the YAML text; a ``Path`` is read first.
        file: what errors and origins call it. Files that it names are relative to its folder.

    Raises:
        InputError: the text is no YAML mapping of plain values.
        WorkloadError: keys or values are wrong: the first problem, with the rest in ``others``.
    """
    marked = load_marked(_text_of(text) if isinstance(text, Path) else text, file)
    return _workload(read_workload_keys(marked), marked)


def load_traffic(text: str | Path, *, file: str) -> types.Workload:
    """Read a workload, or only its ``classes``: then ``model`` is empty, and the hardware local.

    Args and errors are those of :func:`load_workload`.
    """
    marked = load_marked(_text_of(text) if isinstance(text, Path) else text, file)
    if "model" in marked.data or "hardware" in marked.data:
        return _workload(read_workload_keys(marked), marked)
    given = read_keys(marked, keys.TrafficKeys)
    limits = given.constraints or ConstraintsKeys()
    return types.Workload(
        name=_name_of(file),
        model="",
        hardware=types.Hardware(kind="local"),
        vllm_version=None,
        classes=_classes(given.classes, limits, marked),
        rag=_rag(given.rag),
        constraints=_constraints(limits),
    )


def workload_json_schema() -> dict[str, Any]:
    """JSON Schema (2020-12) of a workload file, for editors."""
    schema = keys.WorkloadKeys.model_json_schema()
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def _text_of(path: Path) -> str:
    """Text of a file, read no further than a workload file can be long."""
    where = str(path)
    try:
        with path.open("rb") as stream:
            raw = stream.read(MAX_BYTES + 1)
        if len(raw) > MAX_BYTES:
            what = f"the file is larger than {MAX_BYTES:,} bytes"
            raise InputError(what, where=where, fix="check that this is the file you meant")
        return raw.decode("utf-8")
    except FileNotFoundError:
        fix = "`vllm-advisor init` writes a workload file to start from"
        raise InputError("there is no such file", where=where, fix=fix) from None
    except IsADirectoryError:
        fix = "name the workload file in it"
        raise InputError("this is a folder", where=where, fix=fix) from None
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        what = f"the byte 0x{raw[error.start]:02X} is not UTF-8"
        fix = "save the file as UTF-8"
        raise InputError(what, where=f"{where}:{line}", fix=fix) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"the file cannot be read: {reason}", where=where) from None


def _workload(given: keys.WorkloadKeys, marked: MarkedYaml) -> types.Workload:
    """The file's keys as the type everything else works with."""
    limits = given.constraints or ConstraintsKeys()
    return types.Workload(
        name=given.name or _name_of(marked.file),
        model=given.model,
        hardware=_hardware(given, marked),
        vllm_version=given.vllm_version,
        classes=_classes(given.classes, limits, marked),
        features=tuple(dict.fromkeys(given.uses)),
        lora=types.Lora(**given.lora.model_dump()) if given.lora else None,
        images_per_prompt=given.images_per_prompt,
        rag=_rag(given.rag),
        constraints=_constraints(limits),
        prices=types.Prices(**(given.prices or PricesKeys()).model_dump()),
        routing=types.RoutingWishes(**(given.routing or RoutingKeys()).model_dump()),
        environment=environment_keys(given.environment),
        origins={".".join(map(str, path)): _line(marked, *path) for path in marked.marks if path},
    )


def _classes(
    given: list[keys.RequestClassKeys], limits: ConstraintsKeys, marked: MarkedYaml
) -> tuple[types.RequestClass, ...]:
    return tuple(
        _request_class(item, limits, _line(marked, "classes", index))
        for index, item in enumerate(given)
    )


def _rag(given: RagKeys | None) -> types.Rag:
    return types.Rag(**given.model_dump()) if given else types.Rag()


def _line(marked: MarkedYaml, *path: str | int) -> str:
    """A key's place as plans name it: without the folder, or each checkout would have its own."""
    return f"{Path(marked.file).name}:{marked.position(path)[0]}"


def _name_of(file: str) -> str:
    """The file's stem as a name: ``My Workload.yaml`` is ``my-workload``."""
    words = re.sub(r"[^a-z0-9]+", "-", Path(file).stem.lower()).strip("-")
    return words[:40].rstrip("-") or "workload"


def _request_class(
    given: keys.RequestClassKeys, limits: ConstraintsKeys, where: str
) -> types.RequestClass:
    rate, objective = given.requests_per_second, given.objective
    if given.batch:
        rate = given.batch.requests / (given.batch.within_hours * 3600)
        objective = types.Objective.THROUGHPUT
    return types.RequestClass(
        name=given.name,
        prompt_tokens=_distribution(given.prompt_tokens),
        output_tokens=_distribution(given.output_tokens),
        concurrent_requests=given.concurrent_requests,
        requests_per_second=rate,
        shared_prefix_tokens=given.shared_prefix_tokens,
        requests_per_document=given.requests_per_document,
        needs=given.needs,
        exact_recall=given.exact_recall or limits.exact_recall,
        objective=objective,
        slo=types.SLO(**given.slo.model_dump()) if given.slo else types.SLO(),
        where=where,
    )


def _distribution(tokens: int | keys.Spread | keys.Longest) -> types.TokenDistribution:
    return types.TokenDistribution(**keys.spread_of(tokens).model_dump())


def _constraints(given: ConstraintsKeys) -> types.Constraints:
    methods = given.weight_quantization
    return types.Constraints(
        weight_quantization=() if methods == "forbidden" else tuple(dict.fromkeys(methods)),
        kv_cache_dtypes=tuple(dict.fromkeys(given.kv_cache_dtypes)),
        max_gpus=given.max_gpus,
        budget_usd_per_hour=given.budget_usd_per_hour,
        trust_remote_code=given.trust_remote_code,
        gpu_memory_utilization=given.gpu_memory_utilization,
        short_context_tokens=given.short_context_tokens,
    )


def _hardware(given: keys.WorkloadKeys, marked: MarkedYaml) -> types.Hardware:
    where = _line(marked, "hardware")
    match given.hardware:
        case GpuHardware() as named:
            return _profile(named, where)
        case AnyHardware(any_of=offered):
            places = (_line(marked, "hardware", "any_of", i) for i in range(len(offered)))
            options = tuple(_profile(o, p) for o, p in zip(offered, places, strict=True))
            return types.Hardware(kind="any_of", options=options, where=where)
        case LabelledHardware(node_labels=name, nodes=nodes):
            path = str(Path(marked.file).parent / name)
            return types.Hardware(kind="labels", labels_file=path, node_count=nodes, where=where)
        case DescribedHardware(described=described):
            node = _node(described, marked)
            return types.Hardware(
                kind="described",
                gpu=node.accelerator.name,
                gpu_count=node.gpu_count,
                node_count=node.node_count,
                node=node,
                where=where,
            )
        case _:
            return types.Hardware(kind="local", where=where)


def _profile(named: GpuHardware, where: str) -> types.Hardware:
    return types.Hardware(
        kind="profile",
        gpu=named.gpu,
        gpu_count=named.count,
        node_count=named.nodes,
        usd_per_gpu_hour=named.usd_per_gpu_hour,
        where=where,
    )


def _node(given: Described, marked: MarkedYaml) -> Node:
    def source(key: str = "") -> Source:
        return Source(SourceKind.USER, _line(marked, "hardware", "described", key))

    memory_key = "gpu_memory" if given.gpu_memory is not None else "gpu_memory_bytes"
    major, minor = given.compute_capability.split(".")
    price = given.usd_per_gpu_hour
    accelerator = Accelerator(
        id="described",
        name=given.name,
        memory_total=given.memory,
        memory_total_source=source(memory_key),
        compute_capability=(int(major), int(minor)),
        memory_bandwidth=given.memory_bandwidth,
        bf16_flops=_flops(given.bf16_tflops),
        fp8_flops=_flops(given.fp8_tflops),
        nvlink_bandwidth=given.nvlink_bandwidth,
        unified_memory=given.unified_memory,
        price=None
        if price is None
        else Price(usd_per_gpu_hour=price, source=source("usd_per_gpu_hour")),
    )
    return Node(
        accelerator=accelerator,
        gpu_count=given.count,
        node_count=given.nodes,
        interconnect=given.interconnect,
        memory_used=given.memory_used,
        source=source(),
    )


def _flops(tera: float | None) -> int | None:
    return None if tera is None else round(tera * 10**12)
