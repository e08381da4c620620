// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_CLI_DEMO_MODELLED_PROFILE_H_
#define PERSEUS_CLI_DEMO_MODELLED_PROFILE_H_

#include <string_view>

namespace perseus::cli {

// examples/gpt3-1.3b-a100-sxm.csv.
std::string_view ModelledProfileCsv();

}  // namespace perseus::cli

#endif  // PERSEUS_CLI_DEMO_MODELLED_PROFILE_H_
