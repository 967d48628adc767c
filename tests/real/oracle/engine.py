"""Lets vLLM's own code answer a question, up to where a real server would profile the GPU.

The order is a real server's: engine arguments become a config, each pipeline stage's model is
built, the platform settles the block size, and ``EngineCore._initialize_kv_caches`` itself does
the rest over an executor that only repeats what the workers would report.
"""

from __future__ import annotations

import logging
import re
import tempfile
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from . import drafters, facts, fake_cuda, fake_offload, fake_ranks, stand_ins
from .compare import message
from .executor import Executor, unchanged
from .resolved import resolved_facts

if TYPE_CHECKING:
    from .questions import Question

NEEDED = re.compile(r"\(([\d.]+) GiB KV cache is needed")
ESTIMATED = re.compile(r"estimated maximum model length is (\d+)")


class _Log(logging.Handler):
    """Keeps vLLM's log lines, so that none is printed."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


def prepare() -> None:
    """Import what every question needs, once, so that forks of this process have it."""
    import torch
    import vllm.model_executor.models.deepseek_v2
    import vllm.model_executor.models.llama
    import vllm.model_executor.models.qwen3_next
    import vllm.v1.engine.core
    import vllm.v1.worker.gpu.model_runner
    import vllm.v1.worker.gpu_model_runner  # noqa: F401
    from vllm.model_executor.layers.fused_moe import expert_map_manager

    # 0.32 logs which experts a rank has, by values that tensors on the meta device do not have.
    expert_map_manager.ExpertMapManager.get_compressed_map_string = lambda _self: ""
    fake_ranks.install()
    drafters.install()
    torch.set_num_threads(1)


def answer(question: Question) -> dict[str, Any]:
    """The row that answers ``question``: ``ok`` with facts, or not with vLLM's message."""
    import vllm

    log = _Log()
    logger = logging.getLogger("vllm")
    logger.handlers[:] = [log]
    logger.setLevel(logging.INFO)
    logger.propagate = False
    row = question.row() | {"vllm": vllm.__version__.partition("+")[0]}
    with tempfile.TemporaryDirectory() as folder:
        model = question.write_model(Path(folder))
        try:
            found = _answer(question, model)
            row |= {"ok": True} | found
        except (Exception, SystemExit) as error:  # noqa: BLE001  (any refusal is an answer)
            text = message(error).replace(str(model), question.model)
            blame = "oracle: " if stand_ins.is_to_blame(text) else ""
            row |= {"ok": False, "error": blame + text}
    if question.verbose:
        row |= {"log": log.lines, "stand_ins_called": list(stand_ins.taken())}
    return row


def _answer(question: Question, model: Path) -> dict[str, Any]:
    from vllm.engine.arg_utils import EngineArgs
    from vllm.usage.usage_lib import UsageContext

    given = {"model": str(model), "tokenizer": str(model), "skip_tokenizer_init": True}
    arguments = EngineArgs(load_format="dummy", **(given | question.engine_args))
    config = arguments.create_engine_config(usage_context=UsageContext.OPENAI_API_SERVER)
    found: dict[str, Any] = {"resolved": resolved_facts(config, everything=question.verbose)}
    stages = _build_stages(config, verbose=question.verbose)
    weights = stages.weights
    found["block_size"] = config.cache_config.block_size
    found["backends"] = stages.backends
    found["weights"] = [stage["param_bytes"] for stage in weights]
    found["params"] = [stage["params"] for stage in weights]
    found["buffers"] = [stage["buffer_bytes"] for stage in weights]
    if any(saved is not None for saved in stages.offloaded):
        found["offloaded"] = stages.offloaded
    if stages.drafter:
        found["drafter"] = stages.drafter
    found["specs"] = sorted({type(s).__name__ for specs in stages.specs for s in specs.values()})
    if question.verbose:
        found["weight_facts"] = weights
        found["layers"] = facts.layer_facts(stages.specs)
        found["mamba"] = {
            key: facts.plain(value)
            for key, value in vars(config.cache_config).items()
            if key.startswith("mamba_")
        }
    found["runs"] = [_run(config, stages, size, question) for size in question.available]
    return found


