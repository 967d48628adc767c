"""Arguments of the scheduler: tokens and sequences in one batch, and chunked prefill."""

from __future__ import annotations

from typing import Any

from vllm_advisor.api.arguments import integer, tokens
from vllm_advisor.api.runner import check_encoder, chunks_prefill
from vllm_advisor.errors import InfeasibleError
from vllm_advisor.knowledge.engines import batch_defaults
from vllm_advisor.types.accelerator import Accelerator
from vllm_advisor.types.engine import BatchDefaults, EngineFacts
from vllm_advisor.types.model import ModelFacts
from vllm_advisor.types.source import Assumption


def usual_limits(
    engine: EngineFacts,
    accelerator: Accelerator | None,
    args: dict[str, Any],
    notes: list[Assumption],
) -> BatchDefaults:
    """What the version takes on this device; ``notes`` gets what is assumed without one.

    Source: vllm/engine/arg_utils.py#_set_default_max_num_seqs_and_batched_tokens_args.
    """
    factor = 2 if args.get("performance_mode") == "throughput" else 1
    if accelerator is not None:
        found = batch_defaults(engine, accelerator)
        return BatchDefaults(
            max_num_batched_tokens=found.max_num_batched_tokens * factor,
            max_num_seqs=found.max_num_seqs * factor,
        )
    notes.append(
        Assumption(
            id="gpu-not-named",
            text="no GPU is named: batch defaults and block size of a 70-160 GiB data-centre GPU "
            "(8,192 tokens, 1,024 sequences, compute capability 9.0) are taken",
        )
    )
    return BatchDefaults(max_num_batched_tokens=8192 * factor, max_num_seqs=1024 * factor)


def scheduler_limits(
    model: ModelFacts, args: dict[str, Any], defaults: BatchDefaults, max_model_len: int
) -> tuple[int, int]:
    """``max_num_batched_tokens`` and ``max_num_seqs`` as vLLM makes them fit together.

    Source: vllm/engine/arg_utils.py#_set_default_max_num_seqs_and_batched_tokens_args,
    vllm/config/scheduler.py#verify_max_model_len.

    Raises:
        InputError: one of them is no number of tokens or sequences.
        InfeasibleError: vLLM refuses them, beside each other or for the model.
    """
    batched = tokens(args, "max_num_batched_tokens", defaults.max_num_batched_tokens)
    asked = args.get("enable_chunked_prefill")
    chunked = chunks_prefill(model) if asked is None else bool(asked)
    sequences = integer(args, "max_num_seqs", defaults.max_num_seqs)
    if args.get("max_num_batched_tokens") is None:
        if model.prefix_lm and not args.get("language_model_only"):
            batched = max(batched, model.item_tokens)
        least = batched if chunked else max(batched, max_model_len)
        batched = min(least, sequences * max_model_len)
    elif not chunked and batched < max_model_len:
        raise InfeasibleError(
            f"max_num_batched_tokens ({batched}) is smaller than max_model_len "
            f"({max_model_len}), and without chunked prefill a prompt has to fit in one batch.",
            where="--max-num-batched-tokens",
            fix=f"--max-num-batched-tokens {max_model_len}"
            + (", or leave chunked prefill on" if chunks_prefill(model) else ""),
        )
    check_encoder(model, batched)
    if args.get("max_num_seqs") is None:
        sequences = min(sequences, batched)
    if sequences > batched:
        raise InfeasibleError(
            f"max_num_batched_tokens ({batched}) must be greater than or equal to max_num_seqs "
            f"({sequences}).",
            where="--max-num-batched-tokens",
            fix=f"--max-num-seqs {batched} or less",
        )
    return batched, sequences
