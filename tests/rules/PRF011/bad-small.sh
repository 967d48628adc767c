# Each of the 128 steps reads 16 GB of weights.
vllm serve meta-llama/Llama-3.1-8B-Instruct --max-model-len 32768 --max-num-seqs 64 \
  --max-num-batched-tokens 256  # expect: PRF011
