"""From what ``--speculative-config`` says to who drafts, and what that means for the target."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from vllm_advisor.api.models import find_draft
from vllm_advisor.api.speculative_config import (
    DRAFT_MODEL,
    WHERE,
    check_draft_tp,
    check_lookup,
    drafting_method,
    speculative_args,
    whole_number,
)
from vllm_advisor.errors import InfeasibleError, NotModelledError
from vllm_advisor.knowledge.eagle import EAGLE, EAGLE3
from vllm_advisor.sizing.context_length import default_max_model_len
from vllm_advisor.types.engine import EngineFacts
from vllm_advisor.types.model import KVCacheSpecKind, ModelFacts
from vllm_advisor.types.runner import Runner
from vllm_advisor.types.source import Assumption
from vllm_advisor.types.speculation import Speculation

_NGRAM = ("ngram", "ngram_gpu")
_SUFFIX_DEPTH = 24  # vllm/config/speculative.py#suffix_decoding_max_tree_depth
_MODELLED = ("mtp", DRAFT_MODEL, EAGLE, EAGLE3)
_MIXED = frozenset({KVCacheSpecKind.FULL_ATTENTION, KVCacheSpecKind.SLIDING_WINDOW})
# Position encodings of which max_position_embeddings only sizes a table: vLLM makes the draft's as
# long as the target's (vllm/config/speculative.py#_CACHE_ONLY_ROPE_TYPES).
_STRETCHED = frozenset({"default", "linear", "llama3", "ntk", "proportional"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Drafting:
    """A Speculation with what it changes about the target's own settings.

    ``longest`` is the longest context the draft can follow, ``None`` where it does not limit the
    target; ``async_scheduling`` is False where batches do not overlap with it.
    """

    speculation: Speculation
    longest: int | None = None
    async_scheduling: bool = True
    assumptions: tuple[Assumption, ...] = ()


def resolve_drafting(
    model: ModelFacts, engine: EngineFacts, args: dict[str, Any], tp: int
) -> Drafting | None:
    """Who drafts; ``None`` without speculative decoding.

    Args:
        model: the target.
        engine: the vLLM version.
        args: engine arguments by vLLM's dest names.
        tp: the target's tensor parallel size.

    Raises:
        InputError: a key that SpeculativeConfig does not have, or no mapping.
        InfeasibleError: vLLM refuses the values.
        NotModelledError: a method or key whose memory is not computed.
    """
    given = speculative_args(args)
    if given is None:
        return None
    method = drafting_method(given)
    found = _drafting(model, engine, method, given, tp)
    off = {method, *(key for key, value in given.items() if value)}
    return replace(found, async_scheduling=off.isdisjoint(engine.synchronous_drafting))


def _drafting(
    model: ModelFacts, engine: EngineFacts, method: str, given: dict[str, Any], tp: int
) -> Drafting:
    number = whole_number(given, "num_speculative_tokens")
    check_draft_tp(given, tp)
    if method in _NGRAM:
        check_lookup(given)
        return Drafting(speculation=_without_model(method, number))
    if method == "suffix":
        number = number or whole_number(given, "suffix_decoding_max_tree_depth") or _SUFFIX_DEPTH
        return Drafting(speculation=_without_model(method, number))
    if method not in _MODELLED:
        raise NotModelledError(
            f"drafting with {method} is not modelled",
            where=WHERE,
            fix=f"one of {', '.join((*_NGRAM, 'suffix', *_MODELLED))}",
        )
    if method == "mtp":
        return _mtp(model, engine, given, number)
    return _separate(model, method, given, number)


def _needed(number: int | None) -> int:
    if number is None:
        raise InfeasibleError(
            "num_speculative_tokens must be provided with speculative model unless the draft model "
            "config contains an n_predict parameter.",
            where=WHERE,
            fix="num_speculative_tokens: 3",
        )
    return number


def _without_model(method: str, number: int | None) -> Speculation:
    return Speculation(method=method, num_speculative_tokens=_needed(number))


def _mtp(
    model: ModelFacts, engine: EngineFacts, given: dict[str, Any], number: int | None
) -> Drafting:
    named = given.get("model")
    if named is not None and named != model.model_id:
        raise NotModelledError(
            f"MTP layers of another checkpoint ({named}) are not modelled",
            where=WHERE,
            fix="leave model out to draft with the target's own layers",
        )
    number = _needed(number)
    mtp = model.mtp
    if mtp is None:
        raise NotModelledError(
            f"{model.model_id} ({model.architecture}) has no MTP layers that vLLM is known to "
            "draft with",
            where=WHERE,
            fix="another method, or the figures of vLLM's start-up log",
        )
    _check_divides(number, mtp.predicts)
    if min(mtp.modules, number) > 1 and any(spec.window for spec in model.cache_specs):
        # vllm/v1/kv_cache_interface.py#SlidingWindowSpec.extra_retained_tokens
        raise NotModelledError(
            f"what the windows of {model.model_id} keep for {number} drafts of MTP layers that run "
            "in turn is not modelled",
            where=WHERE,
            fix="num_speculative_tokens: 1",
        )
    draft = replace(
        model,
        num_hidden_layers=len(mtp.kv_cache),
        kv_cache=mtp.kv_cache,
        weights=replace(model.weights, components=mtp.components, checkpoint_bytes=None),
        mtp=None,
    )
    embedding = tuple(c for c in model.weights.components if c.name == "embed_tokens")
    return Drafting(
        speculation=Speculation(
            method="mtp",
            num_speculative_tokens=number,
            draft=draft,
            copies=() if mtp.shares_embedding and engine.draft_shares_embedding else embedding,
            lookahead_tokens=number,
            samples_drafts=_samples(given),
        )
    )


def _check_divides(number: int, predicts: int | None) -> None:
    if predicts and number > predicts and number % predicts:
        raise InfeasibleError(
            f"num_speculative_tokens:{number} must be divisible by n_predict={predicts}",
            where=WHERE,
        )


def _samples(given: dict[str, Any]) -> bool:
    return given.get("draft_sample_method") == "probabilistic"


def _separate(
    model: ModelFacts, method: str, given: dict[str, Any], number: int | None
) -> Drafting:
    """A draft model with a checkpoint of its own."""
    named = given.get("model")
    if named is None:
        raise InfeasibleError(
            "num_speculative_tokens was provided but without speculative model.",
            where=WHERE,
            fix="model: the draft's id or folder",
        )
    found = find_draft(str(named), method, model)
    draft = found.model
    _check_mix(model, draft)
    number = _needed(number)
    if method == DRAFT_MODEL and draft.vocab_size != model.vocab_size:
        raise InfeasibleError(
            "Target and draft model should have the same vocabulary size. Target model "
            f"vocab_size={model.vocab_size}. Draft model vocab_size={draft.vocab_size}.",
            where=WHERE,
            fix="a draft of the target's family",
        )
    stretched = method != DRAFT_MODEL and draft.rope.rope_type in _STRETCHED
    return Drafting(
        speculation=Speculation(
            method=method,
            num_speculative_tokens=number,
            draft=draft,
            copies=found.copies or (),
            single_stage=_single_stage(model, method, shared=found.copies is not None),
            lookahead_tokens=number,
            samples_drafts=_samples(given),
        ),
        longest=None if stretched else default_max_model_len(draft),
        assumptions=found.assumptions,
    )


def _check_mix(model: ModelFacts, draft: ModelFacts) -> None:
    """Caches that were never held against vLLM's own grouping."""
    kinds = {spec.kind for spec in draft.cache_specs} - _MIXED
    sparse = any(spec.sparse for spec in model.cache_specs)
    if kinds or sparse or model.block_outermost:
        what = f"{', '.join(sorted(kinds))} layers" if kinds else "keys and values"
        raise NotModelledError(
            f"a draft of {what} ({draft.model_id}) beside {model.model_id} is not modelled",
            where=WHERE,
            fix="a draft whose layers keep keys and values, or the target's own MTP layers",
        )


