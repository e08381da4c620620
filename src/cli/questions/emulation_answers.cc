// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/questions/emulation_answers.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/framework/table.h"
#include "cli/planning/summary.h"
#include "common/printable.h"
#include "report/text.h"

namespace perseus::cli {
namespace {

std::string Heading(std::string_view text, const Style& style) {
  return "\n" + style.Bold(text) + "\n";
}

// What a plan does to the job, apart from the scenario.
std::string PlanInWords(const EmulationSummary& summary, const PlanAnswer& answer) {
  const Plan& plan = answer.plan;
  const Plan& today = *summary.baseline_plan;
  const std::string wait =
      answer.wait_seconds == 0
          ? ""
          : fmt::format(" (its GPUs wait {} at the end)", FormatSeconds(answer.wait_seconds));
  return fmt::format("{} an iteration{}, {}; {} for the job; saving {}",
                     FormatSeconds(plan.iteration_time_seconds), wait,
                     FormatSignedPercent(
                         PercentOver(plan.iteration_time_seconds, today.iteration_time_seconds), 2),
                     FormatWatts(plan.average_power_watts * summary.spec.pipelines),
                     FormatPercent(plan.saving_percent, 2));
}

}  // namespace

std::string PowerBudgetSentence(const EmulationSummary& summary) {
  const PowerBudgetAnswer& answer = *summary.power_budget;
  return fmt::format("the fastest plan within {} for the job takes {}.",
                     FormatWatts(answer.budget_watts), PlanInWords(summary, answer.answer));
}

std::string DeadlineSentence(const EmulationSummary& summary) {
  const DeadlineAnswer& answer = *summary.deadline;
  const double run_seconds =
      answer.answer.plan.iteration_time_seconds * static_cast<double>(answer.iterations);
  return fmt::format("the cheapest plan that ends {} within {} takes {}; the run takes {}.",
                     CountOf(answer.iterations, "iteration"), SpanOfTime(answer.deadline_seconds),
                     PlanInWords(summary, answer.answer), SpanOfTime(run_seconds));
}

std::string PriceOfChangesSentence(const EmulationSummary& summary) {
  const auto called = [](const Emulation& emulation) {
    return CalledRun{static_cast<double>(emulation.clock_calls), emulation.energy.total_joules()};
  };
  return PriceOfChangesText(summary.change_joules, summary.change_price_name,
                            called(*summary.baseline), called(*summary.emulation), "");
}

namespace {

std::string PlanCommand(const EmulationSummary& summary, const PlanAnswer& answer) {
  return fmt::format("{} --at {}s", summary.plan_command, answer.planned_seconds());
}

std::string RunTable(const EmulationSummary& summary, const Style& style) {
  const bool has_price = summary.run.price_per_kwh.has_value();
  const bool has_carbon = summary.run.carbon_g_per_kwh.has_value();
  std::vector<std::string> header = {"the run", "GPU hours", "MWh"};
  if (has_price) header.push_back(summary.currency.empty() ? "price" : summary.currency);
  if (has_carbon) header.emplace_back("kg CO2");
  Table table(header, {Align::kLeft});
  const auto add = [&](const std::string& name, const RunCost& cost) {
    std::vector<std::string> cells = {name, WithThousands(cost.gpu_hours, 0),
                                      WithThousands(cost.mwh, 3)};
    if (has_price) cells.push_back(WithThousands(cost.price, 2));
    if (has_carbon) cells.push_back(WithThousands(cost.carbon_kg, 1));
    table.AddRow(std::move(cells));
  };
  const RunCost& before = *summary.run_at_baseline;
  const RunCost& after = *summary.run_cost;
  add("max-clocks", before);
  add(summary.label, after);
  add("saving", {before.gpu_hours - after.gpu_hours, before.mwh - after.mwh,
                 before.price - after.price, before.carbon_kg - after.carbon_kg});
  const std::string kwh = report::KwhText(summary.run, summary.currency, "CO2");
  return table.Format(style.rule()) +
         (kwh.empty() ? "" : "\n" + Wrap(Printable(kwh), style.columns, 0) + "\n");
}

std::string PartitionTable(const EmulationSummary& summary, const Style& style) {
  Table table(
      {"partition", "slowest/mean stage", "max clocks s", "J", "plan s", "J", "saving", "layers"},
      {Align::kLeft, Align::kRight, Align::kRight, Align::kRight, Align::kRight, Align::kRight,
       Align::kRight, Align::kLeft});
  std::string refused;
  for (const PartitionResult& each : summary.partitions) {
    if (!each.why_not.empty()) {
      table.AddRow({each.name, "none"});
      refused += Wrap(fmt::format("{}: {}", each.name, each.why_not), style.columns, 2) + "\n";
      continue;
    }
    table.AddRow({each.name, WithThousands(each.imbalance, 4),
                  WithThousands(each.baseline_seconds, 4), WithThousands(each.baseline_joules, 1),
                  WithThousands(each.iteration_time_seconds, 4),
                  WithThousands(each.energy_joules, 1), FormatPercent(each.saving_percent, 2),
                  fmt::format("{}", fmt::join(each.layers, ","))});
  }
  return table.Format(style.rule()) + "\n" +
         Wrap(
             "One iteration of one pipeline: at maximum clocks, and with the plan of the same "
             "time. "
             "Saving is against maximum clocks of the same partition.",
             style.columns, 0) +
         "\n" + refused;
}

std::string AssignmentTable(const EmulationSummary& summary, const Style& style) {
  Table table({"order", "max clocks s", "change", "J", "change", "plans J", "change",
               "in the given time J", "change"},
              {Align::kLeft});
  const AssignmentResult& given = summary.assignments.front();
  const auto change = [](double now, double before) {
    return FormatSignedPercent(PercentOver(now, before), 2);
  };
  for (const AssignmentResult& each : summary.assignments) {
    table.AddRow(
        {each.name, WithThousands(each.baseline_seconds, 4),
         change(each.baseline_seconds, given.baseline_seconds),
         WithThousands(each.baseline_joules, 1),
         change(each.baseline_joules, given.baseline_joules), WithThousands(each.planned_joules, 1),
         change(each.planned_joules, given.planned_joules), WithThousands(each.late_joules, 1),
         change(each.late_joules, given.planned_joules)});
  }
  return table.Format(style.rule()) + "\n" +
         Wrap(fmt::format(
                  "One iteration of {} without noise; it ends when the slowest pipeline ends. "
                  "Plans are made for the lengths. Searched: the best order above, made "
                  "better by swaps.",
                  CountOf(summary.assigned_pipelines, "pipeline")),
              style.columns, 0) +
         "\n";
}

using Names = std::vector<std::string>;

std::string SweepTable(const EmulationSummary& summary, const Style& style) {
  Table table({"schedule", "stages", "virtual", "microbatches", "bubble", "max clocks s", "plan s",
               "plan J", "J/microbatch", "saving"},
              {Align::kLeft});
  // Shapes that cannot be, by the reason, in order of the first.
  std::vector<std::pair<std::string, std::vector<std::string>>> refusals;
  for (const SweepRow& row : summary.sweep) {
    if (!row.why_not.empty()) {
      const auto same = std::find_if(refusals.begin(), refusals.end(),
                                     [&](const auto& each) { return each.first == row.why_not; });
      auto& shapes = same == refusals.end() ? refusals.emplace_back(row.why_not, Names()).second
                                            : same->second;
      shapes.push_back(fmt::format(
          "{}, {}, {} virtual, {}", row.schedule.name, CountOf(row.schedule.num_stages, "stage"),
          row.schedule.virtual_stages, CountOf(row.schedule.num_microbatches, "microbatch")));
      continue;
    }
    std::vector<std::string> cells = {row.schedule.name, fmt::format("{}", row.schedule.num_stages),
                                      fmt::format("{}", row.schedule.virtual_stages),
                                      fmt::format("{}", row.schedule.num_microbatches)};
    cells.insert(
        cells.end(),
        {FormatPercent(row.bubble_percent, 2), WithThousands(row.baseline_seconds, 4),
         WithThousands(row.iteration_time_seconds, 4), WithThousands(row.energy_joules, 1),
         WithThousands(row.joules_per_microbatch, 2), FormatPercent(row.saving_percent, 2)});
    table.AddRow(std::move(cells));
  }
  std::string refused;
  for (const auto& [reason, shapes] : refusals) {
    refused += Wrap(fmt::format("No plan for {} ({}): {}",
                                CountOf(static_cast<long long>(shapes.size()), "shape"),
                                fmt::join(shapes, "; "), reason),
                    style.columns, 2) +
               "\n";
  }
  return table.Format(style.rule()) + "\n" +
         Wrap(
             "One iteration of one pipeline. The plan takes no longer than maximum clocks. Bubble: "
             "share of the time that GPUs wait at maximum clocks.",
             style.columns, 0) +
         "\n" + refused;
}

}  // namespace

std::string FormatAnswers(const EmulationSummary& summary, const Style& style) {
  Style uncut = style;
  uncut.columns = std::numeric_limits<int>::max();
  std::string out;
  if (summary.run_cost) {
    out += Heading("The whole training run", style) + RunTable(summary, style);
  }
  if (!summary.partitions.empty()) {
    out += Heading("Imbalance", style) + PartitionTable(summary, style);
  }
  if (!summary.assignments.empty()) {
    out += Heading("Assignment of microbatches", style) + AssignmentTable(summary, style);
  }
  if (!summary.sweep.empty()) out += Heading("Other shapes", style) + SweepTable(summary, style);
  if (summary.power_budget || summary.deadline) out += '\n';
  // Commands are not wrapped: they are there to be copied.
  if (summary.power_budget) {
    out += Fact("Power", PowerBudgetSentence(summary), style);
    out += Fact("", PlanCommand(summary, summary.power_budget->answer), uncut);
  }
  if (summary.deadline) {
    out += Fact("Deadline", DeadlineSentence(summary), style);
    out += Fact("", PlanCommand(summary, summary.deadline->answer), uncut);
  }
  if (summary.power_budget || summary.deadline) {
    out += Fact("", "At the profile's times: without noise, late clocks and stragglers.", style);
  }
  return out;
}

}  // namespace perseus::cli
