// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_CLI_PACKAGE_COMMANDS_H_
#define PERSEUS_CLI_PACKAGE_COMMANDS_H_

#include <array>
#include <string_view>

namespace perseus::cli {

// Commands that perseus.analysis of the Python package answers (python/perseus/analysis/__init__.py
// has the same), as they are typed.
inline constexpr std::array<std::string_view, 5> kPackageCommands = {"fleet emulate", "policy",
                                                                     "power", "synth", "trace"};

}  // namespace perseus::cli

#endif  // PERSEUS_CLI_PACKAGE_COMMANDS_H_
