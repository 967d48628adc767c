"""Rules about names and GPUs at versions whose parser is not recorded: their history alone."""

from __future__ import annotations

from dataclasses import replace

import pytest
from checked_subject import node_of, subject_of

from vllm_advisor.knowledge.engines import load_engine
from vllm_advisor.parse.serve_command import parse_shell_script
from vllm_advisor.rules.registry import run_rules
from vllm_advisor.types.finding import Finding
from vllm_advisor.types.model import QuantizationFacts

QWEN = "vllm serve Qwen/Qwen3-8B"


def _found(command: str, version: str, rule: str, gpu: str = "") -> tuple[Finding, ...]:
    engine = replace(load_engine(), version=version)
    (parsed,) = parse_shell_script(command, "serve.sh", engine)
    subject = subject_of(parsed, engine, node_of(gpu) if gpu else None)
    return run_rules(subject, [rule])[0]


@pytest.mark.parametrize(
    ("command", "rule", "gpu", "refused", "taken"),
    [
        # auto takes float16 on a GPU without bfloat16 since 0.9.
        (QWEN, "QNT001", "t4 x 2", "0.8.5", "0.9.0"),
        # Kernels for Volta were left out of the builds with CUDA 13.
        (QWEN, "GPU001", "v100-sxm2-32 x 1", "0.20.0", "0.19.1"),
        (f"{QWEN} --quantization gguf", "QNT003", "", "0.24.0", "0.23.0"),
        (f"{QWEN} --quantization bitsandbytes", "QNT003", "", "0.28.0", "0.27.1"),
        (f"{QWEN} --quantization fbgemm_fp8", "QNT003", "", "0.14.0", "0.13.0"),
        (f"VLLM_ATTENTION_BACKEND=FLASHINFER {QWEN}", "ENV002", "", "0.15.0", "0.14.1"),
        (f"VLLM_USE_V1=1 {QWEN}", "ENV002", "", "0.11.1", "0.11.0"),
        (f"VLLM_SLEEP_WHEN_IDLE=1 {QWEN}", "ENV002", "", "0.9.0", "0.9.1"),
        (f"{QWEN} --reasoning-parser qwen3", "FLG005", "", "0.8.5", "0.9.0"),
    ],
)
def test_the_version_decides(command: str, rule: str, gpu: str, refused: str, taken: str) -> None:
    assert [f.rule for f in _found(command, refused, rule, gpu)] == [rule]
    assert _found(command, taken, rule, gpu) == ()


@pytest.mark.parametrize(
    ("command", "rule", "gpu", "fix"),
    [
        (
            f"VLLM_ATTENTION_BACKEND=FLASHINFER {QWEN}",
            "ENV002",
            "",
            "--attention-backend FLASHINFER",
        ),
        (f"VLLM_LOGING_LEVEL=INFO {QWEN}", "ENV001", "", "write VLLM_LOGGING_LEVEL"),
        (f"{QWEN} --dtype bf16", "FLG003", "", "--dtype bfloat16"),
        (f"{QWEN} --dtype fp8", "FLG003", "", "--quantization fp8, and --dtype auto"),
        (f"{QWEN} --dtype bfloat16", "QNT001", "t4 x 2", "--dtype half"),
        (
            f"{QWEN} --quantization mxfp8",
            "QNT002",
            "t4 x 2",
            "a checkpoint in awq or gptq or fp8, or a GPU of compute capability 8.0 or more",
        ),
        (
            f"{QWEN} --task embed",
            "FLG001",
            "",
            (
                "write --runner pooling, with --convert embed, classify or reward for a "
                "generative model; or leave --task out"
            ),
        ),
        (
            "vllm serve Qwen/Qwen2.5-14B-Instruct-AWQ -tp 8",
            "PAR001",
            "",
            "--tensor-parallel-size 1 or 2 or 4",
        ),
    ],
)
def test_the_fix_can_be_written(command: str, rule: str, gpu: str, fix: str) -> None:
    (finding,) = _found(command, "0.33.0", rule, gpu)
    assert finding.fix == fix


def _of_checkpoint(facts: QuantizationFacts, version: str, gpu: str) -> tuple[list[str], list[str]]:
    """What QNT002 finds for a checkpoint, and whether it could not tell."""
    engine = replace(load_engine(), version=version)
    (parsed,) = parse_shell_script(QWEN, "serve.sh", engine)
    subject = subject_of(parsed, engine, node_of(gpu))
    assert subject.model is not None
    subject = replace(subject, model=replace(subject.model, quantization=facts))
    found, skipped = run_rules(subject, ["QNT002"])
    return [f.message for f in found], [s.reason for s in skipped]


def test_block_scaled_fp8_ran_on_ada_only_before_marlin_took_it() -> None:
    facts = QuantizationFacts(method="fp8", bits=8, weight_block=(128, 128))
    message = "fp8 needs compute capability 8.9, and NVIDIA A100-SXM4-80GB has 8.0"
    assert _of_checkpoint(facts, "0.8.5", "a100-sxm4-80 x 1") == ([message], [])
    assert _of_checkpoint(facts, "0.9.0", "a100-sxm4-80 x 1") == ([], [])
    assert _of_checkpoint(facts, "0.8.5", "l4 x 1") == ([], [])


def test_what_the_checkpoint_does_not_tell_is_not_judged() -> None:
    # ModelOpt's FP8 needs 8.0, but a mix of methods 7.5: a T4 may do.
    facts = QuantizationFacts(method="modelopt", bits=8)
    found, reasons = _of_checkpoint(facts, "0.33.0", "t4 x 2")
    assert found == []
    assert reasons == [
        "whether vLLM takes the checkpoint for modelopt or modelopt_mixed is not known"
    ]
    assert _of_checkpoint(facts, "0.33.0", "l4 x 1") == ([], [])
