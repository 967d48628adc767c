"""probe_node through the real pynvml, on a stub library loaded as the driver's would be."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from vllm_advisor.probe.nvml_queries import NvmlQueries, as_text

MIB = 1 << 20

SCENARIOS = (
    "8xh100",
    "2xh100-nvlinks-down",
    "h100-mig",
    "gb10",
    "2xl40s",
    "4xa6000-bridged",
    "vgpu",
    "gpu-lost",
    "name-not-utf8",
    "driver-not-loaded",
    "no-gpus",
)
_SCRIPT = """
import dataclasses, json, os, pynvml, sys
from vllm_advisor.errors import AdvisorError
from vllm_advisor.probe.nvml import probe_node
results = {}
for scenario in sys.argv[1:]:
    os.environ["NVML_STUB_SCENARIO"] = scenario
    try:
        node = probe_node()
        out = {"node": dataclasses.asdict(node), "interconnect": node.interconnect}
    except AdvisorError as error:
        out = {"what": error.what, "fix": error.fix, "exit_code": error.exit_code}
    try:
        pynvml.nvmlDeviceGetCount()
        out["shut_down"] = False
    except pynvml.NVMLError_Uninitialized:
        out["shut_down"] = True
    results[scenario] = out
print(json.dumps(results))
"""


def run_probe(folder: Path, *scenarios: str, **env: str) -> dict[str, Any]:
    """Results by scenario, of one process that finds its libnvidia-ml.so.1 in ``folder``."""
    environment = {k: v for k, v in os.environ.items() if k != "CUDA_VISIBLE_DEVICES"}
    environment |= {"LD_LIBRARY_PATH": str(folder), **env}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", _SCRIPT, *scenarios],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return json.loads(done.stdout)


@pytest.fixture(scope="session")
def probe(nvml_stub: Callable[..., Path]) -> Callable[..., dict[str, Any]]:
    """What probe_node says in a scenario, ``without`` some functions of the driver."""

    @functools.cache
    def results(without: tuple[str, ...]) -> dict[str, Any]:
        return run_probe(nvml_stub(*without), *SCENARIOS)

    def probe_scenario(scenario: str, *, without: tuple[str, ...] = ()) -> dict[str, Any]:
        out = results(without)[scenario]
        assert out["shut_down"], "nvmlShutdown was not called"
        return out

    return probe_scenario


def test_eight_h100_joined_by_nvswitch(probe: Callable[..., Any]) -> None:
    out = probe("8xh100")
    node = out["node"]
    assert out["interconnect"] == "nvlink"
    assert node["driver_version"] == "580.126.16"
    assert node["cuda_driver_version"] == "13.0"  # NVML writes 13000
    assert len(node["gpus"]) == 8
    assert node["notes"] == []
    assert node["gpus"][7] == {
        "index": 7,
        "name": "NVIDIA H100 80GB HBM3",
        "uuid": "GPU-00000000-0000-0000-0000-000000000007",
        "memory_total": 81559 * MIB,
        "memory_used": 0,  # without the driver's reserve
        "memory_free": (81559 - 551) * MIB,
        "memory_reserved": 551 * MIB,
        "compute_capability": [9, 0],
        "power_limit_watts": 700,
        "pcie_generation": 5,
        "pcie_width": 16,
        "mig_enabled": False,
        "mig_instances": [],
        "virtualization_mode": "none",
        "nvlink_active_links": 18,
        "processes": [],
    }
    for i, row in enumerate(node["topology"]):
        assert row == ["self" if i == j else "nvlink" for j in range(8)]


def test_mig_instances_are_listed_across_empty_slots(probe: Callable[..., Any]) -> None:
    node = probe("h100-mig")["node"]
    (gpu,) = node["gpus"]
    assert gpu["mig_enabled"] is True
    assert (
        gpu["mig_instances"]
        == [{"name": "NVIDIA H100 80GB HBM3 MIG 3g.40gb", "memory_total": 40448 * MIB}] * 2
    )
    assert node["notes"] == [
        "GPU 0: MIG is on, with 2 instances: vLLM gets one of them, never several"
    ]


def test_unified_memory_is_none_and_a_note(probe: Callable[..., Any]) -> None:
    node = probe("gb10")["node"]
    (gpu,) = node["gpus"]
    assert gpu["memory_total"] is None
    assert gpu["memory_used"] is None
    assert gpu["memory_free"] is None
    assert gpu["compute_capability"] == [12, 1]
    assert (
        "GPU 0: memory query failed (Not Supported): unified memory, vLLM takes free system memory"
        in node["notes"]
    )


def test_function_missing_in_the_driver(probe: Callable[..., Any]) -> None:
    node = probe("8xh100", without=("nvmlDeviceGetVirtualizationMode",))["node"]
    assert [gpu["virtualization_mode"] for gpu in node["gpus"]] == [None] * 8
    # one note for all eight, and nothing else is lost
    (note,) = node["notes"]
    assert note == (
        "GPUs 0-7: function nvmlDeviceGetVirtualizationMode missing in this driver: "
        "virtualization mode unknown"
    )
    assert node["gpus"][0]["memory_total"] == 81559 * MIB


def test_old_driver_answers_through_the_older_functions(probe: Callable[..., Any]) -> None:
    node = probe(
        "2xl40s",
        without=(
            "nvmlDeviceGetMemoryInfo_v2",
            "nvmlDeviceGetComputeRunningProcesses_v3",
            "nvmlDeviceGetGraphicsRunningProcesses_v3",
        ),
    )["node"]
    first = node["gpus"][0]
    assert first["memory_reserved"] is None
    assert first["memory_used"] == (20492 + 600) * MIB
    assert [process["pid"] for process in first["processes"]] == [977, 4242, 4300]
    assert node["notes"] == ["GPUs 0-1: memory in use includes the driver's reserve (old driver)"]


def test_processes_that_hold_memory(probe: Callable[..., Any]) -> None:
    out = probe("2xl40s")
    assert out["interconnect"] == "pcie"
    assert out["node"]["topology"] == [["self", "node"], ["node", "self"]]
    first, second = out["node"]["gpus"]
    assert first["memory_used"] == 20492 * MIB
    assert first["nvlink_active_links"] == 0
    # 4242 has a compute and a graphics context: one process, counted once.
    assert first["processes"] == [
        {"pid": 977, "name": "/usr/lib/xorg/Xorg", "memory_used": 12 * MIB},
        {"pid": 4242, "name": "python3", "memory_used": 20480 * MIB},
        {"pid": 4300, "name": None, "memory_used": None},
    ]
    assert second["processes"] == []
    assert out["node"]["notes"] == []


def test_vgpu(probe: Callable[..., Any]) -> None:
    node = probe("vgpu")["node"]
    (gpu,) = node["gpus"]
    assert gpu["virtualization_mode"] == "vgpu"
    assert gpu["memory_total"] == 24576 * MIB
    assert gpu["power_limit_watts"] is None
    assert gpu["pcie_generation"] is None
    assert gpu["processes"] is None  # not told, which is not the same as none
    assert "GPU 0: processes query failed (Not Supported)" in node["notes"]


def test_bridged_pairs_are_not_nvlink_throughout(probe: Callable[..., Any]) -> None:
    out = probe("4xa6000-bridged")
    assert out["interconnect"] == "pcie"
    assert out["node"]["topology"] == [
        ["self", "nvlink", "system", "system"],
        ["nvlink", "self", "system", "system"],
        ["system", "system", "self", "nvlink"],
        ["system", "system", "nvlink", "self"],
    ]


def test_nvlinks_that_are_down_join_nothing(probe: Callable[..., Any]) -> None:
    out = probe("2xh100-nvlinks-down")
    assert [gpu["nvlink_active_links"] for gpu in out["node"]["gpus"]] == [18, 0]
    assert out["node"]["topology"] == [["self", "node"], ["node", "self"]]
    assert out["interconnect"] == "pcie"


@pytest.mark.parametrize("scenario", ["8xh100", "4xa6000-bridged"])
def test_nvlink_is_found_by_its_far_end_where_peer_status_is_missing(
    probe: Callable[..., Any], scenario: str
) -> None:
    without = probe(scenario, without=("nvmlDeviceGetP2PStatus",))["node"]
    assert without["topology"] == probe(scenario)["node"]["topology"]
    assert without["notes"] == [
        "function nvmlDeviceGetP2PStatus missing in this driver: NVLink peer-to-peer status unknown"
    ]


def test_topology_nobody_tells_is_unknown(probe: Callable[..., Any]) -> None:
    out = probe("2xl40s", without=("nvmlDeviceGetTopologyCommonAncestor",))
    assert out["node"]["topology"] == [["self", None], [None, "self"]]
    assert out["interconnect"] == "unknown"


def test_gpu_that_cannot_be_opened_is_left_out_with_a_note(probe: Callable[..., Any]) -> None:
    node = probe("gpu-lost")["node"]
    assert [gpu["index"] for gpu in node["gpus"]] == [0]
    assert node["topology"] == [["self"]]
    assert node["notes"] == ["GPU 1: handle query failed (GPU is lost)"]


def test_name_that_is_no_text(probe: Callable[..., Any]) -> None:
    node = probe("name-not-utf8")["node"]
    assert node["gpus"][0]["name"] is None
    assert node["notes"][0].startswith("GPU 0: name query failed")


def test_cuda_visible_devices_is_noted(nvml_stub: Callable[..., Path]) -> None:
    out = run_probe(nvml_stub(), "2xl40s", CUDA_VISIBLE_DEVICES="1")
    node = out["2xl40s"]["node"]
    assert len(node["gpus"]) == 2
    assert node["notes"] == [
        "CUDA_VISIBLE_DEVICES='1' is set: vLLM sees only those of the GPUs here"
    ]


@pytest.mark.parametrize(
    ("scenario", "what"),
    [
        ("driver-not-loaded", "NVML does not start: Driver Not Loaded"),
        ("no-gpus", "NVML finds no GPU"),
    ],
)
def test_no_gpu_is_an_unknown_fact(probe: Callable[..., Any], scenario: str, what: str) -> None:
    out = probe(scenario)
    assert out["what"] == what
    assert out["exit_code"] == 3
    assert "gpu: h100-sxm" in out["fix"]
    assert "--from-node-labels FILE" in out["fix"]


def test_no_driver_library(tmp_path: Path) -> None:
    # A file that is no library: found first, whatever this machine has.
    (tmp_path / "libnvidia-ml.so.1").write_text("no library\n" * 100, encoding="utf-8")
    out = run_probe(tmp_path, "none")["none"]
    assert out["what"] == "NVML does not start: NVML Shared Library Not Found"
    assert out["exit_code"] == 3


class FakeNvml:
    class NVMLError(Exception):
        pass

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def nvmlDeviceGetName(self, handle: object) -> Any:  # noqa: ARG002, N802
        return self.answer


def test_names_may_be_bytes_or_text() -> None:
    for name in (b"NVIDIA H200", "NVIDIA H200"):
        queries = NvmlQueries(FakeNvml(name))
        assert queries.text("nvmlDeviceGetName", object(), about="name") == "NVIDIA H200"
    assert as_text(b"") is None
    assert as_text(None) is None


def test_function_missing_in_pynvml_is_a_note() -> None:
    queries = NvmlQueries(FakeNvml("x"))
    assert queries.ask("nvmlDeviceGetMigMode", object(), about="MIG mode", gpu=3) is None
    assert queries.notes == (
        "GPU 3: function nvmlDeviceGetMigMode missing in this nvidia-ml-py: MIG mode unknown",
    )


def test_notes_join_equal_ones() -> None:
    queries = NvmlQueries(FakeNvml("x"))
    for gpu in (5, 0, 1, 2, 2):
        queries.note("is cold", gpu=gpu)
    assert queries.notes == ("GPUs 0-2, 5: is cold",)
