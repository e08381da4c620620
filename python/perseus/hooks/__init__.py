# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""What tells Perseus what a trainer does: `Job`, and the hooks of frameworks."""
