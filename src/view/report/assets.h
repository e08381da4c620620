// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SRC_REPORT_ASSETS_H_
#define PERSEUS_SRC_REPORT_ASSETS_H_

#include <string_view>

namespace perseus::report {

// Of view/charts, bundled; the build makes them with cmake/EmbedAssets.cmake.
std::string_view ReportCss();
std::string_view ReportJs();  // "" in a build without charts (PERSEUS_WEB=OFF).

}  // namespace perseus::report

#endif  // PERSEUS_SRC_REPORT_ASSETS_H_
