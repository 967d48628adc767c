"""Decisions about parallel sizes and served names."""

from __future__ import annotations

from vllm_advisor.decide.candidate import Candidate
from vllm_advisor.decide.reasons import Scope, formula, vllm
from vllm_advisor.decide.search import Search
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
    """TP, PP and DCP, with the candidates that lost."""
    settings, model = chosen.settings, search.setting.model
    because = (f"{scope.name}.memory.weights", f"{scope.name}.memory.kv_cache")
    rejected = _losers(search, chosen)
    if settings.ranks == 1:
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


def _losers(search: Search, chosen: Candidate) -> tuple[Rejected, ...]:
    out: list[Rejected] = []
    for other in search.candidates:
        if other is chosen or other.steps != chosen.steps or len(out) == 3:
            continue
        why = other.fails or f"{other.gpus} GPUs instead of {chosen.gpus}"
        if not other.fails and other.gpus == chosen.gpus:
            why = "no cheaper, and more ranks that have to talk to each other"
        out.append(Rejected(option=other.label, why=why))
    return tuple(out)
