"""Process groups of any size in one process: torch's own fake backend, whose collectives do nothing."""

from __future__ import annotations

from typing import Any


def install() -> None:
    """Make every group that vLLM creates a fake one without communicators."""
    import torch.distributed
    import torch.testing._internal.distributed.fake_pg
    from vllm.distributed import parallel_state

    new_group = torch.distributed.new_group
    build = parallel_state.GroupCoordinator.__init__

    def fake_group(ranks: list[int] | None = None, *_args: Any, **_kwargs: Any) -> Any:
        return new_group(ranks, backend="fake")

    def build_without_communicators(self: Any, *args: Any, **kwargs: Any) -> None:
        kwargs["use_device_communicator"] = False
        kwargs["use_message_queue_broadcaster"] = False
        build(self, *args, **kwargs)

    torch.distributed.new_group = fake_group
    parallel_state.GroupCoordinator.__init__ = build_without_communicators
    parallel_state._node_count = lambda _group: 1


def become(rank: int, parallel_config: Any) -> None:
    """Be ``rank`` of the deployment; call it inside ``set_current_vllm_config``."""
    import torch.distributed
    from torch.testing._internal.distributed.fake_pg import FakeStore
    from vllm.distributed import parallel_state

    if torch.distributed.is_initialized():
        parallel_state.destroy_model_parallel()
        parallel_state._WORLD = None
        torch.distributed.destroy_process_group()
    torch.distributed.init_process_group(
        "fake", store=FakeStore(), rank=rank, world_size=parallel_config.world_size_across_dp
    )
    parallel_state.init_distributed_environment(
        parallel_config.world_size, rank, "tcp://127.0.0.1:1", 0, "fake"
    )
    parallel_state.ensure_model_parallel_initialized(
        parallel_config.tensor_parallel_size,
        parallel_config.pipeline_parallel_size,
        parallel_config.prefill_context_parallel_size,
        parallel_config.decode_context_parallel_size,
        backend="fake",
    )
