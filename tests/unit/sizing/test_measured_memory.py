"""What a log says of the memory, applied to other settings: ratios, differences, and what is said."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from vllm_advisor.api.models import find_model
from vllm_advisor.knowledge.gpus import find_gpu
from vllm_advisor.knowledge.overheads import load_overheads
from vllm_advisor.sizing.budget import memory_budget
from vllm_advisor.sizing.measured_memory import (
    SETTINGS,
    calibrated,
    logged_before_start,
    may_miss,
)
from vllm_advisor.sizing.overhead import RankOverheads
from vllm_advisor.sizing.settings import InstanceSettings
from vllm_advisor.types.memory_calibration import LoggedTerm, MemoryCalibration
from vllm_advisor.types.source import Assumption, Confidence, confidence_of
from vllm_advisor.units import GIB

SETTINGS_OF_LOG = InstanceSettings(
    max_model_len=8192,
    max_num_batched_tokens=2048,
    max_num_seqs=256,
    gpu_memory_utilization=0.9,
    block_size=16,
    attention_backend="FLASH_ATTN",
    tensor_parallel_size=2,
)
BESIDE = RankOverheads(activations=2 * GIB, cuda_graphs=GIB, non_torch=GIB // 2, captured_sizes=51)


def calibration(**terms: LoggedTerm) -> MemoryCalibration:
    return MemoryCalibration(
        file="memory.yaml",
        gpu="h100-sxm",
        model="Qwen/Qwen3-8B",
        vllm_version="0.31.0",
        date="2026-11-30",
        terms=terms,
        settings={name: getattr(SETTINGS_OF_LOG, name) for name in SETTINGS},
    )


def term(predicted: float, logged: float, *of: str) -> LoggedTerm:
    return LoggedTerm(predicted=round(predicted * GIB), logged=round(logged * GIB), of=of)


def sizes(beside: RankOverheads) -> tuple[float, float, float]:
    return tuple(
        round(v / GIB, 4) for v in (beside.activations, beside.cuda_graphs, beside.non_torch)
    )  # type: ignore[return-value]


ALL = {
    "activations": term(2, 3),
    "cuda_graphs": term(1, 1.65),
    "non_torch": term(0.5, 1.25),
}


def test_at_the_settings_of_the_log_everything_is_as_logged() -> None:
    found = calibrated(BESIDE, SETTINGS_OF_LOG, calibration(**ALL))
    assert sizes(found.beside) == (3, 1.65, 1.25)
    assert found.exact
    assert {name: str(source) for name, source in found.sources.items()} == {
        "activations": "measured:memory.yaml#terms.activations",
        "cuda_graphs": "measured:memory.yaml#terms.cuda_graphs",
        "non_torch": "measured:memory.yaml#terms.non_torch",
    }
    (note,) = found.notes
    assert note.lowers_to is Confidence.HIGH
    assert "memory.yaml calibrates activations, CUDA graphs and non-torch memory" in note.text


def test_what_grows_with_the_batch_keeps_its_ratio() -> None:
    # four times the tokens: 8 GiB of activations predicted x 3/2; twice the graphs x 1.65
    more = replace(BESIDE, activations=8 * GIB, cuda_graphs=2 * GIB)
    asked = replace(SETTINGS_OF_LOG, max_num_batched_tokens=8192)
    found = calibrated(more, asked, calibration(**ALL))
    assert sizes(found.beside) == (12, 3.3, 1.25)
    assert not found.exact
    said = found.notes[1]
    assert said.lowers_to is Confidence.MEDIUM
    assert "max_num_batched_tokens is 8192 and was 2048" in said.text


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"tensor_parallel_size": 4}, "tensor_parallel_size is 4 and was 2"),
        ({"pipeline_parallel_size": 2}, "pipeline_parallel_size is 2 and was 1"),
        ({"enable_expert_parallel": True}, "enable_expert_parallel is True and was False"),
    ],
)
def test_non_torch_memory_is_of_as_many_ranks(changed: dict[str, Any], said: str) -> None:
    found = calibrated(BESIDE, replace(SETTINGS_OF_LOG, **changed), calibration(**ALL))
    assert sizes(found.beside) == (3, 1.65, 0.5)
    assert "non_torch" not in found.sources
    assert any(said in n.text and "is not applied" in n.text for n in found.notes)


def test_weights_move_by_their_difference_where_they_are_cut_the_same() -> None:
    log = calibration(weights=term(20, 20.25), **ALL)
    assert calibrated(BESIDE, SETTINGS_OF_LOG, log).weights == GIB // 4
    fp8 = replace(SETTINGS_OF_LOG, quantization="fp8")
    found = calibrated(BESIDE, fp8, log)
    assert found.weights == 0
    assert any(
        "of weights is not applied: quantization is fp8 and was None" in n.text for n in found.notes
    )


def test_a_sum_scales_both_of_its_parts() -> None:
    log = calibration(activations_and_cuda_graphs=term(3, 4.5), non_torch=term(0.5, 0.5))
    found = calibrated(BESIDE, SETTINGS_OF_LOG, log)
    assert sizes(found.beside) == (3, 1.5, 0.5)
    assert found.exact


@pytest.mark.parametrize(
    ("logged", "expected"),
    [
        (4.0, (2.5, 1, 0.5)),  # 0.5 more than 3.5, to the activations
        (1.0, (0, 0.5, 0.5)),  # 2.5 less: 2 of them, then 0.5 of the graphs
        (0.25, (0, 0, 0.25)),  # 3.25 less
    ],
)
def test_a_rest_is_a_difference_that_takes_nothing_below_zero(
    logged: float, expected: tuple[float, ...]
) -> None:
    rest = term(3.5, logged, "activations", "cuda_graphs", "non_torch")
    found = calibrated(BESIDE, SETTINGS_OF_LOG, calibration(rest=rest))
    assert sizes(found.beside) == expected
    assert found.exact
    other = calibrated(
        BESIDE, replace(SETTINGS_OF_LOG, tensor_parallel_size=1), calibration(rest=rest)
    )
    assert other.beside == BESIDE


def test_without_a_calibration_nothing_changes() -> None:
    found = calibrated(BESIDE, SETTINGS_OF_LOG, None)
    assert (found.beside, found.weights, found.notes, found.sources) == (BESIDE, 0, (), {})


def test_the_budget_takes_it_with_its_sources_and_its_confidence() -> None:
    model, gpu = find_model("qwen3-8b"), find_gpu("h100-sxm")
    plain = load_overheads("0.31.0")
    before, notes, missing = memory_budget(model, SETTINGS_OF_LOG, gpu, plain)
    assert missing == plain.error_bytes
    assert any(n.id == "overheads-fitted" and n.lowers_to is Confidence.LOW for n in notes)
    now = {name: int(getattr(before, name).value) for name in ALL}
    terms = {n: LoggedTerm(predicted=size, logged=size + GIB // 10) for n, size in now.items()}
    measured = replace(plain, measured=calibration(**terms))
    after, notes, missing = memory_budget(model, SETTINGS_OF_LOG, gpu, measured)
    assert int(before.kv_cache.value) - int(after.kv_cache.value) == 3 * (GIB // 10)
    assert str(after.non_torch.source) == "measured:memory.yaml#terms.non_torch"
    assert after.weights.source == before.weights.source
    assert confidence_of(notes) is Confidence.HIGH
    assert missing == GIB // 20
    # without a term for the non-torch memory, that alone stays fitted
    del terms["non_torch"]
    part = replace(plain, measured=calibration(**terms))
    _, notes, missing = memory_budget(model, SETTINGS_OF_LOG, gpu, part)
    (fitted,) = (n for n in notes if n.id == "overheads-fitted")
    assert "non-torch memory follows vLLM's code" in fitted.text
    assert "activations" not in fitted.text
    assert confidence_of(notes) is Confidence.LOW
    assert missing == plain.error_bytes


def test_a_log_that_leaves_arguments_open_is_not_exact() -> None:
    note = Assumption(id="memory-calibration-note-1", text="max_num_seqs is not said")
    log = replace(calibration(**ALL), notes=(note,))
    found = calibrated(BESIDE, SETTINGS_OF_LOG, log)
    assert sizes(found.beside) == (3, 1.65, 1.25)
    assert not found.exact
    assert found.notes[-1] is note
    plain = load_overheads("0.31.0")
    assert may_miss(found, plain) == plain.error_bytes


def test_an_error_smaller_than_the_rounding_stays() -> None:
    found = calibrated(BESIDE, SETTINGS_OF_LOG, calibration(**ALL))
    assert may_miss(found, replace(load_overheads("0.31.0"), error_bytes=5)) == 5


def test_what_is_gone_before_the_start_moves_where_nccl_is_there_too() -> None:
    log = calibration(before_start=term(2.25, 0.5), **ALL)
    assert logged_before_start(log, tensor_parallel=True) == -round(1.75 * GIB)
    assert logged_before_start(log, tensor_parallel=False) == 0
    assert logged_before_start(calibration(**ALL), tensor_parallel=True) == 0
    assert logged_before_start(None, tensor_parallel=True) == 0
