# 40 heads.
vllm serve Qwen/Qwen2.5-14B-Instruct --tensor-parallel-size 7  # expect: PAR001
