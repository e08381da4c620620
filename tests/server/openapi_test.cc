// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// Routes and document come from one list; here is what the list itself cannot say.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>

#include "job/job_fields.h"
#include "perseus/version.h"
#include "server/api/api.h"
#include "server/service_testing.h"
#include "support/mentions.h"
#include "wire/routes.h"

namespace perseus::server {
namespace {

using OpenapiTest = ServiceTest;
using Json = nlohmann::ordered_json;

TEST_F(OpenapiTest, EveryRowHasAHandler) {
  std::set<std::string> routes;
  for (const http::Route& route : ApiRoutes(*service_)) {
    EXPECT_TRUE(routes.insert(route.method + " " + route.pattern).second) << route.pattern;
    EXPECT_TRUE(route.takes_bound_tokens) << route.pattern;
  }
  std::set<std::string> rows;
  for (const wire::RouteRow& row : wire::kRoutes) {
    const std::string name = std::string(row.method) + " " + std::string(row.path);
    EXPECT_TRUE(rows.insert(name).second) << name;
  }
  // Those of the process, which serve.cc adds.
  for (const char* const own : {"GET /", "GET /page/{file}", "GET /docs", "GET /docs/{file}",
                                "GET /metrics", "GET /healthz", "GET /readyz"}) {
    routes.insert(own);
  }
  EXPECT_EQ(rows, routes);
}

void FindReferences(const Json& json, std::set<std::string>* found) {
  if (json.is_object() && json.contains("$ref")) found->insert(json["$ref"].get<std::string>());
  for (const Json& each : json) {
    if (each.is_structured()) FindReferences(each, found);
  }
}

TEST_F(OpenapiTest, EveryReferenceIsThereAndEverySchemaIsUsed) {
  const Json document = Json::parse(OpenapiJson());
  std::set<std::string> references;
  FindReferences(document, &references);
  for (const std::string& reference : references) {
    EXPECT_TRUE(document.contains(Json::json_pointer(reference.substr(1)))) << reference;
  }
  for (const auto& [name, schema] : document["components"]["schemas"].items()) {
    // It stands as a value of an object whose keys are numbers.
    if (name == "PipelinePlan") continue;
    EXPECT_TRUE(references.contains("#/components/schemas/" + name)) << name;
  }
}

TEST_F(OpenapiTest, TheSettingsOfAJobAreTheFieldsOfJobFilesThatNameNoFile) {
  const Json schema = Json::parse(OpenapiJson())["components"]["schemas"]["JobSettings"];
  const Json& conditions = schema["properties"]["conditions"]["properties"];
  for (const job::Field& field : job::Fields()) {
    const std::string key(field.key);
    const Json& table = field.condition() ? conditions : schema["properties"];
    const bool is_file =
        key == "profile" || key == "schedule_file" || key == "work_fit" || key == "output";
    EXPECT_EQ(table.contains(key), !is_file) << key;
  }
  EXPECT_EQ(schema["properties"]["stages"]["minimum"], 1);
  EXPECT_TRUE(schema["properties"].contains("tensor_parallel"));
  EXPECT_TRUE(schema["properties"].contains("model"));
}

TEST_F(OpenapiTest, TheVersionIsTheProgramsVersion) {
  EXPECT_EQ(Json::parse(OpenapiJson())["info"]["version"], PERSEUS_VERSION_STRING);
}

TEST_F(OpenapiTest, QueriesThatDoNotFitTheirRowAreRefused) {
  const auto refusal = [](const wire::RouteRow& row, std::map<std::string, std::string> query) {
    http::Request request;
    request.query = std::move(query);
    const auto refused = wire::CheckQuery(row, request);
    EXPECT_EQ(refused ? refused->status : 422, 422);
    return refused ? *refused->body : "";
  };
  const wire::RouteRow& list = wire::RowOf("listJobs");
  EXPECT_EQ(refusal(list, {{"state", "running"}, {"limit", "10"}, {"name", "a b"}}), "");
  EXPECT_THAT(refusal(list, {{"status", "running"}}), Mentions("'status'", "client_key"));
  EXPECT_THAT(refusal(list, {{"state", "runing"}}), Mentions("'state'"));
  EXPECT_NE(refusal(list, {{"state", "running failed"}}), "");
  EXPECT_NE(refusal(list, {{"limit", "0"}}), "");
  EXPECT_NE(refusal(list, {{"limit", "1001"}}), "");
  EXPECT_NE(refusal(list, {{"limit", "1.5"}}), "");
  EXPECT_THAT(refusal(wire::RowOf("getJob"), {{"verbose", "1"}}), Mentions("parameters"));
  EXPECT_THAT(refusal(wire::RowOf("getPlan"), {}), Mentions("'rank'"));
  EXPECT_EQ(refusal(wire::RowOf("getPlan"), {{"rank", "0"}, {"after", "-1"}, {"wait", "1e3"}}), "");
  EXPECT_NE(refusal(wire::RowOf("getPlan"), {{"rank", "0"}, {"wait", "-1"}}), "");
}

}  // namespace
}  // namespace perseus::server