def _build_stages(config: Any, *, verbose: bool) -> SimpleNamespace:
    """Build rank 0 of each pipeline stage; ranks of a stage hold equal shapes.

    Returns:
        Per stage: ``specs`` (layer name to KV cache spec), ``layouts`` (names of KV cache
        layouts), ``weights`` (``facts.weight_facts``), ``offloaded`` (bytes that leave the GPU,
        ``None`` where nothing is moved); ``backends``, the attention backends' names, of the first
        stage; ``drafter``, what a draft model adds to the last.
    """
    import torch
    from vllm.config import set_current_vllm_config
    from vllm.distributed.kv_transfer.kv_connector.utils import get_current_attn_backends
    from vllm.model_executor.model_loader.utils import initialize_model
    from vllm.platforms import current_platform
    from vllm.utils.torch_utils import set_default_torch_dtype
    from vllm.v1.attention.backends.utils import get_supported_kv_cache_layouts
    from vllm.v1.worker.workspace import init_workspace_manager

    parallel, dtype = config.parallel_config, config.model_config.dtype
    stages = SimpleNamespace(
        specs=[], layouts=[], weights=[], offloaded=[], backends=None, drafter=None
    )
    for stage in range(parallel.pipeline_parallel_size):
        ranks = parallel.tensor_parallel_size * parallel.prefill_context_parallel_size
        parallel.rank = stage * ranks
        config.compilation_config.static_forward_context.clear()
        with set_current_vllm_config(config):
            fake_ranks.become(parallel.rank, parallel)
            init_workspace_manager(torch.device("meta"), 1, 1)
            offloader = fake_offload.install(config)
            with (
                fake_cuda.meta_device(),
                set_default_torch_dtype(dtype),
                torch.device("meta"),
                fake_offload.meta_copies(),
            ):
                model = initialize_model(vllm_config=config)
                last = stage == parallel.pipeline_parallel_size - 1
                speculator = drafters.build(config, model) if last else None
        stages.offloaded.append(fake_offload.saved_bytes(offloader))
        if speculator is not None:
            stages.drafter = facts.weight_facts(speculator.model, beside=model)
            stages.drafter["layers"] = sorted(speculator.draft_attn_layer_names)
        stages.weights.append(_weigh(model, config, verbose=verbose))
        if stage == 0:
            current_platform.update_block_size_for_backend(config)
        with set_current_vllm_config(config):
            stages.specs.append(drafters.kv_cache_specs(config, speculator))
            backends = get_current_attn_backends(config)
            layouts = get_supported_kv_cache_layouts(backends)
            stages.layouts.append([layout.name for layout in layouts])
        if stages.backends is None:
            stages.backends = sorted({backend.get_name() for backend in backends})
    return stages


def _weigh(model: Any, config: Any, *, verbose: bool) -> dict[str, Any]:
    """The model's weights as loaded and, when verbose, after vLLM's transforms of them."""
    weights = facts.weight_facts(model)
    if not verbose:
        return weights
    import torch
    from vllm.config import set_current_vllm_config
    from vllm.model_executor.model_loader import utils
    from vllm.utils.torch_utils import set_default_torch_dtype

    weights["components"] = facts.component_facts(model)
    utils.device_loading_context = lambda module, _device: nullcontext(module)
    try:
        with (
            set_current_vllm_config(config),
            fake_cuda.meta_device(values=True),
            set_default_torch_dtype(config.model_config.dtype),
            torch.device("meta"),
        ):
            utils.process_weights_after_loading(model, config.model_config, torch.device("meta"))
        weights["after_processing"] = facts.weight_facts(model)
    except Exception as error:  # noqa: BLE001  (a transform that needs a kernel or real values)
        weights["after_processing"] = f"not known: {type(error).__name__}: {error}"
    return weights


def _run(
    config: Any, stages: SimpleNamespace, available: int, question: Question
) -> dict[str, Any]:
    """What the engine core makes of ``available`` bytes per GPU."""
    from vllm.v1.engine.core import EngineCore

    run: dict[str, Any] = {"available": available}
    with unchanged(config):
        executor = Executor(config, stages, available)
        core = SimpleNamespace(
            model_executor=executor,
            collective_rpc=lambda *_args, **_kwargs: [],
            available_gpu_memory_for_kv_cache=-1,
        )
        try:
            scheduled = EngineCore._initialize_kv_caches(core, config)
        except Exception as error:  # noqa: BLE001  (a refusal is an answer)
            needed, estimated = NEEDED.search(str(error)), ESTIMATED.search(str(error))
            run |= {
                "refused": True,
                "needed_gib": float(needed[1]) if needed else None,
                "estimated_max_model_len": int(estimated[1]) if estimated else None,
            }
            return run | ({} if needed else {"error": message(error)})
        cache = config.cache_config
        run |= {
            "num_blocks": scheduled.num_blocks,
            "tokens": getattr(cache, "kv_cache_size_tokens", None),
            "concurrency": getattr(cache, "kv_cache_max_concurrency", None),
            "max_model_len": config.model_config.max_model_len,
        }
        if question.verbose:
            first = executor.configs[0]
            run["layout"] = executor.layout
            run["block_size"] = cache.block_size
            run["hash_block_size"] = scheduled.hash_block_size
            run["groups"] = [facts.group_facts(group, config) for group in first.kv_cache_groups]
            run["tensors"] = [tensor.size for tensor in first.kv_cache_tensors]
    return run
