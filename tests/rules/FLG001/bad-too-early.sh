# vllm: 0.11.0
vllm serve Qwen/Qwen3-8B --attention-backend FLASHINFER  # expect: FLG001
