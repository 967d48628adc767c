"""Decisions about parallel sizes and served names."""

from __future__ import annotations

from vllm_advisor.decide.candidate import Candidate, lost_to, one_of_each
from vllm_advisor.decide.reasons import Scope, formula, vllm
from vllm_advisor.decide.search import Search
from vllm_advisor.sizing.settings import InstanceSettings
from vllm_advisor.types.decision import Decision, Rejected


def served_names_flag(scope: Scope, names: tuple[str, ...]) -> Decision:
    """The names clients may ask for."""
    return scope.decide(
        "served_model_name",
        list(names),
        "clients and routers ask for the role by name; the model's own name keeps working",
        formula("role-names"),
    )


def parallel_flags(scope: Scope, search: Search, chosen: Candidate) -> list[Decision]:
    """TP, PP, DCP and DP with EP, with the candidates that lost."""
    settings, model = chosen.settings, search.setting.model
    because = (f"{scope.name}.memory.weights", f"{scope.name}.memory.kv_cache")
    rejected = _losers(search, chosen)
    if settings.gpus == 1:
        return [
            scope.decide(
                "parallelism",
                "one GPU",
                "weights and KV cache fit on one GPU: replicas of one GPU scale without "
                "communication",
                formula("cheapest-candidate"),
                flag=False,
                because=because,
                rejected=rejected,
            )
        ]
    out = []
    if settings.tensor_parallel_size > 1:
        why = f"divides weights over {settings.tensor_parallel_size} GPUs of one node"
        if model.uses_mla:
            why += "; MLA keeps its latent cache whole on every rank, so TP alone adds no context"
        elif settings.tensor_parallel_size > model.num_key_value_heads:
            why += (
                f"; KV heads ({model.num_key_value_heads}) are replicated beyond "
                f"{model.num_key_value_heads} ranks"
            )
        else:
            why += ", and the KV heads with them"
        out.append(
            scope.decide(
                "tensor_parallel_size",
                settings.tensor_parallel_size,
                why,
                formula("cheapest-candidate"),
                because=because,
                rejected=rejected,
            )
        )
    if settings.pipeline_parallel_size > 1:
        out.append(
            scope.decide(
                "pipeline_parallel_size",
                settings.pipeline_parallel_size,
                "one node does not hold the model: layers are split over "
                f"{settings.pipeline_parallel_size} nodes",
                formula("cheapest-candidate"),
                because=because,
                rejected=() if out else rejected,
            )
        )
    out += _data_parallel_flags(scope, search, settings, () if out else rejected)
    if settings.ranks > search.setting.node.gpu_count:
        nodes = settings.ranks // search.setting.node.gpu_count
        out.append(
            scope.decide(
                "nnodes",
                nodes,
                f"one replica spans {nodes} nodes without Ray: the first node leads "
                "(--master-addr), the others join it with --node-rank and --headless",
                vllm("0.33.0:vllm/config/parallel.py#nnodes"),
            )
        )
    if settings.decode_context_parallel_size > 1:
        out.append(
            scope.decide(
                "decode_context_parallel_size",
                settings.decode_context_parallel_size,
                "the KV cache, replicated on the tensor-parallel ranks otherwise, is split over "
                f"them by tokens: {settings.decode_context_parallel_size} times the context",
                vllm("0.33.0:vllm/config/parallel.py#decode_context_parallel_size"),
                because=(f"{scope.name}.kv.tokens",),
            )
        )
    return out


def _data_parallel_flags(
    scope: Scope, search: Search, settings: InstanceSettings, rejected: tuple[Rejected, ...]
) -> list[Decision]:
    """Engines with a cache of their own, and whole experts spread over the GPUs of all."""
    engines, model = settings.data_parallel_size, search.setting.model
    out = []
    if engines > 1:
        held = "the latent cache" if model.uses_mla else "every KV head"
        out.append(
            scope.decide(
                "data_parallel_size",
                engines,
                f"{engines} engines, each with its own attention, its own KV cache and its own "
                f"max_num_seqs, behind one port: tensor parallelism over {settings.gpus} GPUs "
                f"would hold {held} more than once. Attention weights are held by every engine",
                vllm("0.33.0:vllm/v1/engine/core_client.py#DPLBAsyncMPClient"),
                because=(f"{scope.name}.memory.weights", f"{scope.name}.kv.total_concurrency"),
                rejected=rejected,
            )
        )
    if settings.enable_expert_parallel:
        out.append(
            scope.decide(
                "enable_expert_parallel",
                True,  # noqa: FBT003
                f"each of the {settings.gpus} GPUs holds whole experts, 1/{settings.gpus} of them",
                vllm("0.33.0:vllm/config/parallel.py#enable_expert_parallel")
                if engines > 1 or model.serving.source is None
                else model.serving.source,
                because=(f"{scope.name}.memory.weights",),
            )
        )
    return out


def _losers(search: Search, chosen: Candidate) -> tuple[Rejected, ...]:
    others = (c for c in search.candidates if c is not chosen and c.steps == chosen.steps)
    return tuple(Rejected(option=c.label, why=lost_to(chosen, c)) for c in one_of_each(others, 3))
