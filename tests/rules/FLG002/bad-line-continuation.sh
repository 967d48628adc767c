vllm serve Qwen/Qwen3-8B \
  --max-model-len 8192
  --port 8001  # expect: FLG002
