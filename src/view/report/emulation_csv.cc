// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include <iterator>

#include "perseus/emulation_report.h"

namespace perseus {
inline namespace v0 {

// fmt writes the shortest digits that read back as the same number.

std::string FormatIterationsCsv(const Emulation& emulation) {
  std::string csv =
      "iteration,start_s,time_s,target_s,straggling_pipelines,useful_j,intrinsic_bloat_j,"
      "extrinsic_bloat_j,blocking_j\n";
  for (std::size_t i = 0; i < emulation.iterations.size(); ++i) {
    const IterationRecord& record = emulation.iterations[i];
    fmt::format_to(std::back_inserter(csv), "{},{},{},{},{},{},{},{},{}\n", i, record.start_seconds,
                   record.time_seconds, record.target_seconds, record.straggling_pipelines,
                   record.energy.useful_joules, record.energy.intrinsic_bloat_joules,
                   record.energy.extrinsic_bloat_joules, record.energy.blocking_joules);
  }
  return csv;
}

std::string FormatPowerCsv(const Emulation& emulation) {
  std::string csv = "start_s,power_w\n";
  for (std::size_t i = 0; i < emulation.power.watts.size(); ++i) {
    fmt::format_to(std::back_inserter(csv), "{},{}\n",
                   static_cast<double>(i) * emulation.power.interval_seconds,
                   emulation.power.watts[i]);
  }
  return csv;
}

}  // namespace v0
}  // namespace perseus
