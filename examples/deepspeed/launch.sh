#!/usr/bin/env bash
# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0

# Starts train_deepspeed.py on the GPUs of this node, a rank each. Before: a server (perseus serve) and the
# node's agent (perseus agent). Options of train_deepspeed.py follow: examples/deepspeed/launch.sh --stages 4
#   PERSEUS_SERVER  where the server is (http://127.0.0.1:7787)
#   RANKS           processes of this node (its GPUs; else 2)
set -euo pipefail
here=$(dirname "$(realpath "${BASH_SOURCE[0]}")")
: "${PERSEUS_SERVER:=http://127.0.0.1:7787}"
: "${RANKS:=$(nvidia-smi --list-gpus 2>/dev/null | wc -l)}"
[[ $RANKS -gt 0 ]] || RANKS=2
export PERSEUS_SERVER
# On several nodes: --nnodes, --node-rank and --rdzv-endpoint, as torchrun takes them.
exec "${PYTHON:-python3}" -m torch.distributed.run --standalone --nproc-per-node "$RANKS" \
  "${RUN:-$here/train_deepspeed.py}" "$@"
