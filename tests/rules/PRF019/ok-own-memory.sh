# gpu: l40s x 1
vllm serve some/unknown-model --gpu-memory-utilization 0.95
