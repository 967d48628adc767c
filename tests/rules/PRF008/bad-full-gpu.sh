# gpu: l40s x 1
vllm serve meta-llama/Llama-3.1-8B-Instruct --max-num-seqs 8 --max-num-batched-tokens 2048 \
  --kv-cache-memory-bytes 29500000000  # expect: PRF008
