# gpu: gb10 x 1
vllm serve meta-llama/Llama-3.1-8B-Instruct --max-num-seqs 64 --kv-cache-dtype fp8 \
  --kv-cache-memory-bytes 20G  # expect: PRF008
