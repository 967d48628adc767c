"""What one vLLM version knows: its flags, as its parser has them, and what it takes for granted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from packaging.version import Version

from vllm_advisor.errors import UnknownFactError
from vllm_advisor.knowledge.engine_facts import facts_of
from vllm_advisor.knowledge.engine_tables import (
    known_versions,
    nearest,
    parse_version,
    recorded_flags,
    recorded_table,
)
from vllm_advisor.types.accelerator import Accelerator
from vllm_advisor.types.engine import BatchDefaults, EngineFacts, Flag, Parsing
from vllm_advisor.types.model import ModelFacts
from vllm_advisor.types.source import Assumption, Confidence, Source, SourceKind

_LISTS = ("spellings", "negations", "choices")
_QUANTIZATION = "vllm/model_executor/layers/quantization/__init__.py#get_quantization_config"
_CONNECTORS = "vllm/distributed/kv_transfer/kv_connector/factory.py"


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineSources:
    """Where the facts of an :class:`EngineFacts` that are not flags were read."""

    parsing: Source
    gpu_memory_utilization: Source
    block_size: Source
    async_scheduling: Source
    gdn_prefill_checkpoint: Source
    image_uid: Source
    sparse_pcp_graphs: Source
    float_cache_is_models: Source
    tower_on_first_stage: Source
    own_cache_connectors: Source
    synchronous_drafting: Source
    draft_shares_embedding: Source
    draft_lookahead_in_batch: Source
    batch_defaults: Source
    layout_checked: Source
    kv_connectors: Source
    quantization_min_capability: Source


@cache
def load_engine(version: str | None = None) -> EngineFacts:
    """Facts of a vLLM version.

    Args:
        version: ``0.33.0``, also as ``v0.33.0`` or with a local part (``0.33.0+cu129``); ``None``
            for the newest known.

    Returns:
        Facts with ``known=False`` when the version itself is not recorded; they are then those of
        ``version_used``: the nearest recorded release that is not newer, or the one of the same
        minor version.

    Raises:
        InputError: the text is no version.
        UnknownFactError: the version is older than all that are recorded.
    """
    asked = parse_version(version or known_versions()[-1])
    used = nearest(asked)
    flags, source = recorded_flags(used)
    facts = facts_of(used)
    parsing = facts["parsing"]
    return EngineFacts(
        version=str(asked),
        flags={entry["dest"]: _flag(entry) for entry in flags},
        parsing=Parsing(
            dotted_keys=parsing.dotted_keys,
            number_suffixes=parsing.number_suffixes,
            short_o=parsing.short_o,
            model_flag=parsing.model_flag,
            name_needs_model=parsing.name_needs_model,
        ),
        gpu_memory_utilization=facts["gpu_memory_utilization"].value,
        block_size=facts["block_size"].value,
        async_scheduling=facts["async_scheduling"].value,
        gdn_prefill_checkpoint=facts["gdn_prefill_checkpoint"].value,
        image_uid=facts["image_uid"].value,
        sparse_pcp_graphs=facts["sparse_pcp_graphs"].value,
        float_cache_is_models=facts["float_cache_is_models"].value,
        tower_on_first_stage=facts["tower_on_first_stage"].value,
        kv_connectors=_connectors(used, facts["own_cache_connectors"].names),
        synchronous_drafting=facts["synchronous_drafting"].names,
        draft_shares_embedding=facts["draft_shares_embedding"].value,
        draft_lookahead_in_batch=facts["draft_lookahead_in_batch"].value,
        layout_checked=facts["layout_checked"].value,
        carried=facts.carried,
        source=source,
        known=asked == Version(used),
        version_used=used,
    )


def engine_assumptions(engine: EngineFacts) -> tuple[Assumption, ...]:
    """What is taken for true when this version is sized or planned for."""
    if engine.known:
        return layout_assumptions(engine)
    text = f"vLLM {engine.version} is not recorded; facts of {engine.version_used} are used"
    unknown = Assumption(id="vllm-version-not-known", text=text, lowers_to=Confidence.LOW)
    return (unknown, *layout_assumptions(engine))


def layout_assumptions(engine: EngineFacts) -> tuple[Assumption, ...]:
    """What is taken for true of a version whose memory was not compared with its own code."""
    if engine.layout_checked:
        return ()
    text = (
        f"the KV cache of vLLM {engine.version_used} was not compared with its own code: its V1 "
        "engine is taken to group layers and to choose block sizes and attention backends as the "
        "oldest version that was compared does"
    )
    if engine.carried:
        text += f"; so are {', '.join(engine.carried)}"
    return (Assumption(id="vllm-version-not-compared", text=text),)


def batch_defaults(engine: EngineFacts, accelerator: Accelerator) -> BatchDefaults:
    """Scheduler defaults of ``vllm serve`` on one device, before a model or a flag changes them.

    Raises:
        UnknownFactError: no class of devices is recorded that holds this one.
    """
    for device in facts_of(engine.version_used or engine.version)["batch_defaults"].classes:
        if device.holds(accelerator):
            return BatchDefaults(
                max_num_batched_tokens=device.max_num_batched_tokens,
                max_num_seqs=device.max_num_seqs,
            )
    raise UnknownFactError(
        f"no scheduler defaults are recorded for {accelerator.name} on vLLM {engine.version}",
        fix="give max_num_batched_tokens and max_num_seqs",
    )


def quantization_min_capability(engine: EngineFacts) -> dict[str, int]:
    """Least compute capability (8.9 is 89) of each quantization method of the version.

    Passing it does not mean that the method runs natively: fp8 below 89 and NVFP4 below 100 use
    weight-only kernels. Methods of other devices than NVIDIA's have none and are left out.
    """
    return dict(_min_capability(engine.version_used or engine.version))


@cache
def _min_capability(version: str) -> Mapping[str, int]:
    table, _ = recorded_table("quantization", version)
    return {n: entry["capability"] for n, entry in table.items() if "capability" in entry}


def runs_fp8_weights(
    engine: EngineFacts, model: ModelFacts, accelerator: Accelerator | None
) -> bool:
    """Whether ``--quantization fp8`` is taken for 16-bit weights on this GPU."""
    if accelerator is None or model.quantization is not None:
        return False
    return accelerator.capability >= quantization_min_capability(engine)["fp8"]


def engine_sources(engine: EngineFacts) -> EngineSources:
    """Where each fact of the version that is no flag was read."""
    version = engine.version_used or engine.version
    facts = {n: Source.parse(e.source) for n, e in facts_of(version).entries.items()}
    tables = {}
    for name, place in (("connectors", _CONNECTORS), ("quantization", _QUANTIZATION)):
        _, read = recorded_table(name, version)  # type: ignore[arg-type]
        tables[name] = Source(SourceKind.VLLM, f"{read}:{place}")
    return EngineSources(
        **facts,
        kv_connectors=tables["connectors"],
        quantization_min_capability=tables["quantization"],
    )


def _connectors(version: str, own_cache: tuple[str, ...]) -> dict[str, str]:
    """Whether each KV connector takes groups of layers that do not all keep the same."""
    table, _ = recorded_table("connectors", version)
    says = {True: "yes", False: "no", None: "unknown"}
    return {
        name: "own_cache" if name in own_cache else says[entry.get("grouped")]
        for name, entry in table.items()
    }


def _flag(entry: dict[str, Any]) -> Flag:
    values: dict[str, Any] = {k: tuple(v) if k in _LISTS else v for k, v in entry.items()}
    return Flag(**values)
