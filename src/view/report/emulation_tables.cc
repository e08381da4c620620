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

std::string Number(double value, int decimals) {
  return fmt::format("{}{:.{}f}", value < 0 ? "\u2212" : "", std::abs(value), decimals);
}

const PartitionResult* FindPartition(const std::vector<PartitionResult>& partitions,
                                     std::string_view name) {
  const auto found = std::find_if(
      partitions.begin(), partitions.end(),
      [&](const PartitionResult& each) { return each.why_not.empty() && each.name == name; });
  return found == partitions.end() ? nullptr : &*found;
}

}  // namespace

const PolicyRow* FindPolicy(const std::vector<PolicyRow>& rows, std::string_view policy) {
  const auto found = std::find_if(rows.begin(), rows.end(), [&](const PolicyRow& row) {
    return row.why_not.empty() && row.policy == policy;
  });
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
    const Cell name{row.policy, "", row.summary};
    const std::string css = row.policy == input.label ? "chosen" : "";
    if (!row.why_not.empty()) {
      table.Add({name, {row.why_not}}, css);
      continue;
    }
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

std::string WorthOfPerComputation(const std::vector<PolicyRow>& rows) {
  const PolicyRow* fine = FindPolicy(rows, "perseus");
  const PolicyRow* coarse = FindPolicy(rows, "perseus (stage)");
  if (fine == nullptr || coarse == nullptr) return "";
  const double joules = coarse->energy.total_joules() - fine->energy.total_joules();
  const double points = fine->saving_percent - coarse->saving_percent;
  return fmt::format(
      "A clock for every computation saves {:.2f}\u00a0%, one clock for every rank {:.2f}\u00a0%: "
      "setting clocks per computation is worth {}{:.2f} percentage points here, {}{} over this "
      "run.",
      fine->saving_percent, coarse->saving_percent, points < 0 ? "\u2212" : "", std::abs(points),
      joules < 0 ? "\u2212" : "", EnergyUnit(joules).Text(std::abs(joules)));
}

Table PartitionTable(const std::vector<PartitionResult>& partitions) {
  double seconds = 0, joules = 0;
  for (const PartitionResult& each : partitions) {
    seconds = std::max(seconds, each.baseline_seconds);
    joules = std::max(joules, each.baseline_joules);
  }
  const DisplayUnit time = TimeUnit(seconds), energy = EnergyUnit(joules);
  Table table;
  table.caption =
      "One pipeline, one iteration. Imbalance is the slowest stage over the mean; each plan is "
      "compared with its own partition at maximum clocks.";
  table.columns = {"Partition",
                   "Imbalance",
                   fmt::format("Time, maximum clocks ({})", time.name),
                   fmt::format("Energy, maximum clocks ({})", energy.name),
                   fmt::format("Time, plan ({})", time.name),
                   fmt::format("Energy, plan ({})", energy.name),
                   "Saving"};
  for (const PartitionResult& each : partitions) {
    const Cell name{
        each.name, "",
        each.layers.empty()
            ? ""
            : fmt::format("layers {}", fmt::join(each.layers.begin(), each.layers.end(), ", "))};
    if (!each.why_not.empty()) {
      table.Add({name, {each.why_not}});
      continue;
    }
    table.Add({name,
               {fmt::format("{:.3f}", each.imbalance)},
               {time.Number(each.baseline_seconds)},
               {energy.Number(each.baseline_joules)},
               {time.Number(each.iteration_time_seconds)},
               {energy.Number(each.energy_joules)},
               {SavingPercent(each.saving_percent, 2)}});
  }
  return table;
}

std::string CostOfImbalance(const std::vector<PartitionResult>& partitions) {
  const PartitionResult* measured = FindPartition(partitions, "as measured");
  if (measured == nullptr || !(measured->baseline_joules > 0)) return "";
  std::string text;
  const auto against = [&](const PartitionResult* other, std::string_view what) {
    if (other == nullptr) return;
    if (!text.empty()) text += " ";
    text += fmt::format(
        "{} would change time at maximum clocks by {} and energy by {}; with the plans of each, "
        "energy by {}, each at its own time.",
        what, ChangePercent(PercentOver(other->baseline_seconds, measured->baseline_seconds), 2),
        ChangePercent(PercentOver(other->baseline_joules, measured->baseline_joules), 2),
        ChangePercent(PercentOver(other->energy_joules, measured->energy_joules), 2));
  };
  against(FindPartition(partitions, "best partition"), "The best partition into whole layers");
  against(FindPartition(partitions, "perfectly even"), "Perfectly even stages");
  return text;
}

Table SweepTable(const std::vector<SweepRow>& sweep) {
  double seconds = 0, joules = 0, each_seconds = 0, each_joules = 0;
  for (const SweepRow& row : sweep) {
    seconds = std::max(seconds, row.baseline_seconds);
    joules = std::max(joules, row.baseline_joules);
    each_seconds = std::max(each_seconds, row.seconds_per_microbatch);
    each_joules = std::max(each_joules, row.joules_per_microbatch);
  }
  const DisplayUnit time = TimeUnit(seconds), energy = EnergyUnit(joules);
  const DisplayUnit each_time = TimeUnit(each_seconds), each_energy = EnergyUnit(each_joules);
  Table table;
  table.caption =
      "One pipeline, one iteration. Bubble: the share of the GPUs\u2019 time that they wait at "
      "maximum clocks.";
  table.columns = {"Schedule",
                   "Stages",
                   "Virtual stages",
                   "Microbatches",
                   fmt::format("Time, maximum clocks ({})", time.name),
                   "Bubble",
                   fmt::format("Energy, maximum clocks ({})", energy.name),
                   fmt::format("Time, plan ({})", time.name),
                   fmt::format("Energy, plan ({})", energy.name),
                   "Saving",
                   fmt::format("Time per microbatch ({})", each_time.name),
                   fmt::format("Energy per microbatch ({})", each_energy.name)};
  for (const SweepRow& row : sweep) {
    std::vector<Cell> cells = {{row.schedule.name},
                               {fmt::format("{}", row.schedule.num_stages)},
                               {fmt::format("{}", row.schedule.virtual_stages)},
                               {fmt::format("{}", row.schedule.num_microbatches)}};
    if (!row.why_not.empty()) {
      cells.push_back({row.why_not});
    } else {
      for (std::string text :
           {time.Number(row.baseline_seconds), fmt::format("{:.2f}\u00a0%", row.bubble_percent),
            energy.Number(row.baseline_joules), time.Number(row.iteration_time_seconds),
            energy.Number(row.energy_joules), SavingPercent(row.saving_percent, 2),
            each_time.Number(row.seconds_per_microbatch),
            each_energy.Number(row.joules_per_microbatch)}) {
        cells.push_back({std::move(text)});
      }
    }
    table.Add(std::move(cells));
  }
  return table;
}

Table RunCostTable(const EmulationReportInput& input) {
  Table table;
  const RunCost none;
  const RunCost& run = input.run ? *input.run : none;
  const RunCost& before = input.run_at_baseline ? *input.run_at_baseline : none;
  const bool price = run.price > 0 || before.price > 0;
  const bool carbon = run.carbon_kg > 0 || before.carbon_kg > 0;
  table.columns = {"The whole training run", "GPU hours", "Energy (MWh)"};
  if (price) {
    table.columns.push_back(input.currency.empty() ? "Price" : "Price, " + input.currency);
  }
  if (carbon) table.columns.emplace_back("kg CO\u2082");
  const auto add = [&](std::string name, const RunCost& cost, std::string css) {
    std::vector<Cell> cells = {
        {std::move(name)}, {Number(cost.gpu_hours, 1)}, {Number(cost.mwh, 3)}};
    if (price) cells.push_back({Number(cost.price, 2)});
    if (carbon) cells.push_back({Number(cost.carbon_kg, 1)});
    table.Add(std::move(cells), std::move(css));
  };
  if (input.run_at_baseline) add("maximum clocks", before, "baseline");
  if (input.run) add(input.label.empty() ? "this policy" : input.label, run, "");
  if (input.run && input.run_at_baseline) {
    add("saving",
        {before.gpu_hours - run.gpu_hours, before.mwh - run.mwh, before.price - run.price,
         before.carbon_kg - run.carbon_kg},
        "total");
  }
  return table;
}

}  // namespace perseus::report
