"""Instances whose ranks live in several pods: what the leader starts, and what its workers."""

from __future__ import annotations

from dataclasses import dataclass

from vllm_advisor.types.environment import Environment, MultiNode

LEADER_LABEL = {"leaderworkerset.sigs.k8s.io/worker-index": "0"}
# Set by LeaderWorkerSet in every pod and expanded by Kubernetes: the only $(...) that is meant.
_LEADER_ADDRESS = "$(LWS_LEADER_ADDRESS)"
_WORKER_INDEX = "$(LWS_WORKER_INDEX)"
_RAY_PORT = 6379
_RAY_LEADER = (
    f'ray start --head --port={_RAY_PORT} --node-ip-address="$VLLM_HOST_IP"\n'
    'exec vllm serve "$@" --distributed-executor-backend ray'
)
_RAY_WORKER = (
    f'until ray start --address="$LWS_LEADER_ADDRESS:{_RAY_PORT}" '
    '--node-ip-address="$VLLM_HOST_IP" --block; do sleep 5; done'
)
_BASH = ("bash", "-euc")


@dataclass(frozen=True, slots=True, kw_only=True)
class Role:
    """What a pod runs: ``command``, then the plan's arguments unless ``left_out``, then ``words``.

    ``without`` names flags of the plan that this form replaces.
    """

    command: tuple[str, ...] = ("vllm", "serve")
    words: tuple[str, ...] = ()
    left_out: bool = False
    without: tuple[str, ...] = ()
    serves: bool = True
    command_because: str = ""
    words_because: str = ""


def alone() -> Role:
    """A pod that holds a whole replica."""
    return Role()


def leader(place: Environment) -> Role:
    """The first pod of a group, which serves."""
    if place.multi_node is MultiNode.RAY:
        return Role(
            command=(*_BASH, _RAY_LEADER, "vllm"),
            without=("nnodes",),
            command_because="Ray instead of --nnodes: the image has to hold it, vLLM's own does "
            'not. The arguments reach vllm as they are ("$@"), never as text of the script.',
        )
    return Role(
        words=("--master-addr", _LEADER_ADDRESS),
        words_because="set in every pod of a group by LeaderWorkerSet; the leader is rank 0",
    )


def worker(place: Environment) -> Role:
    """Every other pod of a group: ranks without a server."""
    if place.multi_node is MultiNode.RAY:
        return Role(command=(*_BASH, _RAY_WORKER), left_out=True, serves=False)
    return Role(
        words=("--master-addr", _LEADER_ADDRESS, "--node-rank", _WORKER_INDEX, "--headless"),
        words_because="set in every pod of a group by LeaderWorkerSet; workers serve nothing",
        serves=False,
    )
