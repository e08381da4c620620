// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_PAGE_DOCS_ROUTES_H_
#define PERSEUS_SERVER_PAGE_DOCS_ROUTES_H_

#include <string>
#include <vector>

#include "http/server.h"
#include "perseus/result.h"

namespace perseus::web {

// The routes of the documentation, GET /docs and below: the files of `folder`, a site that
// scripts/site made. All are read now, so no request reaches the file system. They need no token.
// "": the routes say where the documentation is. Errors (kInvalidInput): no such site, or one of
// over 64 MiB; symbolic links are left out.
Result<std::vector<http::Route>> DocsRoutes(const std::string& folder);

}  // namespace perseus::web

#endif  // PERSEUS_SERVER_PAGE_DOCS_ROUTES_H_
