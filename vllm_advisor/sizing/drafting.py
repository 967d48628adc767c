"""What speculative decoding adds to the last pipeline stage beside the draft's KV cache."""

from __future__ import annotations

from dataclasses import replace

from vllm_advisor.errors import NotModelledError
from vllm_advisor.sizing.parallelism import check_parallelism
from vllm_advisor.sizing.settings import InstanceSettings
from vllm_advisor.sizing.weights import weight_bytes
from vllm_advisor.types.source import Assumption, Confidence

MTP = "mtp"


def draft_weight_bytes(settings: InstanceSettings, *, loaded: bool = True) -> int:
    """Bytes of the draft's own weights on one rank; 0 where no model drafts.

    Layers of the target's checkpoint are quantized while loading as the target is; a draft of its
    own is not (vllm/config/speculative.py#SpeculativeConfig.__post_init__). RoPE tables of an MTP
    layer or an EAGLE head are the target's; ``loaded`` is that of ``weight_bytes``.
    """
    speculation = settings.speculation
    if speculation is None or speculation.draft is None:
        return 0
    draft = speculation.draft
    copies = speculation.copies if settings.pipeline_parallel_size > 1 else ()
    parts = (*draft.weights.components, *copies)
    return weight_bytes(
        replace(draft, weights=replace(draft.weights, components=parts)),
        tensor_parallel_size=settings.tensor_parallel_size,
        expert_parallel_ranks=settings.data_parallel_size,
        expert_parallel=settings.enable_expert_parallel,
        capability=settings.capability,
        online_quantization=settings.quantization if speculation.method == MTP else None,
        language_model_only=True,
        loaded=loaded,
    ).rank_bytes


def check_draft(settings: InstanceSettings) -> None:
    """Raise what stands between a draft and these parallel sizes.

    Raises:
        InfeasibleError: vLLM refuses the draft's heads over the target's ranks.
        NotModelledError: several pipeline stages with a draft that needs one.
    """
    speculation = settings.speculation
    if speculation is None or speculation.draft is None:
        return
    check_parallelism(speculation.draft, tensor_parallel_size=settings.tensor_parallel_size)
    if settings.pipeline_parallel_size > 1 and speculation.single_stage:
        raise NotModelledError(
            f"{speculation.method} beside pipeline parallelism is not modelled: "
            f"{speculation.single_stage}",
            where="--pipeline-parallel-size",
            fix="--pipeline-parallel-size 1",
        )


def drafting_assumptions(settings: InstanceSettings) -> tuple[Assumption, ...]:
    """What a budget rests on with speculative decoding; empty without."""
    speculation = settings.speculation
    if speculation is None:
        return ()
    what = "the tokens that are verified at once"
    if speculation.draft is not None:
        what = f"the draft's hidden states, its CUDA graphs and {what}"
    return (
        Assumption(
            id="speculative-decoding-overheads",
            text=f"memory beside weights and KV cache counts {what} by vLLM's code; no start-up "
            "log with speculative decoding was fitted",
            lowers_to=Confidence.MEDIUM,
        ),
    )
