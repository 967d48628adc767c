# An A100 takes 2,048 tokens a step by default.
# gpu: a100-sxm4-80 x 1
vllm serve Qwen/Qwen3-8B --max-model-len 8192 --max-num-seqs 2049  # expect: SCH001
