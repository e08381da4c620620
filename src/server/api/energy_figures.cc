// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "server/api/energy_figures.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace perseus::server {

void EnergyFigures::Add(const store::HistoryRow& row) {
  // All ranks report each iteration.
  iterations_ += static_cast<double>(row.reports) / std::max(row.ranks, 1);
  gpu_seconds_ += row.total_seconds;
  if (row.last_seconds > 0) covered_gpu_seconds_ += row.total_seconds;
  reports_ += row.reports;
  energy_reports_ += row.energy_reports;
  joules_ += row.joules;
  promised_joules_ += row.promised_joules;
  compared_joules_ += row.compared_joules;
  realised_joules_ += row.realised_joules;
}

void EnergyFigures::AddTime(double seconds, int ranks) { possible_gpu_seconds_ += seconds * ranks; }

nlohmann::ordered_json EnergyFigures::ToJson() const {
  using Json = nlohmann::ordered_json;
  const auto known = [](bool is_known, double value) { return is_known ? Json(value) : Json(); };
  const bool is_measured = energy_reports_ > 0;
  const double share =
      reports_ == 0 ? 0 : static_cast<double>(energy_reports_) / static_cast<double>(reports_);
  return {{"iterations", iterations_},
          {"gpu_hours", gpu_seconds_ / 3600},
          // Reports of a moment may be of iterations that took longer.
          {"covered_share", known(possible_gpu_seconds_ > 0,
                                  std::min(covered_gpu_seconds_ / possible_gpu_seconds_, 1.0))},
          {"measured_share", share},
          {"energy_j", known(is_measured, joules_)},
          {"promised_saved_j", known(is_measured, promised_joules_)},
          {"compared_energy_j", compared_joules_},
          {"realised_saved_j", known(compared_joules_ > 0, realised_joules_)}};
}

}  // namespace perseus::server
