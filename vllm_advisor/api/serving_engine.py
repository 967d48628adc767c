"""One deployment as its speed is computed: sized, resolved, and started in thought."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from vllm_advisor.api.models import find_model
from vllm_advisor.api.runner import served_model
from vllm_advisor.api.sizing import GPUS_OF_ONE_NODE, SizeReport, size
from vllm_advisor.errors import InfeasibleError, InputError
from vllm_advisor.knowledge.gpus import find_gpu
from vllm_advisor.sizing.instance import cache_layout
from vllm_advisor.sizing.performance import station_of, uncertain
from vllm_advisor.sizing.steady_state import Station
from vllm_advisor.types.accelerator import Accelerator
from vllm_advisor.types.latency import LatencyFit
from vllm_advisor.types.model import ModelFacts


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingEngine:
    """A deployment that starts: its model, its GPU and what it was sized to."""

    model: ModelFacts
    accelerator: Accelerator
    sized: SizeReport

    @property
    def engines(self) -> int:
        """Data-parallel engines that share its load."""
        return self.sized.settings.data_parallel_size

    def station(
        self, fit: LatencyFit, *, prompt: float, output: float, prefix_hit_rate: float = 0.0
    ) -> Station:
        """One engine and its mean request.

        Args:
            fit: the constants.
            prompt: mean tokens of a prompt.
            output: mean tokens of an answer.
            prefix_hit_rate: share of the prompt that prefix caching finds.

        Raises:
            InfeasibleError: no request of that length fits the context.
            NotModelledError: something of it has no formula.
        """
        settings = self.sized.settings
        if prompt + output > settings.max_model_len:
            raise InfeasibleError(
                f"{prompt:.10g} + {output:.10g} tokens are more than max_model_len "
                f"{settings.max_model_len}",
                where="--input-tokens",
                fix="shorter requests, or a larger --max-model-len",
            )
        return station_of(
            self.model,
            settings,
            self.accelerator,
            cache_layout(self.model, settings),
            fit,
            num_gpu_blocks=self.sized.figures.capacity.num_gpu_blocks,
            prompt=prompt,
            output=output,
            cached=prefix_hit_rate * prompt if settings.prefix_caching else 0.0,
        )

    def notes(self, fit: LatencyFit) -> tuple[str, ...]:
        """What the constants were not fitted to, or what is left out; each lowers confidence."""
        notes = uncertain(self.model, self.sized.settings)
        if self.sized.settings.ranks > GPUS_OF_ONE_NODE:
            notes += ("several nodes: the network between them is taken to be as fast as NVLink",)
        if self.accelerator.id not in fit.gpus:
            notes += (f"{self.accelerator.name}: no measurement of this GPU is in the fit",)
        return notes


def find_engine(
    model: str,
    *,
    gpu: str | Accelerator,
    gpu_count: int,
    vllm_version: str | None,
    engine_args: dict[str, Any],
) -> ServingEngine:
    """The deployment of these arguments.

    Args:
        model: as in :func:`~vllm_advisor.size`, like the others.
        gpu: GPU profile, NVML name or accelerator.
        gpu_count: GPUs.
        vllm_version: vLLM version.
        engine_args: vLLM's dest names.

    Raises:
        InputError: an argument has no meaning.
        InfeasibleError: vLLM would not start.
        UnknownFactError: the model or GPU is not known, or something is not modelled.
    """
    sized = size(model, gpu=gpu, gpu_count=gpu_count, vllm_version=vllm_version, **engine_args)
    if not sized.fits:
        raise InfeasibleError(
            f"vLLM would not start: {sized.figures.refusal}",
            where="model",
            fix="see `vllm-advisor size` for what would help",
        )
    return ServingEngine(
        model=served_model(find_model(model), engine_args),
        accelerator=find_gpu(gpu) if isinstance(gpu, str) else gpu,
        sized=sized,
    )


def refuse_other_gpu(fit: LatencyFit, accelerator: Accelerator) -> None:
    """Constants of one GPU type say nothing of another.

    Raises:
        InputError: the fit was calibrated on another one.
    """
    on = fit.calibrated_on
    if on is not None and on.gpu != accelerator.id:
        raise InputError(
            f"this calibration was made on {on.gpu}, not on {accelerator.id}",
            where=f"--calibration {on.file}",
            fix=f"leave it out, or calibrate again with measurements of {accelerator.id}",
        )
