# It cost nothing without shared prefixes (ubicloud/ubicloud#2670).
vllm serve meta-llama/Llama-3.2-3B-Instruct --enable-prefix-caching
