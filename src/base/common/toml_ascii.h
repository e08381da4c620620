// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_COMMON_TOML_ASCII_H_
#define PERSEUS_COMMON_TOML_ASCII_H_

#include <string>
#include <string_view>

#include "perseus/result.h"

namespace perseus {

// The same TOML document in ASCII: letters beyond it become escapes in strings
// and "?" in comments, and are an error elsewhere, as TOML has it. Lines stay
// lines. Also refuses what is no use in a job file and what toml++ cannot be
// trusted with: multi-line strings, and keys of more than eight parts
// (`a.b.c = 1`), the depth of which 3.3 does not bound although it takes its
// tree apart recursively. Its tests for white space have undefined behaviour
// on letters beyond ASCII (3.4 included), so it never sees any.
// `name` stands for the path in messages.
Result<std::string> TomlToAscii(std::string_view text, const std::string& name);

}  // namespace perseus

#endif  // PERSEUS_COMMON_TOML_ASCII_H_
