// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <string>

#include "metrics/families.h"

namespace perseus::metrics {
namespace {

// -1: it is not there.
double ValueOf(const std::string& name) {
  const Families families = ProcessFamilies();
  const auto found = std::find_if(families.begin(), families.end(),
                                  [&](const auto& family) { return family.name == name; });
  return found == families.end() ? -1 : found->metric.front().gauge.value;
}

TEST(ProcessTest, AllFiguresAreThere) {
  for (const char* const name :
       {"process_virtual_memory_bytes", "process_resident_memory_bytes", "process_open_fds",
        "process_max_fds", "process_start_time_seconds"}) {
    EXPECT_GT(ValueOf(name), 0) << name;
  }
  EXPECT_GE(ValueOf("process_cpu_seconds_total"), 0);
  EXPECT_LT(ValueOf("process_resident_memory_bytes"), ValueOf("process_virtual_memory_bytes"));
}

TEST(ProcessTest, ItBeganAMomentAgo) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const double age =
      std::chrono::duration<double>(now).count() - ValueOf("process_start_time_seconds");
  EXPECT_GT(age, -2);  // The machine's start is known to a second.
  EXPECT_LT(age, 3600);
}

TEST(ProcessTest, OpenFilesAreCounted) {
  const double before = ValueOf("process_open_fds");
  std::array<int, 5> files{};
  for (int& file : files) file = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  EXPECT_EQ(ValueOf("process_open_fds"), before + 5);
  for (const int file : files) ::close(file);
  EXPECT_EQ(ValueOf("process_open_fds"), before);
}

}  // namespace
}  // namespace perseus::metrics
