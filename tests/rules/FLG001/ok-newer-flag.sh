# vllm: 0.33.0
vllm serve Qwen/Qwen3-8B --disable-prefix-caching  # expect: PRF012
