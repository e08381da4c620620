// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_PAGE_PAGE_ROUTES_H_
#define PERSEUS_SERVER_PAGE_PAGE_ROUTES_H_

#include <vector>

#include "http/server.h"

namespace perseus::web {

// The routes of the server's page, GET / and GET /page/{file}. They need no token, as they have no
// data of jobs: the page asks the API for them, with the reader's token.
std::vector<http::Route> PageRoutes();

}  // namespace perseus::web

#endif  // PERSEUS_SERVER_PAGE_PAGE_ROUTES_H_
