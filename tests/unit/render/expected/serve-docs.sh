#!/usr/bin/env bash
# Instance docs (long-document) of the plan support.
# Serves: contracts.
#
# 1 replica of 2 GPUs (NVIDIA H100 80GB HBM3). To start it:
#   CUDA_VISIBLE_DEVICES=1,2 ./serve-docs.sh
# Arguments given to this script come last and win over those below.
#
# Once it runs, vLLM's log should say:
#   GPU KV cache size: 999,424 tokens, Maximum concurrency for 131,072 tokens per request: 7.62x
#
# For vLLM 0.33.0; written by vllm-advisor VERSION. PLAN.md has the whole reasoning.
set -euo pipefail

args=(
  # Ports count up from 8000. [docs.port; user:workload.yaml:12]
  --port 8001
  # Contracts are long. [docs.max-model-len; user:workload.yaml:12]
  --max-model-len 131072
  # Six whole contracts at once need 96 GiB of KV cache; one GPU has 53.
  # [docs.tensor-parallel-size; user:workload.yaml:12]
  --tensor-parallel-size 2
)

# The workload names the model. [docs.model; user:workload.yaml:12]
exec vllm serve example-org/Example-8B-Instruct "${args[@]}" "$@"
