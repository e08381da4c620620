// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// Built with -DPERSEUS_WEB=OFF.
#include "server/page/page_files.h"

namespace perseus::web {

std::vector<PageFile> PageFiles() { return {}; }

}  // namespace perseus::web
