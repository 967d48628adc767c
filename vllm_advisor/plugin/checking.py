"""The check of a starting server: what is found and what is expected, in a few lines of its log."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from vllm_advisor.plugin import variables
from vllm_advisor.plugin.guard import Running, TimeOverError, say
from vllm_advisor.plugin.telling import Result, tell
from vllm_advisor.plugin.words import environment_words, model_word, serve_command

_ANY_GPU = "h100-sxm"  # for the rehearsal
_START_METHOD = "VLLM_WORKER_MULTIPROC_METHOD"  # vLLM's command line sets it to spawn
LIMIT = 5.0  # seconds that a start may be held up


class Preflight:
    """One check. Made before vLLM reads its configuration, finished after.

    Where nobody has to wait for it, it is made beside the start, while the front end waits for its
    engine: a start does not get longer by it.

    Args:
        examine: what checks: ``(VllmConfig or None, engine arguments) -> Result``.
        limit: seconds that :meth:`finish` may take.
    """

    def __init__(
        self, examine: Callable[[Any, Any], Result] | None = None, limit: float = LIMIT
    ) -> None:
        self._examine = examine or _examine
        self._limit = limit
        rehearsed = examine is None and not _beside_the_start()
        self._warming = Running(_warm) if rehearsed else None

    def finish(self, config: Any, engine_args: Any) -> str | None:
        """Check, log, and say why the server is not to start, or None.

        Args:
            config: the VllmConfig; None if vLLM refused, and only errors are of interest.
            engine_args: the EngineArgs it was made from.
        """
        if config is not None and _beside_the_start():
            Running(lambda: self._beside(config, engine_args))
            return None
        start = time.monotonic()
        try:
            if self._warming is not None:
                with suppress(RuntimeError):  # the check itself will tell
                    self._warming.result(self._limit)
            left = self._limit - (time.monotonic() - start)
            result = Running(lambda: self._examine(config, engine_args)).result(max(0.1, left))
        except TimeOverError:
            say("warning", f"not checked: not done after {self._limit:g} s")
            return None
        except RuntimeError as error:
            say("warning", f"not checked: {error}")
            return None
        told = tell(result, time.monotonic() - start, refused=config is None, on_cpu=_cpu(config))
        if told.predicted is not None:
            variables.set_mark(told.predicted)
        return told.refusal

    def _beside(self, config: Any, engine_args: Any) -> None:
        """The whole check in a thread. Its result is for this process: others have started."""
        start = time.monotonic()
        try:
            result = self._examine(config, engine_args)
            told = tell(result, time.monotonic() - start, refused=False, on_cpu=_cpu(config))
            variables.set_prediction(told.predicted)
        except BaseException as error:  # a panic of an extension derives from it
            say("warning", f"not checked: {type(error).__name__}: {error}")


def _beside_the_start() -> bool:
    """Whether the server may start without the check.

    Not if errors are to refuse it; not if it starts others by copying itself, whose copy of a lock
    would stay taken; and not if those others are to hear what was predicted (several API servers).
    """
    if variables.mode() == variables.STRICT or variables.several_servers():
        return False
    return os.environ.get(_START_METHOD) == "spawn"


def _cpu(config: Any) -> bool:
    return _device(config) == "cpu"


def _device(config: Any) -> str:
    return str(getattr(getattr(config, "device_config", None), "device_type", ""))


def _warm() -> None:
    """Rehearse the check while vLLM is busy with its own: what it imports and reads stays."""
    from vllm_advisor.api.checking import check
    from vllm_advisor.api.models import local_facts_only
    from vllm_advisor.api.sizing import size
    from vllm_advisor.errors import AdvisorError
    from vllm_advisor.plugin import facts

    words = serve_command() or ["vllm", "serve"]
    version = facts.vllm_version()
    model = None
    with local_facts_only():
        with suppress(AdvisorError):
            model = facts.model_of(None, model_word(words))
        with suppress(AdvisorError):
            check(words, gpu=_ANY_GPU, model_config=model, vllm_version=version)
        with suppress(AdvisorError):
            _ = model and size(model, gpu=_ANY_GPU, vllm_version=version)


def _examine(config: Any, engine_args: Any) -> Result:
    from vllm_advisor.api.models import local_facts_only

    with local_facts_only():
        return _with_local_facts(config, engine_args)


def _with_local_facts(config: Any, engine_args: Any) -> Result:
    from vllm_advisor.api.checking import check
    from vllm_advisor.api.sizing import size
    from vllm_advisor.errors import AdvisorError
    from vllm_advisor.plugin import facts

    result = Result()
    model = node = None
    try:
        model = facts.model_of(config, str(facts.at(engine_args, "model") or ""))
    except AdvisorError as error:
        result.gaps["the model"] = facts.reason(error)
    try:
        node = facts.node(config)
    except AdvisorError as error:
        result.gaps["the GPU"] = facts.reason(error)
    version = facts.vllm_version()
    gpu = node.accelerator if node else None
    result.gpu = gpu.id if gpu else ""
    try:
        result.report = check(
            [*environment_words(), *(serve_command() or ())],
            gpu=gpu,
            gpu_count=node.gpu_count if node else None,
            model_config=model,
            vllm_version=version,
        )
    except AdvisorError as error:
        result.gaps["the command"] = facts.reason(error)
    if model is None or config is None:
        return result
    try:
        args = facts.arguments(config, engine_args)
        if gpu is not None or args.get("kv_cache_memory_bytes"):
            result.sized = size(model, gpu=gpu, vllm_version=version, **args)
        else:
            result.gaps["the KV cache"] = "its size is not given"
    except AdvisorError as error:
        result.gaps["the KV cache"] = facts.reason(error)
    return result
