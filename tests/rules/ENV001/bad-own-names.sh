export VLLM_MODEL=Qwen/Qwen3-8B  # expect: ENV001
vllm serve Qwen/Qwen3-8B
