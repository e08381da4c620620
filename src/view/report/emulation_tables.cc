// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "report/emulation_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/text.h"

namespace perseus::report {
namespace {

std::string Share(double part, double whole) {
  return whole != 0 ? FixedText(100 * part / whole, 2) + "\u00a0%" : "\u2013";
}

}  // namespace

const PolicyRow* FindPolicy(const std::vector<PolicyRow>& rows, std::string_view policy) {
  const auto found = std::find_if(rows.begin(), rows.end(),
                                  [&](const PolicyRow& row) { return row.policy == policy; });
  return found == rows.end() ? nullptr : &*found;
}

Table PolicyTable(const EmulationReportInput& input) {
  double seconds = 0, joules = 0, watts = 0;
  for (const PolicyRow& row : input.policies) {
    seconds = std::max(seconds, row.time_seconds);
    joules = std::max(joules, row.energy.total_joules());
    watts = std::max(watts, row.peak_watts);
  }
  const DisplayUnit time = TimeUnit(seconds), energy = EnergyUnit(joules), power = PowerUnit(watts);
  Table table;
  table.caption =
      "The whole job, all iterations together, in the same scenario: noise, switching and "
      "stragglers alike.";
  table.columns = {"Policy",
                   fmt::format("Time ({})", time.name),
                   "Slowdown",
                   fmt::format("Energy ({})", energy.name),
                   "Saving",
                   "Useful",
                   "Intrinsic",
                   "Extrinsic",
                   "Blocking",
                   fmt::format("Mean power ({})", power.name),
                   fmt::format("Peak ({})", power.name)};
  for (const PolicyRow& row : input.policies) {
    const Cell name{row.policy};
    const std::string css = row.policy == input.label ? "chosen" : "";
    const double total = row.energy.total_joules();
    table.Add({name,
               {time.Number(row.time_seconds)},
               {ChangePercent(row.slowdown_percent, 2)},
               {energy.Number(total)},
               {SavingPercent(row.saving_percent, 2)},
               {Share(row.energy.useful_joules, total)},
               {Share(row.energy.intrinsic_bloat_joules, total)},
               {Share(row.energy.extrinsic_bloat_joules, total)},
               {Share(row.energy.blocking_joules, total)},
               {power.Number(row.average_watts)},
               {power.Number(row.peak_watts)}},
              css);
  }
  return table;
}

}  // namespace perseus::report
