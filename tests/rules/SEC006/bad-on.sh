VLLM_ALLOW_RUNTIME_LORA_UPDATING=True vllm serve Qwen/Qwen3-8B --enable-lora --max-loras 4  # expect: SEC006

VLLM_ALLOW_INSECURE_SERIALIZATION=1 vllm serve Qwen/Qwen3-8B  # expect: SEC006
