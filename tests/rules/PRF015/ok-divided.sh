# gpu: l40s x 4
vllm serve deepseek-ai/DeepSeek-V2-Lite --max-model-len 163840 --kv-cache-memory-bytes 6G \
  --tensor-parallel-size 4 --decode-context-parallel-size 4
