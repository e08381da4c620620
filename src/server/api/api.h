// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_API_API_H_
#define PERSEUS_SERVER_API_API_H_

#include <string>
#include <vector>

#include "http/server.h"
#include "server/runtime/job_service.h"

namespace perseus::server {

// The handlers of all routes in routes.h, except /metrics, /healthz and /readyz, which ops/ adds.
// `service` must outlive the HTTP server.
std::vector<http::Route> ApiRoutes(JobService& service);

// The OpenAPI 3.1 document.
std::string OpenapiJson();

}  // namespace perseus::server

#endif  // PERSEUS_SERVER_API_API_H_
