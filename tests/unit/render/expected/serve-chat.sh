#!/usr/bin/env bash
# Instance chat (short) of the plan support.
# Serves: support-chat, search.
#
# 1 replica of 1 GPU (NVIDIA H100 80GB HBM3). To start it:
#   CUDA_VISIBLE_DEVICES=0 ./serve-chat.sh
# Arguments given to this script come last and win over those below.
#
# Once it runs, vLLM's log should say:
#   GPU KV cache size: 434,176 tokens, Maximum concurrency for 8,192 tokens per request: 53.00x
#
# For vLLM 0.33.0; written by vllm-advisor VERSION. PLAN.md has the whole reasoning.
set -euo pipefail

args=(
  # Ports count up from 8000. [chat.port; user:workload.yaml:12]
  --port 8000
  # The longest chat has 8,192 tokens: 7,168 of prompt and 1,024 of answer.
  # [chat.max-model-len; user:workload.yaml:12]
  --max-model-len 8192
  # Nothing else runs on the GPU. [chat.gpu-memory-utilization; user:workload.yaml:12]
  --gpu-memory-utilization 0.9
  # Long prompts may not stall running answers. [chat.enable-chunked-prefill;
  # user:workload.yaml:12]
  --enable-chunked-prefill
)

# The workload names the model. [chat.model; user:workload.yaml:12]
exec vllm serve example-org/Example-8B-Instruct "${args[@]}" "$@"
