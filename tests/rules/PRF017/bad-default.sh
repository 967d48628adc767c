vllm serve Qwen/Qwen2.5-14B-Instruct --tensor-parallel-size 8 --max-lora-rank 64 \
  --enable-lora  # expect: PRF017
