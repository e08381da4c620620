// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SRC_REPORT_ASSETS_H_
#define PERSEUS_SRC_REPORT_ASSETS_H_

#include <string_view>

namespace perseus::report {

// The text of the files in assets/, embedded at build time. Pages have
// EmulationCss() behind ReportCss().
std::string_view EmulationCss();
std::string_view ReportCss();
std::string_view ReportJs();

}  // namespace perseus::report

#endif  // PERSEUS_SRC_REPORT_ASSETS_H_
