# 40 heads.
vllm serve Qwen/Qwen2.5-14B-Instruct --tensor-parallel-size 1000000000000  # expect: PAR001
