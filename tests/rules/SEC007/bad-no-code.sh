vllm serve Qwen/Qwen3-8B \
  --trust-remote-code  # expect: SEC007
