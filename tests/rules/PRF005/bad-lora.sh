vllm serve Qwen/Qwen3-8B --max-lora-rank 64  # expect: PRF005
