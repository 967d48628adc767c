"""The bundled GPU profiles, and how a GPU is found by name."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from vllm_advisor import resources
from vllm_advisor.errors import InputError, UnknownFactError
from vllm_advisor.knowledge import gpus
from vllm_advisor.knowledge.gpus import FIGURES, find_gpu, gpu_profile, load_gpus
from vllm_advisor.units import MIB

ALL = load_gpus()


@pytest.fixture
def own_profiles(tmp_path, monkeypatch):
    """An empty folder of profiles, and a function that writes one into it."""
    monkeypatch.setattr(resources, "profiles", lambda kind: tmp_path / kind)
    folder = tmp_path / "gpus"
    folder.mkdir()
    caches = (gpus.gpu_profile, gpus.driver_reserve_mib, gpus._by_name)

    def write(gpu_id, **changes):
        raw = yaml.safe_load((Path(__file__).parents[3] / "profiles/gpus/l4.yaml").read_text())
        raw |= {"id": gpu_id, "names": [gpu_id], "labels": [gpu_id], "prices": []} | changes
        (folder / f"{gpu_id}.yaml").write_text(yaml.safe_dump(raw))

    for cached in caches:
        cached.cache_clear()
    yield write
    for cached in caches:
        cached.cache_clear()


# -- the data


def test_profiles_are_whole():
    for gpu_id in ALL:
        profile = gpu_profile(gpu_id)  # validates the schema
        assert profile.id == gpu_id
        known = {key for key in FIGURES if getattr(profile, key)}
        assert known == set(profile.sources), gpu_id  # a source for each figure, and no other
        assert all(len(text) > 3 for text in profile.sources.values()), gpu_id
        assert all(listing.source for listing in profile.prices), gpu_id
        gpu = find_gpu(gpu_id)
        assert gpu.id == gpu_id
        # Sold sizes are in GB or GiB (x 1.074) and the driver keeps some: b200 1.064, t4 0.977
        assert 0.95 < gpu.memory_total / (profile.nominal_memory_gb * 1e9) < 1.074, gpu_id


def test_cuda_total_lies_a_little_under_nvml_total():
    for profile in map(gpu_profile, ALL):
        if profile.nvml_total_mib and profile.cuda_total_mib:
            assert 200 <= profile.nvml_total_mib - profile.cuda_total_mib <= 1200, profile.id


def test_no_two_profiles_claim_one_name():
    names = Counter(
        gpus._without_vendor(gpus._normalise(name))
        for profile in map(gpu_profile, ALL)
        for name in {
            gpus._without_vendor(gpus._normalise(n))
            for n in (profile.id, *profile.names, *profile.labels, *profile.short_names)
        }
    )
    assert [name for name, count in names.items() if count > 1] == []


def test_data_names_no_path_of_a_machine():
    for path in resources.profiles("gpus").glob("*.yaml"):
        found = re.search(r"(?:^|[\s'\"(])/\w", path.read_text())
        assert found is None, path


def test_profile_without_a_source_is_refused():
    l4 = gpu_profile("l4")
    fewer = {key: source for key, source in l4.sources.items() if key != "tdp_w"}
    with pytest.raises(ValueError, match="no source for tdp_w"):
        replace(l4, sources=fewer)


def test_profile_without_any_memory_total_is_refused():
    with pytest.raises(ValueError, match="neither nvml_total_mib nor cuda_total_mib"):
        replace(gpu_profile("l4"), nvml_total_mib=None, cuda_total_mib=None)


# -- figures of an Accelerator


def test_h100_sxm_in_base_units():
    h100 = find_gpu("h100-sxm")
    assert h100.name == "NVIDIA H100 80GB HBM3"
    assert h100.memory_total == 85_029_027_840  # 81,090 MiB x 1,048,576: 79.19 GiB in vLLM's log
    assert str(h100.memory_total_source) == "profile:gpus/h100-sxm#cuda_total_mib"
    assert h100.compute_capability == (9, 0)
    assert h100.capability == 90
    assert h100.memory_bandwidth == 3_350_000_000_000  # 3,350 GB/s
    assert h100.bf16_flops == 989_000_000_000_000
    assert h100.fp8_flops == 1_979_000_000_000_000
    assert h100.nvlink_bandwidth == 450_000_000_000
    assert not h100.unified_memory


@pytest.mark.parametrize(
    ("gpu_id", "logged_gib"),  # the total that vLLM start-up logs print
    [
        ("a100-sxm4-80", 79.25),
        ("b200", 178.4),
        ("gb10", 121.63),
        ("h200-sxm", 139.8),
        ("l4", 22.03),
        ("l40s", 44.42),
        ("rtx-3090", 23.56),
        ("rtx-5090", 31.36),
        ("rtx-pro-6000-server", 94.97),
        ("t4", 14.56),
    ],
)
def test_memory_total_is_what_start_up_logs_print(gpu_id, logged_gib):
    assert find_gpu(gpu_id).memory_total / 2**30 == pytest.approx(logged_gib, abs=0.05)


def test_unknown_figures_stay_unknown():
    gb10 = find_gpu("gb10")
    assert gb10.unified_memory
    assert gb10.bf16_flops is None
    assert gb10.nvlink_bandwidth is None
    assert find_gpu("a100-sxm4-80").fp8_flops is None  # Ampere has no FP8 units


def test_unknown_cuda_total_is_nvml_total_less_the_lower_median_reserve(own_profiles):
    own_profiles("one", nvml_total_mib=10_400, cuda_total_mib=10_000)  # keeps 400
    own_profiles("two", nvml_total_mib=20_500, cuda_total_mib=20_000)  # keeps 500
    own_profiles("three", nvml_total_mib=90_700, cuda_total_mib=90_000)  # keeps 700
    own_profiles("four", nvml_total_mib=91_000, cuda_total_mib=90_100)  # keeps 900
    raw = yaml.safe_load((resources.profiles("gpus") / "one.yaml").read_text())["sources"]
    raw.pop("cuda_total_mib")
    own_profiles("new", nvml_total_mib=24_000, cuda_total_mib=None, sources=raw)
    new = find_gpu("new")
    assert new.memory_total == 23_500 * MIB  # 24,000 - 500, the lower of the two middle ones
    assert str(new.memory_total_source) == "assumed:cuda-total-from-nvml"


def test_derived_totals_agree_with_the_one_that_was_logged_later():
    # H100 NVL: one log says 93.1 GiB = 95,334 MiB; NVML reports 95,830 MiB
    assert 95_830 - gpus.driver_reserve_mib() == pytest.approx(95_334, abs=60)


def test_price_is_the_listing_at_the_lower_median():
    # H100 SXM: 1.99, 2.29, 2.95, [3.99], 4.0, 5.0, 10.08
    price = find_gpu("h100-sxm").price
    assert price.usd_per_gpu_hour == 3.99
    assert str(price.source).startswith("profile:gpus/h100-sxm#prices.2 (Lambda, ")
    # L4: 0.39, [0.70], 0.88, 0.98
    assert find_gpu("l4").price.usd_per_gpu_hour == 0.7
    assert find_gpu("a30").price is None


# -- finding


@pytest.mark.parametrize(
    ("name", "gpu_id"),
    [
        ("l40s", "l40s"),
        ("L40", "l40"),  # an id of its own, though l40s begins so
        ("NVIDIA A100-SXM4-80GB", "a100-sxm4-80"),  # as NVML prints it
        ("nvidia a100 80gb pcie", "a100-pcie-80"),
        ("NVIDIA-H100-80GB-HBM3", "h100-sxm"),  # as the GPU Operator labels it
        ("NVIDIA-GeForce-RTX-4090", "rtx-4090"),
        ("Tesla-T4", "t4"),
        ("H100 80GB HBM3", "h100-sxm"),
        ("NVIDIA H200", "h200-sxm"),
        ("h200 nvl", "h200-nvl"),
        ("H20-3e", "h20-3e"),
        ("4090", "rtx-4090"),
        ("L4 24GB", "l4"),  # a whole name, its memory after it
        ("H20 96GB", "h20"),
        (" rtx  5090 ", "rtx-5090"),
    ],
)
def test_found_by(name, gpu_id):
    assert find_gpu(name).id == gpu_id


def test_every_profile_is_found_by_each_of_its_names():
    for gpu_id in ALL:
        profile = gpu_profile(gpu_id)
        for name in (*profile.names, *profile.labels, *profile.short_names):
            assert find_gpu(name).id == gpu_id


def test_beginning_of_a_name_is_refused_with_its_candidates():
    with pytest.raises(UnknownFactError) as caught:
        find_gpu("H100")
    for text in ("h100-nvl", "94 GB", "h100-pcie", "h100-sxm", "80 GB"):
        assert text in caught.value.what
    assert caught.value.fix


def test_memory_narrows_the_candidates_and_never_chooses():
    with pytest.raises(UnknownFactError) as caught:
        find_gpu("A100 80GB")
    assert "a100-sxm4-80" in caught.value.what
    assert "a100-pcie-80" in caught.value.what
    assert "40 GB" not in caught.value.what
    with pytest.raises(UnknownFactError, match="h20-3e"):
        find_gpu("H20 141GB")  # one profile fits, still not chosen
    with pytest.raises(UnknownFactError, match="v100-sxm2-32"):
        find_gpu("v100")


@pytest.mark.parametrize("name", ["", "   ", "abacus", "../../gpus/l4", "l4.yaml"])
def test_unknown_gpu_says_where_to_look(name):
    with pytest.raises(UnknownFactError, match="no profile for GPU") as caught:
        find_gpu(name)
    assert "vllm-advisor profiles gpus" in caught.value.fix


def test_unknown_gpu_names_close_ones():
    with pytest.raises(UnknownFactError, match=r"close: .*rtx-4090"):
        find_gpu("RTX 4090 Ti")


# -- reading


def test_an_id_reads_one_file(own_profiles, monkeypatch):
    for gpu_id in ("a", "b", "c"):
        own_profiles(gpu_id)
    read = []
    whole = gpus.read_profile
    monkeypatch.setattr(gpus, "read_profile", lambda p, s: read.append(p.stem) or whole(p, s))
    find_gpu("b")
    assert read == ["b"]


def test_broken_profile_is_an_input_error(own_profiles):
    own_profiles("odd", memory_bandwidth_gb_s=-1)
    with pytest.raises(InputError, match="memory_bandwidth_gb_s") as caught:
        find_gpu("odd")
    assert caught.value.where.endswith("odd.yaml")
    folder = resources.profiles("gpus")
    (folder / "worse.yaml").write_text("id: worse\nnames: [worse\nlabels: x: y\n")
    with pytest.raises(InputError, match="no YAML") as caught:
        gpu_profile("worse")
    assert re.search(r"worse\.yaml:\d+:\d+$", caught.value.where)


def test_no_profile_of_that_id():
    with pytest.raises(UnknownFactError):
        gpu_profile("h100")
