"""Requests of a pod, recomputed by hand."""

from hypothesis import given
from hypothesis import strategies as st

from vllm_advisor.sizing.pod_resources import pod_resources

GIB = 1 << 30
MIB = 1 << 20


def test_one_gpu():
    """16 GiB of weights on one GPU.

    memory: 8 + 4 x 1 = 12 GiB, no /dev/shm; 5 GiB being read: 17; all weights: 28 GiB.
    CPU: 2 + 1. Disk: 10 GiB.
    claim: 16 x 1.2 + 10 = 29.2, in tens: 30 GiB.
    start: 16384 / 100 = 164 s down, 16384 / 500 = 33 s read, 300 s: 497 s = 9 minutes = 540 s.
    """
    found = pod_resources(
        checkpoint_bytes=16 * GIB, gpus=1, download_mib_per_second=100, weights_on_node=False
    )
    assert found.memory_request.value == 17 * GIB
    assert found.memory_limit.value == 28 * GIB
    assert found.cpu.value == 3
    assert found.shm is None
    assert found.ephemeral_storage.value == 10 * GIB
    assert found.claim.value == 30 * GIB
    assert found.startup.value == 540
    assert "164 s" in found.startup.formula
    assert "33 s" in found.startup.formula


def test_two_nodes_of_eight():
    """800 GiB over two pods of 8 GPUs, 8 GiB of /dev/shm each.

    request: 8 + 4 x 8 + 8 + 5 x 8 = 88 GiB; limit: 8 + 4 x 8 + 8 + 400 = 448 GiB.
    """
    found = pod_resources(
        checkpoint_bytes=800 * GIB,
        gpus=8,
        nodes=2,
        download_mib_per_second=None,
        weights_on_node=False,
    )
    assert found.shm is not None
    assert found.shm.value == 8 * GIB
    assert found.memory_request.value == 88 * GIB
    assert found.memory_limit.value == 448 * GIB
    assert found.startup.value == 1980  # 819200 / 500 = 1639 s and 300 s: 1939 s, 33 minutes
    assert "download" not in found.startup.formula


def test_eight_engines_of_one_gpu_each():
    """vLLM starts as many API servers as engines, a core for each engine and a coordinator.

    CPU: 8 + 8 + 1 + 8 GPU processes = 25. Memory: 8 x 8 + 4 x 8 + 8 of /dev/shm = 104 GiB, and
    640 GiB of weights, of which 5 x 8 are being read.
    """
    found = pod_resources(
        checkpoint_bytes=640 * GIB,
        gpus=8,
        engines=8,
        download_mib_per_second=100,
        weights_on_node=False,
    )
    assert found.cpu.value == 25
    assert found.memory_request.value == 144 * GIB
    assert found.memory_limit.value == 744 * GIB


def test_weights_in_the_pod_count_as_its_disk():
    found = pod_resources(
        checkpoint_bytes=16 * GIB + 1, gpus=1, download_mib_per_second=100, weights_on_node=True
    )
    assert found.ephemeral_storage.value == 30 * GIB  # 10 + 16 x 1.2 = 29.2


@given(
    checkpoint=st.integers(1, 2000 * GIB),
    gpus=st.integers(1, 16),
    nodes=st.integers(1, 4),
    rate=st.one_of(st.none(), st.integers(1, 100_000)),
    here=st.booleans(),
)
def test_what_is_shared_is_in_the_limit_and_the_weights_fit(checkpoint, gpus, nodes, rate, here):
    found = pod_resources(
        checkpoint_bytes=checkpoint,
        gpus=gpus,
        nodes=nodes,
        download_mib_per_second=rate,
        weights_on_node=here,
    )
    shm = int(found.shm.value) if found.shm else 0
    assert (found.shm is None) == (gpus == 1 and nodes == 1)
    assert found.memory_limit.value >= shm + checkpoint // nodes
    assert shm < found.memory_request.value <= found.memory_limit.value
    assert found.claim.value >= checkpoint
    assert not here or found.ephemeral_storage.value >= checkpoint
    assert found.startup.value * (rate or 500) * MIB >= checkpoint
    for figure in (found.memory_request, found.memory_limit, found.claim, found.ephemeral_storage):
        assert figure.value % GIB == 0
