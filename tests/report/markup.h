// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_TESTS_REPORT_MARKUP_H_
#define PERSEUS_TESTS_REPORT_MARKUP_H_

#include <string>

namespace perseus::report {

// The page without its style, script and data. (No regular expressions on whole
// pages here: libstdc++'s recurse for every character.)
std::string Markup(std::string html);

// The first tag that is not closed where it should be, or "".
std::string UnbalancedTag(const std::string& markup);

int Count(const std::string& text, const std::string& part);

}  // namespace perseus::report

#endif  // PERSEUS_TESTS_REPORT_MARKUP_H_
