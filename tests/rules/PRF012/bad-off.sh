vllm serve Qwen/Qwen3-8B --no-enable-prefix-caching  # expect: PRF012
