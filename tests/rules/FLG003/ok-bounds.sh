# The ends of the ranges.
# gpu: h100-sxm x 1
vllm serve Qwen/Qwen3-8B --max-model-len auto --max-num-seqs 1 \
  --max-num-batched-tokens 8192 --long-prefill-token-threshold 0 --dtype bfloat16 \
  --gpu-memory-utilization 1.0  # expect: PRF006
