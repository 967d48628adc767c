"""The engine arguments of one instance that change its memory."""

from __future__ import annotations

from dataclasses import dataclass

from vllm_advisor.sizing.offload import Offload
from vllm_advisor.types.speculation import Speculation


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceSettings:
    """The engine arguments that change memory, every default filled in as vLLM does.

    ``None`` stands for what is off, or was not given and changes nothing then.
    """

    max_model_len: int
    max_num_batched_tokens: int
    max_num_seqs: int
    gpu_memory_utilization: float
    block_size: int
    attention_backend: str
    dtype: str | None = None  # --dtype where it is not the checkpoint's
    kv_cache_dtype: str = "auto"
    tensor_parallel_size: int = 1
    pipeline_parallel_size: int = 1
    prefill_context_parallel_size: int = 1
    decode_context_parallel_size: int = 1
    cp_kv_cache_interleave_size: int = 1
    data_parallel_size: int = 1
    enable_expert_parallel: bool = False
    offload: Offload | None = None  # weights in CPU memory
    quantization: str | None = None  # online quantization of 16-bit weights
    language_model_only: bool = False
    encoder_by_data: bool = False  # --mm-encoder-tp-mode data
    eplb: bool = False
    redundant_experts: int = 0
    enforce_eager: bool = False
    hybrid_manager: bool = True
    kv_cache_dtype_skip_layers: frozenset[str] = frozenset()
    mamba_cache_dtype: str = "auto"
    mamba_ssm_cache_dtype: str = "auto"
    prefix_caching: bool = True
    prefix_match_unit: int | None = None  # tokens per block hash, where it is given
    kv_connector: bool = False  # KV blocks leave the GPU: hashed without prefix caching as well
    capability: int = 90  # compute capability x 10: some state caches depend on it
    sparse_format: int | None = None  # bytes per token of the backend's own latent format
    async_scheduling: bool = True
    gdn_prefill_checkpoint: bool = True  # of the vLLM version
    tower_on_first_stage: bool = True  # of the vLLM version
    sparse_pcp_graphs: bool = True  # of the vLLM version
    max_loras: int = 0  # 0: LoRA is off
    max_lora_rank: int = 16
    kv_cache_memory_bytes: int | None = None
    num_gpu_blocks_override: int | None = None
    sliding_window: bool = True  # False: --disable-sliding-window
    max_position_embeddings: int | None = None  # from --hf-overrides
    speculation: Speculation | None = None

    @property
    def num_speculative_tokens(self) -> int:
        """Tokens drafted for each that is sampled; 0 without speculative decoding."""
        return self.speculation.num_speculative_tokens if self.speculation else 0

    @property
    def ranks(self) -> int:
        """GPUs of one engine; a deployment has ``data_parallel_size`` engines."""
        stage = self.tensor_parallel_size * self.prefill_context_parallel_size
        return stage * self.pipeline_parallel_size

    @property
    def gpus(self) -> int:
        """GPUs of one deployment: all ranks of all its data-parallel engines."""
        return self.ranks * self.data_parallel_size

    @property
    def in_flight_tokens(self) -> int:
        """Tokens scheduled and not yet settled (vllm/config/vllm.py#max_concurrent_batches)."""
        pipeline = self.pipeline_parallel_size
        if self.async_scheduling:
            return (pipeline + 1) * self.max_num_batched_tokens
        return pipeline * self.max_num_batched_tokens
