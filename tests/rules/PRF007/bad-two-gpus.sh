# gpu: l40s x 2
vllm serve Qwen/Qwen2.5-14B-Instruct --tensor-parallel-size 2 --max-model-len 131072 --hf-overrides '{"rope_parameters": {"rope_type": "yarn", "factor": 4.0, "rope_theta": 1000000, "original_max_position_embeddings": 32768}, "max_position_embeddings": 131072}' \
  --gpu-memory-utilization 0.7  # expect: PRF007
