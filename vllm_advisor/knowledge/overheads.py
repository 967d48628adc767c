"""Memory beside weights and cache, per family of vLLM versions."""

from __future__ import annotations

from functools import cache

import yaml
from packaging.specifiers import SpecifierSet
from pydantic import BaseModel, ConfigDict

from vllm_advisor import resources
from vllm_advisor.errors import NotModelledError
from vllm_advisor.types.engine import Overheads
from vllm_advisor.units import GIB


class _Row(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    versions: str
    logits_factor: float
    hidden_factor: float
    constant_gib: float
    moe_gib: float
    multimodal_gib: float
    non_torch_gib: float
    non_torch_parallel_gib: float
    graph_base_gib: float
    graph_layer_gib: float
    graph_moe_gib: float
    graph_reference_sizes: int
    graphs_set_aside: bool = True
    sample: int
    error_gib: float
    source: str


@cache
def load_overheads(version: str) -> Overheads:
    """The constants that hold for a vLLM version.

    Raises:
        NotModelledError: no family of start-up logs covers the version.
    """
    path = resources.profiles("memory") / "overheads.yaml"
    for raw in yaml.safe_load(path.read_text(encoding="utf-8")):
        row = _Row.model_validate(raw)
        if not SpecifierSet(row.versions).contains(version, prereleases=True):
            continue
        return Overheads(
            versions=row.versions,
            logits_factor=row.logits_factor,
            hidden_factor=row.hidden_factor,
            constant_bytes=round(row.constant_gib * GIB),
            moe_bytes=round(row.moe_gib * GIB),
            multimodal_bytes=round(row.multimodal_gib * GIB),
            non_torch_bytes=round(row.non_torch_gib * GIB),
            non_torch_parallel_bytes=round(row.non_torch_parallel_gib * GIB),
            graph_base_bytes=round(row.graph_base_gib * GIB),
            graph_layer_bytes=round(row.graph_layer_gib * GIB),
            graph_moe_bytes=round(row.graph_moe_gib * GIB),
            graph_reference_sizes=row.graph_reference_sizes,
            graphs_set_aside=row.graphs_set_aside,
            sample=row.sample,
            error_bytes=round(row.error_gib * GIB),
            source=row.source,
        )
    raise NotModelledError(
        f"activation and graph memory of vLLM {version} is not known",
        where="vllm_version",
        fix="use vLLM 0.17 or later",
    )
