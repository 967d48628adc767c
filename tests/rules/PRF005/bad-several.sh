vllm serve Qwen/Qwen3-8B --max-loras 4 --max-num-batched-tokens 2048 --long-prefill-token-threshold 2048  # expect: PRF005, PRF005
