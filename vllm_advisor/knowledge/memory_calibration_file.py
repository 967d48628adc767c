"""Memory calibration files: what one start-up log says of the memory beside the KV cache.

``vllm-advisor report LOG --output FILE`` writes them. Every term stands as logged beside what was
predicted for the log's arguments, so that a file made with other bundled constants is noticed when
it is used. Everything is checked when it is read: people edit such files.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from vllm_advisor.knowledge.workload_values import Keys, Line, Problem
from vllm_advisor.units import GIB, format_bytes

SCHEMA_VERSION = "1"
KIND = "memory"
_MOST_BYTES = 1 << 42  # 4 TiB, beyond any GPU
_MOST_RATIO = 100  # beyond it, the log is of something else than what was predicted
_MOST_DIFFERENCE = 64 * GIB
_SUMS = ("activations_and_cuda_graphs", "rest")

_Bytes = Annotated[int, Field(ge=0, le=_MOST_BYTES)]
# A difference of rounded figures may lie below nothing, and so may what a start gave back.
_Signed = Annotated[int, Field(ge=-_MOST_DIFFERENCE, le=_MOST_BYTES)]
_LineNumber = Annotated[int, Field(ge=1, le=1_000_000_000)]
_Name = Literal["weights", "activations", "cuda_graphs", "non_torch"]


class TermKeys(Keys):
    """A term that keeps its ratio: it grows with the batch."""

    predicted: _Bytes = Field(description="Bytes predicted for the arguments of the log.")
    logged: _Bytes = Field(description="Bytes as logged, to 0.01 GiB.")
    line: _LineNumber = Field(description="Line of the log.")

    def problems(self) -> Iterator[Problem]:
        """A ratio needs a prediction, and has to be one that a server can have."""
        if not self.predicted:
            what = "0 bytes have no ratio to what was logged"
            yield Problem(path=("predicted",), what=what, fix="remove this term")
        elif self.logged > _MOST_RATIO * self.predicted:
            what = f"{format_bytes(self.logged)} is more than {_MOST_RATIO} times the prediction"
            yield Problem(path=("logged",), what=what, fix="check that both are in bytes")


class ConstantTermKeys(Keys):
    """A term that keeps its difference: it does not grow with the batch."""

    predicted: _Bytes = Field(description="Bytes predicted for the arguments of the log.")
    logged: _Signed = Field(description="Bytes as logged, to 0.01 GiB.")
    line: _LineNumber = Field(description="Line of the log.")

    def problems(self) -> Iterator[Problem]:
        """The difference has to be one that a server can have."""
        if abs(self.logged - self.predicted) > _MOST_DIFFERENCE:
            what = (
                f"{self.logged} is more than {format_bytes(_MOST_DIFFERENCE)} off {self.predicted}"
            )
            yield Problem(path=("logged",), what=what, fix="check that both are in bytes")


class RestKeys(ConstantTermKeys):
    """What the logged KV cache leaves for terms that the log does not state one by one."""

    of: list[_Name] = Field(
        max_length=4, description="The terms that it is the sum of; none for what is unexplained."
    )


class TermsKeys(Keys):
    """The terms of the log, of the fullest rank."""

    gpu_memory: ConstantTermKeys | None = Field(default=None, description="Total of one GPU.")
    before_start: ConstantTermKeys | None = Field(
        default=None, description="Total less free, before weights are loaded."
    )
    weights: ConstantTermKeys | None = Field(default=None, description="Weights as loaded.")
    activations: TermKeys | None = Field(default=None, description="Peak of the profile run.")
    cuda_graphs: TermKeys | None = Field(default=None, description="Estimate for CUDA graphs.")
    activations_and_cuda_graphs: TermKeys | None = Field(
        default=None, description="Both, where the log has their sum alone."
    )
    non_torch: ConstantTermKeys | None = Field(default=None, description="CUDA, NCCL and the like.")
    rest: RestKeys | None = Field(default=None, description="What has no line of its own.")

    def problems(self) -> Iterator[Problem]:
        """No term twice, and something of the memory beside the weights."""
        given = self.given()
        both = "activations_and_cuda_graphs"
        for name in ("activations", "cuda_graphs"):
            if both in given and name in given:
                what, fix = f"{both} has it already", "keep the sum, or its two parts"
                yield Problem(path=(name,), what=what, fix=fix)
        inside = set(given) | ({"activations", "cuda_graphs"} if both in given else set())
        for index, name in enumerate(self.rest.of if self.rest else ()):
            if name in inside:
                what, fix = f"{name} has a term of its own", "remove one of the two"
                yield Problem(path=("rest", "of", index), what=what, fix=fix)
        if inside <= {"gpu_memory", "before_start", "weights"}:
            what = "no term of the memory beside the weights"
            fix = "make it again from a log that came as far as 'Available KV cache memory'"
            yield Problem(path=(), what=what, fix=fix)

    def given(self) -> dict[str, TermKeys | ConstantTermKeys]:
        """The terms that are there, by name."""
        named = ((name, getattr(self, name)) for name in type(self).model_fields)
        return {name: term for name, term in named if term is not None}


class MemoryCalibrationKeys(Keys):
    """Memory of one server."""

    model_config = ConfigDict(title="vllm-advisor memory calibration")

    schema_version: Literal["1"] = Field(description='Version of this form, in quotes: "1".')
    kind: Literal["memory"] = Field(description="memory: it is none of latency.")
    advisor_version: Line = Field(description="Version of vllm-advisor that wrote it.")
    date: Annotated[str, Field(pattern=r"^\d{4}-\d{2}-\d{2}$")] = Field(
        description="When it was made, in quotes: year-month-day."
    )
    gpu: Line = Field(description="GPU profile of the server.")
    gpus: Annotated[int, Field(ge=1, le=1_000_000)] = Field(description="GPUs of the server.")
    model: Line = Field(description="Model that was served.")
    vllm_version: Line = Field(description="Version of vLLM.")
    engine_args: dict[Line, Any] = Field(description="Engine arguments of the log.")
    log: Line = Field(description="Name of the log.")
    notes: list[Line] = Field(max_length=20, description="What the log does not say.")
    terms: TermsKeys = Field(description="Predicted beside logged, in bytes.")
