# Blocks of 36 MiB or so: 4 GiB hold about a hundred states.
# gpu: h100-sxm x 4
vllm serve Qwen/Qwen3-Next-80B-A3B-Instruct --tensor-parallel-size 4 --max-model-len 32768 \
  --kv-cache-memory-bytes 2G --max-num-seqs 1024  # expect: KV004
