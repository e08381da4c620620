// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_PAGE_PAGE_FILES_H_
#define PERSEUS_SERVER_PAGE_PAGE_FILES_H_

#include <string_view>
#include <vector>

namespace perseus::web {

struct PageFile {
  std::string_view name;
  std::string_view content_type;
  std::string_view bytes;
};

// All files of the page; the first is the answer to /. Empty: this build has no page.
std::vector<PageFile> PageFiles();

}  // namespace perseus::web

#endif  // PERSEUS_SERVER_PAGE_PAGE_FILES_H_
