# 40 heads divide by 5, but 8 KV heads do not, nor the other way round.
vllm serve Qwen/Qwen2.5-14B-Instruct --tensor-parallel-size 5  # expect: PAR001
