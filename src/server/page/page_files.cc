// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "server/page/page_files.h"

#include "server/page/assets.h"

namespace perseus::web {

std::vector<PageFile> PageFiles() {
  return {{"page.html", "text/html; charset=utf-8", PageHtml()},
          {"page.js", "text/javascript; charset=utf-8", PageJs()},
          {"page.css", "text/css; charset=utf-8", PageCss()},
          {"icon.svg", "image/svg+xml", IconSvg()}};
}

}  // namespace perseus::web
