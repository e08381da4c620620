// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_TESTS_MISUSE_MISUSE_TESTING_H_
#define PERSEUS_TESTS_MISUSE_MISUSE_TESTING_H_

#include <limits>
#include <string>
#include <utility>

#include "perseus/job.h"
#include "perseus/planner.h"
#include "perseus/policy.h"
#include "perseus/profile.h"
#include "perseus/result.h"

namespace perseus::misuse {

inline constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
inline constexpr double kInfinite = std::numeric_limits<double>::infinity();

// Two stages, three clocks; `scale` makes it another profile of the same shape.
inline Profile SmallProfile(double scale = 1) {
  ProfileBuilder builder("memory");
  for (int stage = 0; stage < 2; ++stage) {
    const double size = scale * (1 + 0.3 * stage);
    int step = 0;
    for (const double mhz : {1400, 1200, 1000}) {
      const double slower = 1 + 0.12 * step;
      const double less = 1 - 0.1 * step++;
      builder.Add(stage, ComputationType::kForward, mhz, 0.01 * size * slower, 4 * size * less);
      builder.Add(stage, ComputationType::kBackward, mhz, 0.02 * size * slower, 8 * size * less);
    }
  }
  return *builder.Build();
}

inline JobFile SmallSettings(int microbatches = 4) {
  JobFile settings;
  settings.schedule = "1f1b";
  settings.microbatches = microbatches;
  settings.blocking_power_watts = {70};
  settings.effort = 0.01;
  return settings;
}

inline Job SmallJob(double scale = 1, int microbatches = 4) {
  return *Job::Make(SmallProfile(scale), SmallSettings(microbatches));
}

// The field that an error blames; "" where there is no error.
template <typename T>
std::string FieldOf(const Result<T>& result) {
  if (result) return "";
  return result.error().field.empty() ? result.error().message : result.error().field;
}

template <typename T>
bool IsInvalid(const Result<T>& result) {
  return !result && result.error().code == ErrorCode::kInvalidInput &&
         !result.error().message.empty();
}

}  // namespace perseus::misuse

#endif  // PERSEUS_TESTS_MISUSE_MISUSE_TESTING_H_
