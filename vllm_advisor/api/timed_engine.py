"""A deployment whose speed can be told: found, sized, and made a station for any lengths."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from vllm_advisor.api.models import find_model
from vllm_advisor.api.runner import served_model
from vllm_advisor.api.sizing import GPUS_OF_ONE_NODE, SizeReport, size
from vllm_advisor.errors import InfeasibleError, InputError
from vllm_advisor.knowledge.gpus import find_gpu
from vllm_advisor.knowledge.latency_constants import load_latency
from vllm_advisor.sizing.capacity import CacheLayout
from vllm_advisor.sizing.instance import cache_layout
from vllm_advisor.sizing.performance import station_of, uncertain
from vllm_advisor.sizing.replay import kv_capacity
from vllm_advisor.sizing.settings import InstanceSettings
from vllm_advisor.sizing.steady_state import Station
from vllm_advisor.types.accelerator import Accelerator
from vllm_advisor.types.latency import LatencyFit
from vllm_advisor.types.model import ModelFacts

if TYPE_CHECKING:
    from vllm_advisor.knowledge.calibrations import Calibration


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedEngine:
    """One deployment, and what its speed is worked out from."""

    facts: ModelFacts
    accelerator: Accelerator
    sized: SizeReport
    fit: LatencyFit

    @property
    def layout(self) -> CacheLayout:
        """Of its KV cache."""
        return cache_layout(self.facts, self.settings)

    @property
    def engines(self) -> int:
        """Data-parallel engines that share its load."""
        return self.settings.data_parallel_size

    @property
    def settings(self) -> InstanceSettings:
        """Resolved engine arguments."""
        return self.sized.settings

    def station(self, prompt: float, output: float, prefix_hit_rate: float = 0.0) -> Station:
        """One data-parallel engine, with requests of these mean tokens.

        Raises:
            InfeasibleError: no request of that length fits the context.
            NotModelledError: something of it has no formula here.
        """
        if prompt + output > self.settings.max_model_len:
            raise InfeasibleError(
                f"{prompt:.10g} + {output:.10g} tokens are more than max_model_len "
                f"{self.settings.max_model_len}",
                where="--input-tokens",
                fix="shorter requests, or a larger --max-model-len",
            )
        return station_of(
            self.facts,
            self.settings,
            self.accelerator,
            self.layout,
            self.fit,
            num_gpu_blocks=self.sized.figures.capacity.num_gpu_blocks,
            prompt=prompt,
            output=output,
            cached=prefix_hit_rate * prompt if self.settings.prefix_caching else 0.0,
        )

    def kv_tokens(self, station: Station, longest: int) -> int:
        """Tokens that the KV cache of one engine holds, at least those of the longest request.

        vLLM starts only where one of max_model_len fits. Windows keep less of a long request than
        of a mean one for each of its tokens, which the capacity by mean requests does not know.
        """
        return max(kv_capacity(station), longest * self.settings.pipeline_parallel_size)

    @property
    def notes(self) -> tuple[str, ...]:
        """What the constants were not fitted to, or what is left out."""
        notes = uncertain(self.facts, self.settings)
        if self.settings.ranks > GPUS_OF_ONE_NODE:
            notes += ("several nodes: the network between them is taken to be as fast as NVLink",)
        if self.accelerator.id not in self.fit.gpus:
            notes += (f"{self.accelerator.name}: no measurement of this GPU is in the fit",)
        return notes


def find_engine(
    model: str,
    *,
    gpu: str | Accelerator,
    gpu_count: int,
    vllm_version: str | None,
    fit: LatencyFit | None,
    calibration: Calibration | Sequence[Calibration] | None = None,
    engine_args: dict[str, Any],
) -> TimedEngine:
    """Find and size a deployment; the arguments are those of :func:`~vllm_advisor.estimate`.

    Raises:
        InputError: a calibration is of another GPU type, or two are of the same thing.
        InfeasibleError: vLLM would not start.
        UnknownFactError: the model or GPU is not known, or something is not modelled.
    """
    memory: tuple[Calibration, ...] | None = None
    if calibration is not None:
        fit, memory = _of_kinds(calibration, fit)
    sized = size(
        model,
        gpu=gpu,
        gpu_count=gpu_count,
        vllm_version=vllm_version,
        calibration=memory,
        **engine_args,
    )
    if not sized.fits:
        raise InfeasibleError(
            f"vLLM would not start: {sized.figures.refusal}",
            where="model",
            fix="see `vllm-advisor size` for what would help",
        )
    accelerator = find_gpu(gpu) if isinstance(gpu, str) else gpu
    fit = fit or load_latency()
    _refuse_other_gpu(fit, accelerator)
    return TimedEngine(
        facts=served_model(find_model(model), engine_args),
        accelerator=accelerator,
        sized=sized,
        fit=fit,
    )


def _of_kinds(
    calibration: Calibration | Sequence[Calibration], fit: LatencyFit | None
) -> tuple[LatencyFit | None, tuple[Calibration, ...] | None]:
    """The constants of speed, and the calibrations of memory, if there are any."""
    from vllm_advisor.knowledge.calibrations import read_calibrations  # noqa: PLC0415 - pydantic

    found = read_calibrations(calibration)
    if found.latency is not None and fit is not None:
        raise InputError(
            "constants of speed are given twice", where="calibration", fix="leave out one of them"
        )
    return found.latency or fit, found.memory or None


def _refuse_other_gpu(fit: LatencyFit, accelerator: Accelerator) -> None:
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
