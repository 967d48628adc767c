vllm serve Qwen/Qwen3-8B --enable-lora --lora-modules a=/m/a b=/m/b c=/m/c \
  --max-loras 2  # expect: PRF017
