// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_HTTP_TEXT_H_
#define PERSEUS_HTTP_TEXT_H_

#include <string_view>

// Helpers for header texts. They treat only ASCII letters as letters.
namespace perseus::http {

bool SameIgnoringCase(std::string_view a, std::string_view b);

// '0' to '9', 'a' to 'f', 'A' to 'F': 0 to 15; -1 for others.
int HexDigit(char c);

}  // namespace perseus::http

#endif  // PERSEUS_HTTP_TEXT_H_
