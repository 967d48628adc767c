# 32.8 GB of weights do not fit into 24 GB.
# gpu: l4 x 4
# class: {name: mail, prompt_tokens: 2000, output_tokens: 500, concurrent_requests: 4}
vllm serve Qwen/Qwen2.5-14B-Instruct --max-model-len 8192 --max-num-seqs 16 --tensor-parallel-size 2
