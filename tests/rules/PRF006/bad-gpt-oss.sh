# vLLM 0.14.1 runs out of memory with these and --max-model-len 5120 on an H100 (vllm-project/vllm#33155).
# gpu: h100-sxm x 1
vllm serve openai/gpt-oss-120b -O3 --enable-chunked-prefill --enable-prefix-caching --async-scheduling \
  --max-num-seqs 1 --tensor-parallel-size 1 --max-model-len 8192 \
  --gpu-memory-utilization 0.97  # expect: PRF006
