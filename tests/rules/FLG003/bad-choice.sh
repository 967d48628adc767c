vllm serve Qwen/Qwen3-8B --dtype bf16  # expect: FLG003
