// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_PAGE_ASSETS_H_
#define PERSEUS_SERVER_PAGE_ASSETS_H_

#include <string_view>

namespace perseus::web {

// Of page/, bundled; the build makes them with cmake/EmbedAssets.cmake.
std::string_view PageHtml();
std::string_view PageJs();
std::string_view PageCss();
std::string_view IconSvg();

}  // namespace perseus::web

#endif  // PERSEUS_SERVER_PAGE_ASSETS_H_
