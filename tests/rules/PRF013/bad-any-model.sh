vllm serve some/unknown-model --gpu-memory-utilization 0.95 \
  --enforce-eager  # expect: PRF013
