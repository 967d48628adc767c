vllm serve org/not-known --enable-auto-tool-choice --tool-call-parser my_own \
  --tool-parser-plugin /plugins/my_own.py --reasoning-parser qwen3
# Without --enable-auto-tool-choice vLLM does not look at it.
vllm serve org/not-known --tool-call-parser my_own
