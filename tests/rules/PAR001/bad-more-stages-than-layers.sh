vllm serve meta-llama/Llama-3.1-8B-Instruct --pipeline-parallel-size 33  # expect: PAR001
