"""The decision tree, readable top to bottom. Questions are functions, leaves are strategies."""

from __future__ import annotations

from enum import StrEnum

from vllm_advisor.sizing.settings import InstanceSettings
from vllm_advisor.types.model import KVCacheSpecKind, ModelFacts
from vllm_advisor.types.workload import Needs, Objective, RequestClass, Workload


class Strategy(StrEnum):
    """A leaf of the tree."""

    STANDARD = "standard"
    THROUGHPUT = "throughput"
    RAG_FIRST = "rag-first"
    NATIVE_SLIDING_WINDOW = "native-sliding-window"
    BOUNDED_HISTORY = "bounded-history"
    WHOLE_CONTEXT = "whole-context"


class Serving(StrEnum):
    """How a whole-context instance holds its context: the lower leaves."""

    ONE_GPU = "one-gpu"
    ONE_GPU_FP8_KV = "one-gpu-fp8-kv-cache"
    TENSOR_PARALLEL = "tensor-parallel"
    CONTEXT_PARALLEL = "decode-context-parallel"
    DATA_PARALLEL = "data-parallel-attention"
    PIPELINE_PARALLEL = "pipeline-parallel"


# What a person is told about each leaf.
REASONS = {
    Strategy.STANDARD: "prompt and answer stay within the short limit: a short-context instance "
    "with paged KV cache and prefix caching",
    Strategy.THROUGHPUT: "short requests and throughput above all: continuous batching with many "
    "sequences per step",
    Strategy.RAG_FIRST: "retrieval can answer it: the passages go to the short instance instead of "
    "the whole document",
    Strategy.NATIVE_SLIDING_WINDOW: "only the recent past matters and every layer of the model has "
    "a sliding window: its KV cache stops growing by itself",
    Strategy.BOUNDED_HISTORY: "only the recent past matters: the application truncates or "
    "summarises the history to the short limit; what is older is lost",
    Strategy.WHOLE_CONTEXT: "the whole context has to be read: a long-document instance",
}


def class_strategy(request: RequestClass, workload: Workload, model: ModelFacts) -> Strategy:
    """The upper tree: what to do with one request class."""
    if not needs_long_context(request, workload):
        if request.objective is Objective.THROUGHPUT:
            return Strategy.THROUGHPUT
        return Strategy.STANDARD
    if answerable_by_retrieval(request, workload):
        return Strategy.RAG_FIRST
    if needs_only_the_recent_past(request):
        if every_layer_slides(model):
            return Strategy.NATIVE_SLIDING_WINDOW
        return Strategy.BOUNDED_HISTORY
    return Strategy.WHOLE_CONTEXT


def serving_of(settings: InstanceSettings) -> Serving:
    """The lower tree: which leaf a chosen whole-context instance stands on."""
    if settings.pipeline_parallel_size > 1:
        return Serving.PIPELINE_PARALLEL
    if settings.data_parallel_size > 1:
        return Serving.DATA_PARALLEL
    if settings.decode_context_parallel_size > 1:
        return Serving.CONTEXT_PARALLEL
    if settings.tensor_parallel_size > 1:
        return Serving.TENSOR_PARALLEL
    if settings.kv_cache_dtype != "auto":
        return Serving.ONE_GPU_FP8_KV
    return Serving.ONE_GPU


def needs_long_context(request: RequestClass, workload: Workload) -> bool:
    """Prompt and output together are above the short limit."""
    return request.max_total_tokens > workload.constraints.short_context_tokens


def answerable_by_retrieval(request: RequestClass, workload: Workload) -> bool:
    """The answer is in some passages, and the application can retrieve them."""
    return request.needs is Needs.LOOKUP and workload.rag.available


def needs_only_the_recent_past(request: RequestClass) -> bool:
    """Losing the far past is acceptable; never when exact recall is asked for."""
    return request.needs is Needs.RECENT_ONLY and not request.exact_recall


def every_layer_slides(model: ModelFacts) -> bool:
    """The model was trained with a sliding window in all its layers."""
    return all(s.kind is KVCacheSpecKind.SLIDING_WINDOW for s in model.cache_specs)
