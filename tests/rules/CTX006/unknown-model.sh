vllm serve org/not-known --hf-overrides '{"rope_parameters": {"rope_type": "yarn", "factor": 4.0}}'
