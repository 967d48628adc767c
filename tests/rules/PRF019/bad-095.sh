# gpu: gb10 x 1
vllm serve some/unknown-model --gpu-memory-utilization 0.95  # expect: PRF019
