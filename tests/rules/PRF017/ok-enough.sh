vllm serve Qwen/Qwen3-8B --enable-lora --lora-modules a=/m/a b=/m/b --max-loras 2
