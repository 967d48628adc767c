vllm serve Qwen/Qwen3-8B --swap-space=16  # expect: FLG001
