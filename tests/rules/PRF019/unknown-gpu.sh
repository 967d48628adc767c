vllm serve some/unknown-model --gpu-memory-utilization 0.95
