VLLM_ALLOW_RUNTIME_LORA_UPDATING=false vllm serve Qwen/Qwen3-8B --enable-lora --max-loras 4

VLLM_ALLOW_INSECURE_SERIALIZATION=0 vllm serve Qwen/Qwen3-8B
