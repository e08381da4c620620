// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "metrics/families.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "perseus/version.h"

namespace perseus::metrics {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(FamiliesTest, ValuesAreWrittenWithTheirTypesAndLabels) {
  prometheus::MetricFamily ranks = Gauge("ranks", "Ranks.");
  AddValue(&ranks, 3, {{"job_id", "say \"a\\b\"\n"}});
  const std::string text = Text(
      {ranks, Counter("calls_total", "Calls.", 7), BuildInfo("build_info", {{"driver", "nvml"}})});
  EXPECT_THAT(text, HasSubstr("# HELP ranks Ranks.\n# TYPE ranks gauge\n"
                              "ranks{job_id=\"say \\\"a\\\\b\\\"\\n\"} 3\n"));
  EXPECT_THAT(text, HasSubstr("# TYPE calls_total counter\ncalls_total 7\n"));
  EXPECT_THAT(text, HasSubstr(std::string("build_info{version=\"") + PERSEUS_VERSION_STRING +
                              "\",driver=\"nvml\"} 1\n"));
}

TEST(FamiliesTest, AFamilyWithoutValuesIsLeftOut) {
  EXPECT_THAT(Text({Gauge("nothing", "Nothing."), Gauge("one", "One.", 1)}),
              Not(HasSubstr("nothing")));
}

}  // namespace
}  // namespace perseus::metrics
