# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0

"""Independent checks of the planner: they share no code with it."""
