vllm serve Qwen/Qwen3-8B --no-enable-prefix-caching --max-model-len 32k --port=8001  # expect: PRF012
