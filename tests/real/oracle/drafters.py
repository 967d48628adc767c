"""The draft model of speculative decoding, built and wired to its target by vLLM's own speculator.

A draft's attention layers have KV caches of their own, and it shares what weights it can with the
target, so a server with a drafter has another capacity than its target alone.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

WITHOUT_MODEL = ("ngram", "ngram_gpu", "suffix")


def install() -> None:
    """Let vLLM's loader build a draft without filling or transforming its weights."""
    import torch
    from vllm.model_executor.model_loader import base_loader, dummy_loader

    equal = torch.equal

    def equal_on_meta(one: Any, other: Any) -> bool:
        # Tensors without values are told apart by shape only: a head of another vocabulary.
        return bool(one.shape == other.shape and equal(one, other))

    torch.equal = equal_on_meta

    def do_nothing(*_args: Any, **_kwargs: Any) -> None:
        pass

    def note_own_tables(_loader: Any, model: Any, *_args: Any) -> None:
        # What loading such a checkpoint finds: tables that cannot be the target's are its own.
        config = getattr(model, "config", None)
        rows = getattr(config, "draft_vocab_size", None)
        if rows is not None and rows != config.vocab_size:
            model.has_own_lm_head = True
        width = getattr(config, "target_hidden_size", None)
        if width is not None and width != config.hidden_size:
            model.has_own_embed_tokens = True

    dummy_loader.DummyModelLoader.load_weights = note_own_tables
    base_loader.process_weights_after_loading = do_nothing


def build(config: Any, target: Any) -> Any:
    """The speculator of the last pipeline stage with its model, or None if there is no model.

    Raises:
        NotImplementedError: vLLM would take its older model runner, whose drafters are not built.
    """
    speculative = config.speculative_config
    if speculative is None or speculative.method in WITHOUT_MODEL:
        return None
    if not config.use_v2_model_runner:
        raise NotImplementedError("oracle: drafters of the older model runner are not built")
    import torch
    from vllm.v1.worker.gpu.spec_decode import init_speculator

    speculator = init_speculator(config, torch.device("meta"), None)
    speculator.load_model(target)
    return speculator


def kv_cache_specs(config: Any, speculator: Any) -> dict[str, Any]:
    """What the model runner reports: a spec per layer that has a cache, those of a draft too."""
    from vllm.v1.worker.gpu import model_runner
    from vllm.v1.worker.gpu_model_runner import GPUModelRunner

    if config.use_v2_model_runner:
        size = config.parallel_config.decode_context_parallel_size
        runner = SimpleNamespace(vllm_config=config, speculator=speculator, dcp_size=size)
        return model_runner.GPUModelRunner.get_kv_cache_spec(runner)
    runner = SimpleNamespace(vllm_config=config, shared_kv_cache_layers={})
    return GPUModelRunner.get_kv_cache_spec(runner)