def _single_stage(model: ModelFacts, method: str, *, shared: bool) -> str:
    """Why a draft with a checkpoint of its own goes with one pipeline stage only, or nothing."""
    if method == DRAFT_MODEL:
        return "vLLM builds only the last share of the draft's layers"
    if method == EAGLE:
        return "vLLM numbers the draft's layers like those of another stage"
    if not shared:
        return f"{model.architecture} has no embedding on the last stage for it to share"
    return ""


def drafted_length(
    engine: EngineFacts,
    drafting: Drafting,
    length: int,
    batched: int,
    notes: list[Assumption],
) -> int:
    """The context that target and draft can both follow.

    Source: vllm/config/vllm.py#_limit_max_model_len_to_draft.

    Raises:
        InfeasibleError: a batch has no room for the draft's tokens.
    """
    ahead = drafting.speculation.lookahead_tokens
    if not engine.draft_lookahead_in_batch:
        ahead = int(drafting.speculation.method == DRAFT_MODEL)
    if batched <= ahead:
        raise InfeasibleError(
            "VllmConfig does not have enough slots to schedule a token and support the speculative "
            f"decoding settings. Got max_num_batched_tokens={batched} and num_lookahead_tokens="
            f"{ahead}.",
            where="--max-num-batched-tokens",
            fix=f"--max-num-batched-tokens {ahead + 1} or more",
        )
    notes.extend(drafting.assumptions)
    return min(length, drafting.longest or length)


def async_scheduling(
    model: ModelFacts, engine: EngineFacts, drafting: Drafting | None, args: dict[str, Any]
) -> bool:
    """Whether batches overlap: not with every way to draft, nor by default for models that pool.

    Source: vllm/config/vllm.py#VllmConfig.__post_init__.

    Raises:
        InfeasibleError: it is asked for all the same.
    """
    asked = args.get("async_scheduling")
    if drafting is not None and not drafting.async_scheduling:
        if asked:
            raise InfeasibleError(
                "Async scheduling is not supported with "
                f"{drafting.speculation.method}-based speculative decoding.",
                where="--async-scheduling",
                fix="leave --async-scheduling out",
            )
        return False
    if asked is None and model.runner is Runner.POOLING:
        return False
    return args.get("async_scheduling", engine.async_scheduling) is not False
