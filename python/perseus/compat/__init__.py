# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
"""What users of other tools already have, given to Perseus."""
