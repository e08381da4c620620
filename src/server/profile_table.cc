// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "server/profile_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

namespace perseus::server {
namespace {

// Precondition: not empty.
double Median(std::vector<double> values) {
  const std::size_t middle = values.size() / 2;
  std::sort(values.begin(), values.end());
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

// The standard deviation that the median absolute deviation stands for.
double Spread(const std::vector<double>& values, double median) {
  constexpr double kOfNormal = 1.4826;
  std::vector<double> distances;
  distances.reserve(values.size());
  for (const double value : values) distances.push_back(std::abs(value - median));
  return kOfNormal * Median(std::move(distances));
}

}  // namespace

void ProfileTable::Add(const store::Measurements& measured, int pp_rank) {
  for (const store::MeasuredRow& row : measured.rows) {
    Cell& cell = cells_[{row.stage, row.type, row.clock_mhz}];
    cell.times.push_back(row.time_seconds);
    cell.energies.push_back(row.energy_joules);
  }
  if (measured.blocking_power_watts) {
    blocking_power_[pp_rank].push_back(*measured.blocking_power_watts);
  }
  if (measured.done) {
    done_.insert(measured.rank);
    pp_ranks_done_.insert(pp_rank);
  }
}

bool ProfileTable::IsComplete(const Shape& shape, double seconds_since_last) const {
  if (static_cast<std::int64_t>(done_.size()) >= shape.world_size()) return true;
  return static_cast<int>(pp_ranks_done_.size()) >= shape.pipeline_parallel &&
         seconds_since_last >= kProfileGraceSeconds;
}

std::string ProfileTable::Csv() const {
  fmt::memory_buffer text;
  fmt::format_to(fmt::appender(text), "stage,instruction,frequency,time,energy,time_std\n");
  for (const auto& [key, cell] : cells_) {
    const double time = Median(cell.times);
    fmt::format_to(fmt::appender(text), "{},{},{},{},{},{}\n", key.stage,
                   ComputationTypeName(key.type), key.clock_mhz, time, Median(cell.energies),
                   Spread(cell.times, time));
  }
  return fmt::to_string(text);
}

std::vector<double> ProfileTable::BlockingPowerWatts(int pipeline_parallel) const {
  if (blocking_power_.empty()) return {};
  std::vector<double> all;
  for (const auto& [pp_rank, powers] : blocking_power_) all.push_back(Median(powers));
  std::vector<double> watts(static_cast<std::size_t>(pipeline_parallel), Median(all));
  for (const auto& [pp_rank, powers] : blocking_power_) {
    if (pp_rank < pipeline_parallel) watts[static_cast<std::size_t>(pp_rank)] = Median(powers);
  }
  return watts;
}

}  // namespace perseus::server
