// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_COMMON_TOML_ASCII_H_
#define PERSEUS_COMMON_TOML_ASCII_H_

#include <string>
#include <string_view>

#include "perseus/result.h"

namespace perseus {

// Converts a TOML document to ASCII with the same lines. Other characters become escapes in strings
// and "?" in comments; elsewhere they are an error, as TOML requires. The reason: toml++ (up to
// 3.4) has undefined behaviour if it checks such characters for white space. Also refuses what job
// files do not need and toml++ 3.3 does not handle safely: multi-line strings, and keys of more
// than eight parts (`a.b.c = 1`), because it destroys its tree recursively without a limit of
// depth. Messages use `name` for the path.
Result<std::string> TomlToAscii(std::string_view text, const std::string& name);

}  // namespace perseus

#endif  // PERSEUS_COMMON_TOML_ASCII_H_
