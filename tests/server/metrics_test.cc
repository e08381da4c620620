// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "server/ops/metrics.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>

#include "server/service_testing.h"

namespace perseus::server {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

using MetricsTest = ServiceTest;

http::AccessRecord Answered(std::string_view method, std::string_view pattern, int status) {
  http::AccessRecord record;
  record.method = method;
  record.pattern = pattern;
  record.status = status;
  return record;
}

TEST_F(MetricsTest, MethodsThatClientsMakeUpShareOneSeries) {
  Metrics metrics;
  metrics.Count(Answered("GET", "/api/v1/jobs", 200));
  for (int i = 0; i < 100; ++i) {
    metrics.Count(Answered(fmt::format("MADEUP{}", i), "", 404));
  }
  const std::string text =
      metrics.Text(*service_, http::Counters{}, {.max_connections = 7, .is_store_up = false});
  EXPECT_THAT(text, HasSubstr(R"({method="GET",route="/api/v1/jobs",status="2xx"} 1)"));
  EXPECT_THAT(text, HasSubstr(R"({method="other",route="none",status="4xx"} 100)"));
  EXPECT_THAT(text, Not(HasSubstr("MADEUP")));
  for (const char* const line :
       {"perseus_store_up 0\n", "perseus_jobs_limit 10000\n", "perseus_jobs_damaged 0\n",
        "perseus_http_connections_limit 7\n", "# TYPE process_cpu_seconds_total counter\n",
        "# TYPE process_resident_memory_bytes gauge\n", "perseus_http_body_bytes 0\n"}) {
    EXPECT_THAT(text, HasSubstr(line));
  }
}

TEST_F(MetricsTest, WhatRanksMeasuredIsOfAJobsId) {
  const std::shared_ptr<ManagedJob> job = Create();
  const Metrics metrics;
  const std::string before = metrics.Text(*service_, http::Counters{}, {});
  EXPECT_THAT(before,
              HasSubstr(fmt::format("perseus_job_info{{job_id=\"{}\",job_name=\"", job->id())));
  EXPECT_THAT(before, Not(HasSubstr("perseus_job_energy_joules_total{")));
  EXPECT_THAT(before, Not(HasSubstr("perseus_job_predicted_saved_joules_total{")));
  EXPECT_THAT(before, Not(HasSubstr("perseus_certificate")));
  EXPECT_THAT(metrics.Text(*service_, http::Counters{}, {.certificate_expires_at_seconds = 2e9}),
              HasSubstr("perseus_certificate_expiry_timestamp_seconds 2000000000\n"));
}

}  // namespace
}  // namespace perseus::server
