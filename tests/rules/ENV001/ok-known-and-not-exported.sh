VLLM_MODEL=Qwen/Qwen3-8B
VLLM_CACHE_ROOT=/cache HF_HOME=/models vllm serve Qwen/Qwen3-8B
