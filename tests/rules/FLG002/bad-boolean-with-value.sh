vllm serve Qwen/Qwen3-8B --enforce-eager True  # expect: FLG002
