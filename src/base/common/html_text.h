// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_COMMON_HTML_TEXT_H_
#define PERSEUS_COMMON_HTML_TEXT_H_

#include <string>
#include <string_view>

namespace perseus {

// `text` for HTML text or a quoted attribute: & < > " ' escaped, bytes that
// are not UTF-8 replaced, control characters made spaces.
std::string EscapeHtml(std::string_view text);

}  // namespace perseus

#endif  // PERSEUS_COMMON_HTML_TEXT_H_
