# gpu: l4 x 1
vllm serve Qwen/Qwen3-8B --max-model-len 12288 --max-num-seqs 16 \
  --max-num-batched-tokens 16384  # expect: PRF010
