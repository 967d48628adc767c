"""A second opinion on latency: what another tool says of the same deployment.

It is no dependency, is imported only when it is asked, and never changes a figure of ours. Whatever
it raises is its answer.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module, metadata

from vllm_advisor.api.aiconfigurator import MODULE, PACKAGE, answer, unanswerable
from vllm_advisor.api.models import config_of
from vllm_advisor.errors import InputError
from vllm_advisor.sizing.capacity import CacheLayout
from vllm_advisor.sizing.settings import InstanceSettings
from vllm_advisor.types.accelerator import Accelerator
from vllm_advisor.types.model import ModelFacts
from vllm_advisor.types.second_opinion import Question, SecondOpinion

AICONFIGURATOR = "aiconfigurator"
TOOLS = (AICONFIGURATOR,)
_LONGEST_REASON = 300  # characters


def installed_version(tool: str) -> str:
    """The version of the tool, which is imported to see that it works.

    Raises:
        InputError: there is no such tool, or it is not installed.
    """
    if tool not in TOOLS:
        raise InputError(
            f"{tool} is no tool for a second opinion",
            where="--second-opinion",
            fix=f"one of: {', '.join(TOOLS)}",
        )
    try:
        import_module(f"{MODULE}.sdk")
    except ImportError as error:
        raise InputError(
            f"{tool} is not installed: {error}",
            where="--second-opinion",
            fix="pip install 'vllm-advisor[aiconfigurator]'",
        ) from error
    try:
        return metadata.version(PACKAGE)
    except metadata.PackageNotFoundError:
        return "unknown"


def question_of(
    name: str,
    facts: ModelFacts,
    settings: InstanceSettings,
    layout: CacheLayout,
    gpu: Accelerator,
    *,
    load: Mapping[str, float],
    cached: float,
) -> Question:
    """The deployment as a question.

    Args:
        name: the model, as :func:`~vllm_advisor.api.models.find_model` takes it.
        facts: of that model.
        settings: resolved engine arguments.
        layout: of the KV cache.
        gpu: the GPU.
        load: ``input_tokens``, ``output_tokens`` and, in a closed loop, ``concurrency``.
        cached: tokens of the prompt that prefix caching finds.

    Raises:
        InputError, UnknownFactError: the model's config.json cannot be read.
    """
    config, quant_config = config_of(name)
    return Question(
        config=config,
        quant_config=quant_config,
        experts=facts.num_experts > 0,
        gpu=gpu.id,
        tensor_parallel_size=settings.tensor_parallel_size,
        pipeline_parallel_size=settings.pipeline_parallel_size,
        data_parallel_size=settings.data_parallel_size,
        expert_parallel=settings.enable_expert_parallel,
        kv_cache_dtype=layout.settings.cache_dtype,
        quantization=settings.quantization,
        max_num_seqs=settings.max_num_seqs,
        max_num_batched_tokens=settings.max_num_batched_tokens,
        prompt=round(load["input_tokens"]),
        output=round(load["output_tokens"]),
        cached=round(cached),
        concurrency=load.get("concurrency"),
    )


def ask(tool: str, question: Question) -> SecondOpinion:
    """Ask the tool; never raises for what happens inside of it.

    Args:
        tool: one of :data:`TOOLS`.
        question: the deployment and its load.

    Raises:
        InputError: there is no such tool, or it is not installed.
    """
    version = installed_version(tool)
    reason = unanswerable(question)
    if reason:
        return SecondOpinion(tool=tool, version=version, reason=reason)
    try:
        with _quiet():
            return answer(tool, version, question)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - a panic of its Rust part is no Exception
        said, _, _ = " ".join(str(error).split()).partition(". ")  # what follows are lists
        reason = f"{type(error).__name__}: {said or 'no more is said'}"[:_LONGEST_REASON]
        return SecondOpinion(tool=tool, version=version, reason=reason)


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep its remarks about tables out of our output."""
    log = logging.getLogger(MODULE)
    before = log.level
    log.setLevel(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        log.setLevel(before)
