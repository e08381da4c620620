// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_TESTS_PIPELINE_SCHEDULE_TESTING_H_
#define PERSEUS_TESTS_PIPELINE_SCHEDULE_TESTING_H_

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "perseus/schedule.h"

namespace perseus {

// The schedules as they are named, with everything that may be asked of them.
inline std::vector<ScheduleSpec> AllShapes(int max_ranks, int max_microbatches,
                                           int max_virtual_stages) {
  std::vector<ScheduleSpec> specs;
  for (const std::string& name : ScheduleNames()) {
    const bool single = name == "gpipe" || name == "1f1b" || name.starts_with("early");
    const bool v_shape = name == "zbv-zero-bubble" || name == "dualpipev";
    for (int p = 1; p <= max_ranks; ++p) {
      for (int v = 1; v <= max_virtual_stages; ++v) {
        if ((single && v != 1) || (v_shape && v != 2)) continue;
        for (int m = 1; m <= max_microbatches; ++m) {
          if (name == "dualpipev" && m < 2 * p) continue;
          if (name.starts_with("interleaved") && m % std::max(1, m / p) != 0) continue;
          if (name != "megatron-interleaved") {
            specs.push_back({name, p * v, v, m, std::nullopt});
            continue;
          }
          for (int g = p; g <= m; ++g) {
            if (m % g == 0 || m % g >= p) specs.push_back({name, p * v, v, m, g});
          }
        }
      }
    }
  }
  return specs;
}

// "0F0,0B0" for rank 0 of FormatSchedule's text.
inline std::string RankText(const Schedule& schedule, int rank) {
  Schedule one;
  one.ranks = {schedule.ranks[rank]};
  const std::string text = FormatSchedule(one);
  return text.substr(0, text.find("\r\n"));
}

}  // namespace perseus

#endif  // PERSEUS_TESTS_PIPELINE_SCHEDULE_TESTING_H_
