# Both names existed in 0.11.1 and 0.12.0; 0.11.0 has the older one only, 0.13.0 the newer one.
# vllm: 0.13.0
vllm serve Qwen/Qwen3-8B --cuda-graph-sizes 1 2 4  # expect: FLG001
