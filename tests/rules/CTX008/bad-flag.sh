# gpu: h100-sxm x 1
vllm serve openai/gpt-oss-120b --max-model-len 32768 --max-num-seqs 64 \
  --disable-hybrid-kv-cache-manager  # expect: CTX008
