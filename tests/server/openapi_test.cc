// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// The OpenAPI document and the routes are two sides of one thing.

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "server/api/api.h"
#include "server/service_testing.h"

namespace perseus::server {
namespace {

using OpenapiTest = ServiceTest;

TEST_F(OpenapiTest, EveryRouteIsDescribedAndTheReverse) {
  std::set<std::string> routes;
  std::map<std::string, std::string> roles;
  for (const http::Route& route : ApiRoutes(*service_)) {
    const std::string name = route.method + " " + route.pattern;
    EXPECT_TRUE(routes.insert(name).second) << name;
    roles[name] = http::RoleName(route.at_least);
  }
  // Those of the process, which serve.cc adds.
  for (const char* const own : {"GET /metrics", "GET /healthz", "GET /readyz"}) routes.insert(own);
  roles["GET /metrics"] = "read";

  std::set<std::string> described;
  const auto document = nlohmann::json::parse(OpenapiJson());
  for (const auto& [path, item] : document["paths"].items()) {
    for (const auto& [method, operation] : item.items()) {
      if (method == "parameters") continue;
      std::string name = method + " " + path;
      std::transform(name.begin(), name.begin() + static_cast<std::ptrdiff_t>(method.size()),
                     name.begin(), [](unsigned char c) { return std::toupper(c); });
      described.insert(name);
      if (roles.contains(name)) {
        EXPECT_EQ(operation.value("x-perseus-role", "none"), roles[name]) << name;
      }
    }
  }
  EXPECT_EQ(described, routes);
}

}  // namespace
}  // namespace perseus::server
