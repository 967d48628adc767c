"""The search for one instance: every candidate vLLM accepts, sized, cheapest first."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

from vllm_advisor.decide.candidate import (
    FP8_CACHE,
    FP8_WEIGHTS,
    LADDER,
    Candidate,
    Setting,
    distance,
)
from vllm_advisor.decide.context import Context
from vllm_advisor.decide.demand import Demand
from vllm_advisor.decide.features import recipe_spreads
from vllm_advisor.decide.fitting import needed_blocks, why_not_held
from vllm_advisor.decide.parallel_sizes import ParallelSizes, parallel_sizes
from vllm_advisor.decide.scheduling import (
    Chunk,
    chunk_for,
    sequences_for,
    shared_chunk,
    small_chunk,
)
from vllm_advisor.decide.service import (
    HEADROOM,
    chunk_within,
    missed_at_best,
    missed_targets,
    speed_of,
    with_requests_at_once,
)
from vllm_advisor.errors import AdvisorError
from vllm_advisor.knowledge.attention import attention_choice
from vllm_advisor.knowledge.engines import batch_defaults, quantization_min_capability
from vllm_advisor.sizing.instance import cache_layout, size_instance
from vllm_advisor.sizing.kv_cache import WINDOWED
from vllm_advisor.sizing.overrides import with_tables
from vllm_advisor.sizing.settings import InstanceSettings
from vllm_advisor.units import ceil_div

_MANY = 1_000_000  # engines: each request has one to itself


class Search:
    """All candidates of one instance, sized once and kept for the account of what was tried."""

    def __init__(
        self,
        setting: Setting,
        demands: tuple[Demand, ...],
        context: Context,
        *,
        long_documents: bool,
        protected: bool = False,
    ) -> None:
        self.setting = setting
        self.demands = demands
        self.context = context
        self.loaded = with_tables(setting.model, context.hf_overrides)
        self.defaults = batch_defaults(setting.engine, setting.node.accelerator)
        self.long_documents = long_documents
        self.protected = protected
        timed = setting.latency is not None and not setting.pooling
        self.chunk = chunk_for(demands, self.defaults, long_documents=long_documents, timed=timed)
        self.untimed_chunk = chunk_for(demands, self.defaults, long_documents=long_documents)

    @cached_property
    def candidates(self) -> tuple[Candidate, ...]:
        """Every candidate, cheapest feasible first, infeasible ones last."""
        setting = self.setting
        ways = parallel_sizes(setting.model, setting.node, setting.constraints.max_gpus)
        tried = [(s, way) for s in self._steps() for way in ways]
        found = [c for each in tried if (c := self._accepted(*each)) is not None]
        served = sorted((c for c in found if not c.fails), key=lambda c: c.order)
        return (*served, *sorted((c for c in found if c.fails), key=distance))

    @property
    def best(self) -> Candidate | None:
        """The cheapest candidate that serves the demand, or ``None``."""
        first = self.candidates[0]
        return None if first.fails else first

    def skipped_steps(self) -> tuple[tuple[str, str], ...]:
        """Steps of the ladder that were switched off, and why."""
        out = []
        for step, why in (
            (LADDER[0], self._no_fp8_weights()),
            (LADDER[1], self._no_fp8_cache()),
        ):
            if why:
                out.append((step, why))
        out.append(
            (
                "cpu-offload",
                (
                    "offloading KV to the CPU keeps evicted prefixes; a running request still "
                    "needs all of its blocks on the GPU, so it does not let more requests run"
                ),
            )
        )
        return tuple(out)

    def _steps(self) -> list[tuple[str, ...]]:
        steps: list[tuple[str, ...]] = [()]
        if not self._no_fp8_weights():
            steps.append((LADDER[0],))
        if not self._no_fp8_cache():
            steps += [(*s, LADDER[1]) for s in steps]
        windowed = any(s.kind in WINDOWED for s in self.setting.model.cache_specs)
        if windowed and self.chunk.tokens > small_chunk():
            steps += [(*s, LADDER[2]) for s in steps]
        return steps

    def _no_fp8_weights(self) -> str:
        model, gpu = self.setting.model, self.setting.node.accelerator
        if FP8_WEIGHTS not in self.setting.constraints.weight_quantization:
            return "the workload forbids quantizing the weights"
        if model.quantization is not None:
            return f"the checkpoint is quantized already ({model.quantization.method})"
        least = quantization_min_capability(self.setting.engine).get("fp8", 75)
        if gpu.capability < least:
            return f"--quantization fp8 needs compute capability {least / 10:.1f}"
        return ""

    def _no_fp8_cache(self) -> str:
        model, gpu = self.setting.model, self.setting.node.accelerator
        if FP8_CACHE not in self.setting.constraints.kv_cache_dtypes:
            return "the workload does not allow an FP8 KV cache"
        if model.quantization and model.quantization.kv_cache_dtype:
            return "the checkpoint declares an FP8 KV cache already"
        try:
            attention_choice(model, gpu.capability, gpu.name, FP8_CACHE)
        except AdvisorError as error:
            return error.what
        return ""

    def _accepted(self, steps: tuple[str, ...], way: ParallelSizes) -> Candidate | None:
        """A candidate, or ``None`` where context parallelism does not go with its cache."""
        try:
            return self._candidate(steps, way)
        except AdvisorError:
            if way.context == 1:
                raise
            return None

    def _candidate(self, steps: tuple[str, ...], way: ParallelSizes) -> Candidate:
        setting, context = self.setting, self.context
        gpu = setting.node.accelerator
        cache_dtype = FP8_CACHE if LADDER[1] in steps else "auto"
        choice = attention_choice(
            setting.model,
            gpu.capability,
            gpu.name,
            cache_dtype,
            text_only=setting.text_only,
        )
        chunk = self.chunk if way.context == 1 else self.untimed_chunk
        if LADDER[2] in steps:
            chunk = Chunk(
                tokens=small_chunk(),
                reason="layers with a window keep the tokens in flight, two chunks, beside it: a "
                "smaller chunk makes every request smaller",
            )
        if way.data > 1:
            chunk = shared_chunk(chunk, way.data)
        settings = InstanceSettings(
            max_model_len=context.max_model_len,
            max_num_batched_tokens=chunk.tokens,
            max_num_seqs=8,
            gpu_memory_utilization=setting.utilization,
            block_size=choice.block_size,
            attention_backend=choice.backend,
            capability=gpu.capability,
            sparse_format=choice.sparse_format,
            kv_cache_dtype=cache_dtype,
            tensor_parallel_size=way.tensor,
            pipeline_parallel_size=way.pipeline,
            decode_context_parallel_size=way.context,
            data_parallel_size=way.data,
            enable_expert_parallel=way.data > 1 or (way.gpus > 1 and recipe_spreads(setting.model)),
            quantization=FP8_WEIGHTS if LADDER[0] in steps else None,
            language_model_only=setting.language_model_only,
            max_loras=setting.lora.max_loras if setting.lora else 0,
            max_lora_rank=setting.lora.max_lora_rank if setting.lora else 16,
            async_scheduling=setting.engine.async_scheduling,
            gdn_prefill_checkpoint=setting.engine.gdn_prefill_checkpoint,
            tower_on_first_stage=setting.engine.tower_on_first_stage,
            max_position_embeddings=context.max_position_embeddings,
        )
        return self._fill(settings, steps, chunk)

    def _fill(self, settings: InstanceSettings, steps: tuple[str, ...], chunk: Chunk) -> Candidate:
        """The fewest replicas that hold the demand; each engine takes an equal share."""
        setting, asked, spare = self.setting, chunk, self.setting.overheads.error_bytes
        layout = cache_layout(setting.model, settings)
        limit = min(
            setting.constraints.max_gpus or setting.node.total_gpus, setting.node.total_gpus
        )
        most = max(1, limit // settings.gpus)
        speed = speed_of(setting, settings, layout)
        best = None if speed is not None else speed_of(setting, settings, layout, at_best=True)
        # What a request misses that is alone, no number of replicas will meet.
        alone = (
            "" if speed is None else missed_targets(self.demands, speed.load(self.demands, _MANY))
        )
        most = 1 if alone else most
        last: Candidate | None = None
        for replicas in range(1, most + 1):
            engines = replicas * settings.data_parallel_size
            demands, itl = self.demands, ""
            if speed is not None:
                at_once = speed.load(demands, engines)
                if not at_once.saturated:
                    demands = with_requests_at_once(demands, at_once)
                chunk, itl = chunk_within(demands, at_once, asked, settings.max_model_len)
                settings = replace(settings, max_num_batched_tokens=chunk.tokens)
            total = sum(d.concurrency for d in demands)
            seqs = sequences_for(ceil_div(total, engines), chunk.tokens)
            settings = replace(settings, max_num_seqs=seqs)
            figures = size_instance(
                self.loaded,
                settings,
                accelerator=setting.node.accelerator,
                overheads=setting.overheads,
                layout=layout,
            )
            needed = needed_blocks(demands, layout, engines)
            held = why_not_held(figures, layout, demands, needed, engines=engines, spare=spare)
            fails = held or alone or itl
            load = None
            if best is not None and not fails:
                fails = missed_at_best(demands, best.load(demands, engines, headroom=HEADROOM))
            if speed is not None and not fails:
                speed = replace(
                    speed, settings=replace(speed.settings, max_num_batched_tokens=chunk.tokens)
                )
                load = speed.load(demands, engines, protected=self.protected)
                strained = speed.load(
                    demands,
                    engines,
                    blocks=figures.capacity.num_gpu_blocks,
                    headroom=HEADROOM,
                    protected=self.protected,
                )
                fails = missed_targets(demands, strained)
            last = Candidate(
                settings=settings,
                steps=steps,
                replicas=replicas,
                figures=figures,
                chunk=chunk,
                long_documents=self.long_documents,
                demands=demands,
                needed_blocks=needed,
                load=load,
                fails=fails,
            )
            if not last.fails or not figures.capacity.fits:
                return last  # more replicas do not make one request smaller
        assert last is not None  # noqa: S101 - most >= 1
        return last
