# vLLM multiplies a linear factor in: 40,960 x 4 = 163,840.
vllm serve Qwen/Qwen3-8B --max-model-len 131072 --hf-overrides '{"rope_parameters": {"rope_type": "linear", "factor": 4.0, "rope_theta": 1000000}}'
