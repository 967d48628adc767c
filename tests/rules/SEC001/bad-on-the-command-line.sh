vllm serve Qwen/Qwen3-8B --api-key 8c5f2a61d90b  # expect: SEC001

VLLM_API_KEY=8c5f2a61d90b vllm serve Qwen/Qwen3-8B  # expect: SEC001
