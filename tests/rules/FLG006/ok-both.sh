vllm serve Qwen/Qwen3-8B --enable-auto-tool-choice --tool-call-parser hermes \
  --enable-log-requests --enable-log-outputs
