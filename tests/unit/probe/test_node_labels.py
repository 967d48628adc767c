"""Labels of GPU Feature Discovery, in the form the GPU Operator leaves on nodes.

Label names and values follow the tables of NVIDIA's k8s-device-plugin documentation
(docs/gpu-feature-discovery) and GPU Operator documentation (time slicing, MPS, MIG).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from vllm_advisor.errors import InputError, UnknownFactError
from vllm_advisor.probe.node_labels import MigDevices, read_node_labels

MIB = 1 << 20


def node(
    name: str,
    *,
    product: str | None = "NVIDIA-H100-80GB-HBM3",
    count: int = 8,
    capacity: dict[str, int] | None = None,
    allocatable: dict[str, int] | None = None,
    cordoned: bool = False,
    **changed: str | None,
) -> dict[str, Any]:
    """A node as the GPU Operator labels it; ``gpu__memory=None`` takes a label away."""
    labels: dict[str, str | None] = {
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/hostname": name,
        "node.kubernetes.io/instance-type": "bare-metal",
        "feature.node.kubernetes.io/pci-10de.present": "true",
    }
    if product is not None:
        labels |= {
            "nvidia.com/cuda.driver-version.full": "580.126.16",
            "nvidia.com/cuda.driver-version.major": "580",
            "nvidia.com/cuda.driver-version.minor": "126",
            "nvidia.com/cuda.driver-version.revision": "16",
            "nvidia.com/cuda.driver.major": "580",
            "nvidia.com/cuda.driver.minor": "126",
            "nvidia.com/cuda.driver.rev": "16",
            "nvidia.com/cuda.runtime-version.full": "13.0",
            "nvidia.com/gfd.timestamp": "1790000000",
            "nvidia.com/gpu-driver-upgrade-state": "upgrade-done",
            "nvidia.com/gpu.compute.major": "9",
            "nvidia.com/gpu.compute.minor": "0",
            "nvidia.com/gpu.count": str(count),
            "nvidia.com/gpu.deploy.device-plugin": "true",
            "nvidia.com/gpu.family": "hopper",
            "nvidia.com/gpu.machine": "SYS-821GE-TNHR",
            "nvidia.com/gpu.memory": "81559",
            "nvidia.com/gpu.mode": "compute",
            "nvidia.com/gpu.present": "true",
            "nvidia.com/gpu.product": product,
            "nvidia.com/gpu.replicas": "1",
            "nvidia.com/gpu.sharing-strategy": "none",
            "nvidia.com/mig.capable": "true",
            "nvidia.com/mig.config": "all-disabled",
            "nvidia.com/mig.strategy": "single",
            "nvidia.com/mps.capable": "false",
            "nvidia.com/vgpu.present": "false",
        }
    labels |= {f"nvidia.com/{key.replace('__', '.')}": value for key, value in changed.items()}
    resources = {"gpu": count} if capacity is None else capacity
    free = resources if allocatable is None else allocatable

    def quantities(gpus: dict[str, int]) -> dict[str, str]:
        return {"cpu": "224", "memory": "2113481172Ki", "pods": "110"} | {
            f"nvidia.com/{key}": str(number) for key, number in gpus.items()
        }

    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "annotations": {"nfd.node.kubernetes.io/feature-labels": "nvidia.com/gpu.product"},
            "labels": {key: value for key, value in labels.items() if value is not None},
        },
        "spec": {"podCIDR": "10.244.1.0/24"} | ({"unschedulable": True} if cordoned else {}),
        "status": {"capacity": quantities(resources), "allocatable": quantities(free)},
    }


def cpu_node(name: str) -> dict[str, Any]:
    return node(name, product=None, capacity={})


@pytest.fixture
def write(tmp_path: Path) -> Any:
    def write_file(*nodes: dict[str, Any], form: str = "json") -> Path:
        document = (
            nodes[0]
            if len(nodes) == 1
            else {"apiVersion": "v1", "kind": "List", "items": list(nodes)}
        )
        path = tmp_path / f"nodes.{form}"
        text = json.dumps(document, indent=4) if form == "json" else yaml.safe_dump(document)
        path.write_text(text, encoding="utf-8")
        return path

    return write_file


@pytest.mark.parametrize("form", ["json", "yaml"])
def test_one_node(write: Any, form: str) -> None:
    found = read_node_labels(write(node("gpu-1"), form=form))
    assert found.product == "NVIDIA-H100-80GB-HBM3"
    assert (found.node_count, found.gpu_count) == (1, 8)
    assert found.memory_total == 81559 * MIB
    assert found.compute_capability == (9, 0)
    assert found.driver_version == "580.126.16"
    assert found.node_names == ("gpu-1",)
    assert found.mig_profile is None
    assert found.mig_devices == ()
    assert found.replicas == 1
    assert found.notes == ()


def test_equal_nodes_are_counted_and_others_passed_over(write: Any) -> None:
    found = read_node_labels(
        write(cpu_node("control-plane"), node("gpu-1"), node("gpu-2", gpu__memory="81558"))
    )
    assert (found.node_count, found.gpu_count) == (2, 8)
    assert found.node_names == ("gpu-1", "gpu-2")
    assert found.memory_total == 81558 * MIB  # the smaller
    assert found.notes == ("nodes without GPU labels passed over: 1",)


def test_different_gpus_name_their_groups(write: Any) -> None:
    path = write(
        node("big-1"),
        node("big-2"),
        node("small-1", product="NVIDIA-L40S", count=4, gpu__memory="46068"),
    )
    with pytest.raises(InputError) as caught:
        read_node_labels(path)
    assert caught.value.what == (
        "the nodes have different GPUs: 8 x NVIDIA-H100-80GB-HBM3 (big-1, big-2); "
        "4 x NVIDIA-L40S (small-1)"
    )
    assert caught.value.where == str(path)
    assert (
        "kubectl get nodes -l nvidia.com/gpu.product=NVIDIA-H100-80GB-HBM3,nvidia.com/gpu.count=8"
        in caught.value.fix
    )
    chosen = read_node_labels(path, node="small-1")
    assert (chosen.product, chosen.gpu_count) == ("NVIDIA-L40S", 4)


def test_different_counts_of_one_gpu_are_different_nodes(write: Any) -> None:
    with pytest.raises(InputError, match=r"8 x .*; 4 x "):
        read_node_labels(write(node("a"), node("b", count=4)))


def test_node_that_is_not_there(write: Any) -> None:
    with pytest.raises(InputError, match="no node 'gpu-9' in the file: it has gpu-1, gpu-2"):
        read_node_labels(write(node("gpu-1"), node("gpu-2")), node="gpu-9")


def test_no_labels_means_no_feature_discovery(write: Any) -> None:
    bare = node("gpu-1", product=None, capacity={"gpu": 8})
    with pytest.raises(UnknownFactError) as caught:
        read_node_labels(write(cpu_node("cpu-1"), bare))
    assert "GPU Feature Discovery is not running there" in caught.value.what
    assert "gpu-1 offers 8 of unknown type" in caught.value.what
    assert "GPU Operator" in caught.value.fix
    assert caught.value.exit_code == 3


def test_time_slicing(write: Any) -> None:
    found = read_node_labels(
        write(
            node(
                "gpu-1",
                product="NVIDIA-L40S-SHARED",
                count=2,
                capacity={"gpu": 8},
                **{"gpu__replicas": "4", "gpu__sharing-strategy": "time-slicing"},
            )
        )
    )
    assert found.product == "NVIDIA-L40S"
    assert found.gpu_count == 2  # the label counts GPUs, the capacity counts 2 x 4 tickets
    assert found.replicas == 4
    assert found.sharing_strategy == "time-slicing"
    (note,) = found.notes
    assert note == (
        "each GPU is shared by up to 4 pods (time-slicing): "
        "nothing keeps one from taking the memory of the others"
    )


def test_mps_under_a_resource_of_its_own(write: Any) -> None:
    # renameByDefault: the product keeps its name and the resource is nvidia.com/gpu.shared
    found = read_node_labels(
        write(
            node(
                "gpu-1",
                product="Tesla-T4",
                count=4,
                capacity={"gpu": 0, "gpu.shared": 16},
                **{"gpu__replicas": "4", "gpu__sharing-strategy": "mps"},
            )
        )
    )
    assert (found.product, found.gpu_count, found.replicas) == ("Tesla-T4", 4, 4)
    assert found.notes == ("each GPU is shared by up to 4 pods (mps): each gets 1/4 of its memory",)


def test_mig_single(write: Any) -> None:
    found = read_node_labels(
        write(
            node(
                "gpu-1",
                product="NVIDIA-H100-80GB-HBM3-MIG-1g.10gb",
                count=56,
                gpu__memory="9984",
                mig__config="all-1g.10gb",
                gpu__multiprocessors="16",
            )
        )
    )
    assert found.product == "NVIDIA-H100-80GB-HBM3"
    assert found.mig_profile == "1g.10gb"
    assert found.mig_strategy == "single"
    assert found.gpu_count == 56
    assert found.memory_total == 9984 * MIB
    assert "gpu_count counts MIG devices 1g.10gb" in found.notes[0]


def test_mig_mixed(write: Any) -> None:
    found = read_node_labels(
        write(
            node(
                "gpu-1",
                capacity={"gpu": 4, "mig-1g.10gb": 14, "mig-3g.40gb": 4},
                **{
                    "mig__strategy": "mixed",
                    "mig-1g.10gb.count": "14",
                    "mig-1g.10gb.memory": "9984",
                    "mig-1g.10gb.product": "NVIDIA-H100-80GB-HBM3-MIG-1g.10gb",
                    "mig-3g.40gb.count": "4",
                    "mig-3g.40gb.memory": "40448",
                },
            )
        )
    )
    assert found.gpu_count == 8
    assert found.mig_devices == (
        MigDevices(profile="1g.10gb", count=14, memory_total=9984 * MIB),
        MigDevices(profile="3g.40gb", count=4, memory_total=40448 * MIB),
    )
    assert found.notes == (
        "node gpu-1: GPUs are split by MIG (14 x 1g.10gb, 4 x 3g.40gb); 4 GPUs are whole",
    )


def test_mig_layout_that_labels_cannot_tell(write: Any) -> None:
    invalid = node("gpu-1", product="NVIDIA-H100-80GB-HBM3-MIG-INVALID", count=0, gpu__memory="0")
    with pytest.raises(UnknownFactError, match="MIG layout its labels cannot tell"):
        read_node_labels(write(invalid))


def test_unified_memory_has_no_memory_label(write: Any) -> None:
    found = read_node_labels(write(node("spark", product="NVIDIA-GB10", count=1, gpu__memory=None)))
    assert found.memory_total is None
    assert "unified memory" in found.notes[0]


def test_what_cannot_be_allocated_is_noted(write: Any) -> None:
    found = read_node_labels(
        write(node("gpu-1", allocatable={"gpu": 7}, cordoned=True), node("gpu-2"))
    )
    assert found.notes == (
        "node gpu-1 is cordoned: no pod is scheduled there",
        "node gpu-1: 7 of 8 nvidia.com/gpu can be allocated",
    )


def test_labels_of_a_node_with_two_kinds_of_gpus_tell_one(write: Any) -> None:
    found = read_node_labels(write(node("gpu-1", count=2, capacity={"gpu": 3})))
    assert found.notes == (
        "node gpu-1 has more GPUs than its labels describe: they are not all equal",
    )


def test_older_driver_labels(write: Any) -> None:
    found = read_node_labels(write(node("gpu-1", **{"cuda__driver-version__full": None})))
    assert found.driver_version == "580.126.16"


def test_count_from_the_capacity(write: Any) -> None:
    path = write(node("gpu-1", gpu__count=None, gpu__replicas="2", capacity={"gpu": 16}))
    assert read_node_labels(path).gpu_count == 8  # 16 tickets, 2 for each GPU
    with pytest.raises(UnknownFactError, match="how many GPUs"):
        read_node_labels(write(node("gpu-1", gpu__count=None, capacity={})))


def test_bare_numbers_in_yaml(tmp_path: Path) -> None:
    path = tmp_path / "node.yaml"
    path.write_text(
        "kind: Node\nmetadata: {name: a, labels: {nvidia.com/gpu.product: NVIDIA-L4, "
        "nvidia.com/gpu.count: 2, nvidia.com/gpu.memory: 23034}}\n",
        encoding="utf-8",
    )
    found = read_node_labels(path)
    assert (found.gpu_count, found.memory_total) == (2, 23034 * MIB)


def test_label_that_is_no_number(write: Any) -> None:
    with pytest.raises(InputError, match=r"nvidia\.com/gpu\.memory of node gpu-1 is '80GB'"):
        read_node_labels(write(node("gpu-1", gpu__memory="80GB")))


@pytest.mark.parametrize(
    ("text", "what", "place"),
    [
        ('{"kind": "Pod"}', "the file holds a Pod, not a Node", ""),
        ("[1]", "no Kubernetes object", ""),
        ("", "no Kubernetes object", ""),
        ('{"kind": "List", "items": []}', "the list holds no Nodes", ""),
        ('{"kind": "List", "items": [{"kind": "Pod"}]}', "the list holds no Nodes", ""),
        ("kind: Node\n  x: [", "neither JSON nor YAML", ":2:4"),
        ("kind: Node\n---\nkind: Node\n", "neither JSON nor YAML", ":2:1"),
    ],
)
def test_file_that_is_no_node(tmp_path: Path, text: str, what: str, place: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError) as caught:
        read_node_labels(path)
    assert what in caught.value.what
    assert caught.value.where == f"{path}{place}"
    assert "kubectl get node" in caught.value.fix


def test_node_without_metadata_is_no_crash(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text('{"kind": "Node", "metadata": null, "status": []}', encoding="utf-8")
    with pytest.raises(UnknownFactError):
        read_node_labels(path)


def test_no_such_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot read the node labels"):
        read_node_labels(tmp_path / "nowhere.json")
