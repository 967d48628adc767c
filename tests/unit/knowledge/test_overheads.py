"""Constants per family of versions, and the script that fits them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from vllm_advisor.errors import NotModelledError
from vllm_advisor.knowledge.gpus import find_gpu
from vllm_advisor.knowledge.overheads import load_overheads, memory_before_start
from vllm_advisor.sizing.cuda_graphs import cuda_graph_bytes
from vllm_advisor.sizing.overhead import RankLink, activation_bytes, non_torch_bytes
from vllm_advisor.types.engine import THIN_SAMPLE
from vllm_advisor.types.source import SourceKind

ROOT = Path(__file__).parents[3]
PROFILE = ROOT / "profiles" / "memory" / "overheads.yaml"
GIB = 1 << 30


@pytest.mark.parametrize(
    ("version", "versions"),
    [
        ("0.10.2", ">=0.10,<0.17"),
        ("0.19.2rc1", ">=0.17,<0.21"),
        ("0.22.0", ">=0.21,<0.26"),
        ("0.28.0", ">=0.26,<0.29"),
        ("0.32.0", ">=0.29,<0.33"),
        ("0.33.0", ">=0.33"),
        ("0.40.0", ">=0.33"),
    ],
)
def test_one_family_holds_a_version(version: str, versions: str) -> None:
    assert load_overheads(version).versions == versions


def test_versions_without_logs_are_refused() -> None:
    with pytest.raises(NotModelledError, match=r"vLLM 0\.7\.3 is not known"):
        load_overheads("0.7.3")


def test_the_first_versions_are_taken_to_be_as_the_next_and_say_so() -> None:
    early, fitted = load_overheads("0.8.5"), load_overheads("0.10.2")
    assert early.logits_factor == fitted.logits_factor
    assert early.thin
    assert not fitted.thin


def test_graphs_are_set_aside_since_021() -> None:
    assert not load_overheads("0.20.2").graphs_set_aside
    assert load_overheads("0.21.0").graphs_set_aside


def test_sampler_by_runner() -> None:
    # Up to 0.16 the whole vocabulary was sorted: values and 64-bit indices, 9.6 times the logits.
    assert load_overheads("0.16.0").logits_factor == pytest.approx(9.6, abs=0.1)
    # 0.5 (16 bit) + 1 (FP32) + 1 (masked) + 1 (probabilities), and again in 0.33.
    assert load_overheads("0.19.0").logits_factor == pytest.approx(3.6, abs=0.1)
    assert load_overheads("0.33.0").logits_factor == load_overheads("0.19.0").logits_factor
    # Penalty counts are held from 0.29 on: int32 per token of the vocabulary and one bit.
    assert load_overheads("0.28.0").sampler_state_factor == 0
    assert load_overheads("0.29.0").sampler_state_factor == 1 + 1 / 32


def test_thin_families_say_so_and_allow_for_more() -> None:
    fitted, carried = load_overheads("0.19.0"), load_overheads("0.33.0")
    assert not fitted.thin
    assert fitted.sample >= THIN_SAMPLE == 8
    assert carried.thin
    assert carried.error_bytes > fitted.error_bytes


def test_what_was_held_out_is_as_good_as_what_was_fitted() -> None:
    families = yaml.safe_load(PROFILE.read_text(encoding="utf-8"))["families"]
    terms = {f["versions"]: f["terms"] for f in families}
    for versions in (">=0.17,<0.21", ">=0.10,<0.17"):
        held = terms[versions]["kv_cache_held_out"]
        assert held["median"] < 0.05
        assert held["p90"] < 0.3


@pytest.mark.parametrize(
    ("gpu", "parallel", "gib", "kind"),
    [
        ("h100-sxm", False, 0.51, SourceKind.MEASURED),  # 79.19 - 78.68
        ("h100-sxm", True, 1.53, SourceKind.MEASURED),  # 79.19 - 77.66: NCCL comes first
        ("a100-sxm4-80", False, 0.41, SourceKind.MEASURED),  # 79.25 - 78.84
        # Without a log: the median of the others that do not share the host's memory.
        ("l4", False, 0.51, SourceKind.ASSUMED),
    ],
)
def test_gone_before_start(gpu: str, parallel: bool, gib: float, kind: SourceKind) -> None:
    find_gpu(gpu)
    gone = memory_before_start(gpu, tensor_parallel=parallel)
    assert gone.size_bytes / GIB == pytest.approx(gib, abs=0.005)
    assert gone.source.kind is kind
    assert (gone.logs > 0) is (kind is SourceKind.MEASURED)


def test_every_gpu_of_the_file_is_bundled() -> None:
    entries = yaml.safe_load(PROFILE.read_text(encoding="utf-8"))["before_start"]
    assert entries
    for entry in entries:
        assert find_gpu(entry["gpu"]).id == entry["gpu"]


def test_script_and_sizing_mean_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    from fit_overheads import fit
    from overhead_logs import read_logs, spent

    families, compared = fit(), 0
    for log in read_logs():
        family = next(f for f in families if f.first <= log.version < f.last)
        version = ".".join(str(n) for n in log.version)
        if log.link is not RankLink.NONE:
            continue
        overheads = load_overheads(version)
        active = activation_bytes(
            log.shape,
            overheads,
            max_num_seqs=log.rows,
            max_num_batched_tokens=log.tokens,
        )
        graphs = cuda_graph_bytes(log.shape, overheads, sizes=log.sizes)
        other = non_torch_bytes(log.shape, overheads, link=log.link, max_num_seqs=log.rows)
        # The file keeps three decimals of each constant.
        assert (active + graphs + other) / GIB == pytest.approx(spent(log, family), abs=0.02)
        compared += 1
    assert compared > 40


def test_the_file_is_what_the_script_fits() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "fit_overheads.py"), "--check"],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
