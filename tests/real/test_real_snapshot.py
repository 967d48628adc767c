"""The recorded engine facts are those of the installed vLLM."""

from __future__ import annotations

import json

import pytest

from vllm_advisor import resources
from vllm_advisor.knowledge.engines import load_engine, quantization_min_capability

pytestmark = [pytest.mark.vllm, pytest.mark.filterwarnings("ignore")]


def test_recorded_flags_are_the_installed_ones(installed_snapshot: dict[str, object]) -> None:
    path = resources.profiles("engines") / f"{installed_snapshot['version']}.yaml"
    recorded = json.loads(path.read_text(encoding="utf-8"))
    assert recorded["source"] == installed_snapshot["source"]
    by_dest = {flag["dest"]: flag for flag in recorded["flags"]}
    installed = {flag["dest"]: flag for flag in installed_snapshot["flags"]}
    assert by_dest.keys() == installed.keys()
    differing = {d: (by_dest[d], installed[d]) for d in by_dest if by_dest[d] != installed[d]}
    assert not differing


def test_every_option_string_is_recorded(snapshot_tool: object) -> None:
    parser, _ = snapshot_tool.load_parser()
    engine = load_engine(snapshot_tool.vllm_version())
    registered = set(parser._option_string_actions) - {"-h", "--help"}
    recorded = {s for f in engine.flags.values() for s in (*f.spellings, *f.negations)}
    assert recorded == registered


def test_hand_written_facts_are_the_installed_ones(snapshot_tool: object) -> None:
    from vllm.config import CacheConfig
    from vllm.model_executor.layers.quantization import (
        QUANTIZATION_METHODS,
        get_quantization_config,
    )

    engine = load_engine(snapshot_tool.vllm_version())
    assert engine.known
    assert engine.gpu_memory_utilization == engine.flags["gpu_memory_utilization"].default
    assert engine.block_size == CacheConfig.DEFAULT_BLOCK_SIZE
    installed = {m: get_quantization_config(m).get_min_capability() for m in QUANTIZATION_METHODS}
    assert quantization_min_capability(engine) == installed


@pytest.mark.parametrize(
    ("name", "total_gib", "capability"),
    [
        ("NVIDIA H100 80GB HBM3", 79, (9, 0)),
        ("NVIDIA B200", 178, (10, 0)),
        ("NVIDIA A100-SXM4-80GB", 79, (8, 0)),
        ("NVIDIA L40S", 44, (8, 9)),
        ("NVIDIA GB10", 119, (12, 1)),
    ],
)
def test_batch_defaults_are_the_installed_ones(
    snapshot_tool: object,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    total_gib: int,
    capability: tuple[int, int],
) -> None:
    """vLLM's own function, with a platform that says it has this GPU."""
    from vllm.engine import arg_utils
    from vllm.usage.usage_lib import UsageContext

    from vllm_advisor.knowledge.engines import batch_defaults
    from vllm_advisor.types.accelerator import Accelerator
    from vllm_advisor.types.source import Source, SourceKind

    class Platform:
        get_device_total_memory = staticmethod(lambda: total_gib << 30)
        get_device_name = staticmethod(lambda: name)
        is_device_capability = staticmethod(lambda wanted: wanted == capability)
        is_tpu = is_cpu = staticmethod(lambda: False)

    monkeypatch.setattr(arg_utils, "current_platform", Platform)
    tokens, seqs = arg_utils.EngineArgs.get_batch_defaults(world_size=1)
    accelerator = Accelerator(
        id="test",
        name=name,
        memory_total=total_gib << 30,
        memory_total_source=Source(SourceKind.ASSUMED, "test"),
        compute_capability=capability,
    )
    ours = batch_defaults(load_engine(snapshot_tool.vllm_version()), accelerator)
    context = UsageContext.OPENAI_API_SERVER
    assert (ours.max_num_batched_tokens, ours.max_num_seqs) == (tokens[context], seqs[context])
