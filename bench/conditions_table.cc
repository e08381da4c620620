// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// What the plan that holds under conditions saves, beside the best that the flags
// without conditions reach: one row of the table in docs/evidence/planning.md for each latency
// and noise on four measured pipelines.
//
//   PERSEUS_SHARED_DATA=DATA build/release/bench/conditions_table FILE.csv [EFFORT [FILTER]]
//
// A row is appended to FILE.csv as soon as it is known, and rows that are there are not
// made again, so a run may be ended and begun anew. At the end the file is printed as
// Markdown. FILTER: only rows whose first four columns contain it ("bloom,96,").

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "measured_cases.h"
#include "perseus/conditions.h"
#include "perseus/plan.h"
#include "perseus/planner.h"
#include "perseus/robust_plan.h"

namespace perseus::bench {
namespace {

constexpr int kSeeds = 5;
constexpr std::uint64_t kFirstSeed = 1000;  // No search uses these.
constexpr int kIterations = 200;            // Of each seed.
constexpr int kAlike = 20;                  // Where nothing varies.
constexpr double kAccepted = 0.001;

constexpr const char* kColumns =
    "model,microbatches,latency_ms,noise_percent,effort,bound,saving,slowdown,calls,cpu_s,"
    "flags_saving,flags_slowdown,flags_calls,flags,flags_in_time,paper_saving,paper_slowdown";
constexpr std::size_t kKeys = 4;
// Places of columns in a row.
constexpr std::size_t kBound = 5;
constexpr std::size_t kSaving = 6;
constexpr std::size_t kSlowdown = 7;
constexpr std::size_t kCalls = 8;
constexpr std::size_t kFlagsSaving = 10;
constexpr std::size_t kFlagsSlowdown = 11;
constexpr std::size_t kFlagsCalls = 12;
constexpr std::size_t kFlags = 13;
constexpr std::size_t kNumColumns = 17;

constexpr std::array<double, 4> kNoisePercents = {0, 0.5, 1, 3};
constexpr std::array<double, 4> kLatenciesMs = {5, 15, 50, 200};
constexpr std::array<std::pair<const char*, int>, 4> kJobs = {
    {{"gpt3", 12}, {"bloom", 12}, {"gpt3", 96}, {"bloom", 96}}};

std::string KeyOf(const char* model, int microbatches, double latency_ms, double noise_percent) {
  return fmt::format("{},{},{},{},", model, microbatches, latency_ms, noise_percent);
}

struct Setting {
  std::string name;  // As flags of `perseus plan`.
  PlanConstraints constraints;
};

// What a patient user tries who knows no conditions. Each is replayed with clocks called
// for when computations start, and when the computation before has ended.
std::vector<Setting> Settings() {
  std::vector<Setting> all = {{"(none)", {}}};
  for (const double percent : {0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 10.0}) {
    all.push_back({fmt::format("--time-margin {}%", percent), {}});
    all.back().constraints.time_margin_fraction = percent / 100;
  }
  for (const double percent : {0.0, 1.0, 3.0}) {
    all.push_back({"--granularity phase", {}});
    if (percent > 0) all.back().name += fmt::format(" --time-margin {}%", percent);
    all.back().constraints.granularity = Granularity::kPhase;
    all.back().constraints.time_margin_fraction = percent / 100;
  }
  return all;
}

struct NamedPlan {
  std::string name;
  Plan plan;
};

std::vector<NamedPlan> PlansByFlags(const Planner& planner, double seconds) {
  std::vector<NamedPlan> plans;
  for (const Setting& setting : Settings()) {
    auto plan = planner.PlanFor(seconds, {.constraints = setting.constraints});
    if (plan) plans.push_back({setting.name, *std::move(plan)});
  }
  return plans;
}

// Means over `seeds` unseen seeds.
ReplayedFigures Unseen(const Planner& planner, const Plan& plan, const Conditions& conditions,
                       int seeds) {
  ReplayedFigures mean;
  const int iterations = conditions.noise.any() ? kIterations : kAlike;
  for (int seed = 0; seed < seeds; ++seed) {
    const auto figures = ReplayUnder(planner, plan,
                                     {.conditions = conditions,
                                      .iterations = iterations,
                                      .seed = kFirstSeed + static_cast<std::uint64_t>(seed)});
    if (!figures) {
      fmt::print(stderr, "{}\n", figures.error().message);
      std::exit(1);
    }
    mean.saving_percent += figures->saving_percent / seeds;
    mean.slowdown_percent += figures->slowdown_percent / seeds;
    mean.slowdown_error_percent += figures->slowdown_error_percent / seeds;
    mean.clock_calls += figures->clock_calls / seeds;
  }
  return mean;
}

struct BestByFlags {
  std::string flags = "(maximum clocks)";
  ReplayedFigures figures;  // Nothing saved, nothing lost, where no setting is in time.
  int in_time = 0;          // Settings that are.
};

BestByFlags BestOf(const Planner& planner, const std::vector<NamedPlan>& plans,
                   Conditions conditions) {
  BestByFlags best;
  const int seeds = conditions.noise.any() ? kSeeds : 1;
  for (const CallAhead when : {CallAhead::kNone, CallAhead::kEnd}) {
    conditions.switching.call_ahead = when;
    for (const NamedPlan& named : plans) {
      // One seed tells most plans that are late by far.
      const ReplayedFigures first = Unseen(planner, named.plan, conditions, 1);
      if (first.slowdown_percent > 100 * kAccepted + 5 * first.slowdown_error_percent) continue;
      const ReplayedFigures all =
          seeds == 1 ? first : Unseen(planner, named.plan, conditions, seeds);
      if (all.slowdown_percent > 100 * kAccepted) continue;
      ++best.in_time;
      if (all.saving_percent <= best.figures.saving_percent) continue;
      best.figures = all;
      best.flags = named.name + (when == CallAhead::kEnd ? " --call-ahead end" : "");
    }
  }
  return best;
}

// The rows of a file by the text of their first columns.
std::map<std::string, std::vector<std::string>> ReadRows(const std::string& path) {
  std::map<std::string, std::vector<std::string>> rows;
  std::ifstream file(path);
  std::string line;
  while (std::getline(file, line)) {
    std::vector<std::string> cells;
    std::istringstream text(line);
    for (std::string cell; std::getline(text, cell, ',');) cells.push_back(cell);
    if (cells.size() != kNumColumns || line.rfind("model,", 0) == 0) continue;
    std::string key;
    for (std::size_t k = 0; k < kKeys; ++k) key += cells[k] + ",";
    rows[key] = std::move(cells);
  }
  return rows;
}

std::optional<std::string> MakeRow(const Planner& planner, const std::vector<NamedPlan>& plans,
                                   double latency_ms, double noise_percent, double effort) {
  RobustPlanSpec spec;
  spec.conditions.switching.latency_seconds = latency_ms / 1e3;
  spec.conditions.switching.call_ahead = CallAhead::kPredicted;
  spec.conditions.noise.per_computation = noise_percent / 100;
  spec.conditions.max_slowdown = kAccepted;
  spec.effort = effort;
  const double seconds = planner.baseline().iteration_time_seconds;
  const std::clock_t begin = std::clock();
  const auto found = PlanUnder(planner, seconds, spec);
  const double cpu = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  if (!found) {
    fmt::print(stderr, "{}\n", found.error().message);
    return std::nullopt;
  }
  const int seeds = spec.conditions.noise.any() ? kSeeds : 1;
  const ReplayedFigures ours = Unseen(planner, found->plan, spec.conditions, seeds);
  const BestByFlags flags = BestOf(planner, plans, spec.conditions);
  return fmt::format(
      "{},{:.3f},{:.3f},{:.4f},{:.0f},{:.1f},{:.3f},{:.4f},{:.0f},{},{},{:.3f},{:.4f}", effort,
      found->bound.saving_percent, ours.saving_percent, ours.slowdown_percent, ours.clock_calls,
      cpu, flags.figures.saving_percent, flags.figures.slowdown_percent, flags.figures.clock_calls,
      flags.flags, flags.in_time, found->paper.saving_percent, found->paper.slowdown_percent);
}

// A table of one kind of cells: a row for each job and latency, a column for each noise.
template <typename Cell>
void PrintCells(const std::map<std::string, std::vector<std::string>>& rows, Cell&& cell) {
  fmt::print("| job, latency |");
  for (const double noise : kNoisePercents) fmt::print(" noise {} % |", noise);
  fmt::print("\n|---|---|---|---|---|\n");
  for (const auto& [model, microbatches] : kJobs) {
    for (const double latency : kLatenciesMs) {
      fmt::print("| {} 8 x {}, {} ms |", model == std::string("gpt3") ? "GPT-3" : "Bloom",
                 microbatches, latency);
      for (const double noise : kNoisePercents) {
        const auto row = rows.find(KeyOf(model, microbatches, latency, noise));
        fmt::print(" {} |", row == rows.end() ? "" : cell(row->second));
      }
      fmt::print("\n");
    }
  }
}

void PrintTables(const std::string& path) {
  const auto rows = ReadRows(path);
  using Cells = std::vector<std::string>;
  const auto number = [](const Cells& row, std::size_t k) {
    return std::strtod(row[k].c_str(), nullptr);
  };
  fmt::print("Saving in per cent: the plan that holds / best of the flags / bound.\n\n");
  PrintCells(rows, [&](const Cells& row) {
    const bool behind = number(row, kFlagsSaving) > number(row, kSaving);
    return fmt::format("{:.2f} / {}{:.2f}{} / {:.2f}", number(row, kSaving), behind ? "**" : "",
                       number(row, kFlagsSaving), behind ? "**" : "", number(row, kBound));
  });
  fmt::print("\nSlowdown in per cent and calls for a clock in an iteration: the same two.\n\n");
  PrintCells(rows, [&](const Cells& row) {
    const bool late = number(row, kSlowdown) > 100 * kAccepted;
    return fmt::format("{}{:+.3f}, {} / {:+.3f}, {}", late ? "LATE " : "", number(row, kSlowdown),
                       row[kCalls], number(row, kFlagsSlowdown), row[kFlagsCalls]);
  });
  std::map<std::string, int> won;
  for (const auto& [key, row] : rows) ++won[row[kFlags]];
  fmt::print("\nBest flags (rows):");
  for (const auto& [flags, times] : won) fmt::print(" `{}` ({})", flags, times);
  fmt::print("\n");
}

int Run(const std::vector<std::string>& arguments) {
  if (arguments.empty()) {
    fmt::print(stderr, "Usage: conditions_table FILE.csv [EFFORT [FILTER]]\n");
    return 2;
  }
  const std::string& path = arguments[0];
  const double effort = arguments.size() > 1 ? std::strtod(arguments[1].c_str(), nullptr) : 1;
  const std::string filter = arguments.size() > 2 ? arguments[2] : "";
  const auto rows = ReadRows(path);
  if (rows.empty()) std::ofstream(path, std::ios::app) << kColumns << "\n";
  for (const auto& [model, microbatches] : kJobs) {
    std::optional<Planner> planner;
    std::vector<NamedPlan> plans;
    for (const double noise : kNoisePercents) {
      for (const double latency : kLatenciesMs) {
        const std::string key = KeyOf(model, microbatches, latency, noise);
        if (key.find(filter) == std::string::npos || rows.count(key) > 0) continue;
        if (!planner) {
          auto made = MeasuredPlanner(model, microbatches);
          if (!made) {
            fmt::print(stderr, "{}\n", made.error().message);
            return 1;
          }
          planner.emplace(*std::move(made));
          plans = PlansByFlags(*planner, planner->baseline().iteration_time_seconds);
        }
        const auto row = MakeRow(*planner, plans, latency, noise, effort);
        if (!row) return 1;
        std::ofstream(path, std::ios::app) << key << *row << "\n";
      }
    }
  }
  PrintTables(path);
  return 0;
}

}  // namespace
}  // namespace perseus::bench

int main(int argc, char** argv) { return perseus::bench::Run({argv + 1, argv + argc}); }
