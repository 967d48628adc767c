# vllm: 0.11.0
vllm serve Qwen/Qwen3-8B --cuda-graph-sizes 1 2 4 --swap-space 4 --task generate \
  --guided-decoding-backend xgrammar --disable-log-requests
