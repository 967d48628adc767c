"""Requests of a pod, recomputed by hand."""

from hypothesis import given
from hypothesis import strategies as st

from vllm_advisor.sizing.pod_resources import pod_resources

GIB = 1 << 30
MIB = 1 << 20


def test_one_gpu():
    """16 GiB of weights on one GPU.

    memory: 8 + 4 x 1 + 16 = 28 GiB, no /dev/shm. CPU: 2 + 1. Disk: 10 GiB.
    claim: 16 x 1.2 + 10 = 29.2, in tens: 30 GiB.
    start: 16384 / 100 = 164 s down, 16384 / 500 = 33 s read, 300 s: 497 s = 9 minutes = 540 s.
    """
    found = pod_resources(
        checkpoint_bytes=16 * GIB, gpus=1, download_mib_per_second=100, weights_on_node=False
    )
    assert found.memory.value == 28 * GIB
    assert found.cpu.value == 3
    assert found.shm is None
    assert found.ephemeral_storage.value == 10 * GIB
    assert found.claim.value == 30 * GIB
    assert found.startup.value == 540
    assert "164 s" in found.startup.formula
    assert "33 s" in found.startup.formula


def test_two_nodes_of_eight():
    """800 GiB over two pods of 8 GPUs: 8 + 4 x 8 + 400 + 8 of /dev/shm = 448 GiB."""
    found = pod_resources(
        checkpoint_bytes=800 * GIB,
        gpus=8,
        nodes=2,
        download_mib_per_second=None,
        weights_on_node=False,
    )
    assert found.shm is not None
    assert found.shm.value == 8 * GIB
    assert found.memory.value == 448 * GIB
    assert found.startup.value == 1980  # 819200 / 500 = 1639 s and 300 s: 1939 s, 33 minutes
    assert "download" not in found.startup.formula


def test_weights_in_the_pod_count_as_its_disk():
    found = pod_resources(
        checkpoint_bytes=16 * GIB + 1, gpus=1, download_mib_per_second=100, weights_on_node=True
    )
    assert found.ephemeral_storage.value == 27 * GIB


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
    assert found.memory.value >= shm + checkpoint // nodes
    assert found.claim.value >= checkpoint
    assert not here or found.ephemeral_storage.value >= checkpoint
    assert found.startup.value * (rate or 500) * MIB >= checkpoint
    for figure in (found.memory, found.claim, found.ephemeral_storage):
        assert figure.value % GIB == 0
