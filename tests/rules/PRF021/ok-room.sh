# gpu: l4 x 1
VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS=0 vllm serve Qwen/Qwen3-8B --max-model-len 8192 --max-num-seqs 64 \
  --gpu-memory-utilization 0.88
