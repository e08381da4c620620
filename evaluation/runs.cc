// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "evaluation/runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>
#include <utility>

#include "common/file.h"
#include "common/numbers.h"
#include "common/tree.h"
#include "common/tree_reader.h"
#include "evaluation/csv_table.h"

namespace perseus::sosp24 {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxRunBytes = std::size_t{256} << 20U;
constexpr int kWarmUpIterations = 2;
constexpr NumberRange kTimes = {.least = 0, .most = 1e12, .above_least = true};
constexpr NumberRange kEnergies = {.least = 0, .most = 1e12};
constexpr NumberRange kClocks = {.least = 0, .most = 1e6, .above_least = true};

Result<TreeNode> ReadJson(const std::string& path) {
  const Result<std::string> text = ReadWholeFile(path, kMaxRunBytes);
  if (!text) return tl::unexpected(text.error());
  return ParseJsonTree(*text, path);
}

std::string PlanFile(const fs::path& folder, int plan, std::string_view kind) {
  return (folder / fmt::format("{}.{}.json", plan, kind)).string();
}

// The sum over ranks may be taken in any order of the file's ranks.
struct RankSeries {
  std::vector<double> times;
  std::vector<double> energies;
};

RankSeries ReadRank(const TreeCursor& rank, std::size_t iterations) {
  RankSeries series;
  series.times = rank.Get("iter_time").Numbers(kTimes);
  series.energies = rank.Get("iter_energy").Numbers(kEnergies);
  const std::size_t expected = iterations == 0 ? series.times.size() : iterations;
  if (series.times.size() != expected || series.energies.size() != expected) {
    rank.Fail(fmt::format("expected {} iterations in iter_time and iter_energy, found {} and {}",
                          expected, series.times.size(), series.energies.size()));
  } else if (expected <= kWarmUpIterations) {
    rank.Fail(fmt::format("expected more than {} iterations, the first of which warm up, found {}",
                          kWarmUpIterations, expected));
  }
  return series;
}

// When a computation runs in the rigid steps in which the artifact's engine
// (DeepSpeed's 1F1B) lays out a pipeline: a stage has a forward in every second
// step and a backward in the others; where it has no microbatch it is idle.
int StepOf(const Computation& computation, int stage, int stages) {
  const int microbatch = computation.id.microbatch;
  return computation.id.type == ComputationType::kForward ? 2 * microbatch + stage
                                                          : 2 * microbatch + 2 * stages - 1 - stage;
}

}  // namespace

std::vector<int> ListPlans(const fs::path& folder, std::string_view kind) {
  const std::string suffix = fmt::format(".{}.json", kind);
  std::vector<int> plans;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (!name.ends_with(suffix)) continue;
    const auto plan = ParseInteger<int>(name.substr(0, name.size() - suffix.size()));
    if (plan && *plan >= 0) plans.push_back(*plan);
  }
  std::sort(plans.begin(), plans.end());
  plans.erase(std::unique(plans.begin(), plans.end()), plans.end());
  return plans;
}

Result<Sosp24Point> ReadMeasurement(const fs::path& folder, int plan) {
  const std::string path = PlanFile(folder, plan, "prof");
  const Result<TreeNode> tree = ReadJson(path);
  if (!tree) return tl::unexpected(tree.error());
  TreeReader reader(*tree, path);
  const TreeCursor root = reader.Root();
  std::vector<double> slowest;
  std::vector<double> total;
  for (std::size_t r = 0; r < root.Size() && !reader.failed(); ++r) {
    const RankSeries series = ReadRank(root.At(r), slowest.size());
    if (reader.failed()) break;
    slowest.resize(series.times.size(), 0);
    total.resize(series.times.size(), 0);
    for (std::size_t i = 0; i < slowest.size(); ++i) {
      slowest[i] = std::max(slowest[i], series.times[i]);
      total[i] += series.energies[i];
    }
  }
  if (!reader.failed() && slowest.empty()) root.Fail("expected at least one rank, found none");
  if (reader.failed()) return tl::unexpected(*reader.error());
  Sosp24Point mean;
  for (std::size_t i = kWarmUpIterations; i < slowest.size(); ++i) {
    mean.iteration_time_seconds += slowest[i];
    mean.energy_joules += total[i];
  }
  const auto count = static_cast<double>(slowest.size() - kWarmUpIterations);
  mean.iteration_time_seconds /= count;
  mean.energy_joules /= count;
  return mean;
}

Result<std::vector<Sosp24Point>> ReadSummary(const fs::path& file, int skip_below) {
  const auto table =
      CsvTable::Read(file.string(), {"plan_index", "iteration_time_s", "iteration_energy_J"});
  if (!table) return tl::unexpected(table.error());
  std::vector<std::pair<double, Sosp24Point>> numbered;
  for (int row = 0; row < table->rows(); ++row) {
    const Result<double> plan = table->Value(row, 0);
    if (!plan) return tl::unexpected(plan.error());
    const Result<double> time = table->Quantity(row, 1, Minimum::kAboveZero);
    if (!time) return tl::unexpected(time.error());
    const Result<double> energy = table->Quantity(row, 2, Minimum::kZero);
    if (!energy) return tl::unexpected(energy.error());
    if (*plan >= skip_below) numbered.push_back({*plan, {*time, *energy}});
  }
  std::stable_sort(numbered.begin(), numbered.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<Sosp24Point> points;
  points.reserve(numbered.size());
  for (const auto& [plan, point] : numbered) points.push_back(point);
  return points;
}

Result<RankClocks> ReadClocks(const fs::path& folder, int plan) {
  const std::string path = PlanFile(folder, plan, "sched");
  const Result<TreeNode> tree = ReadJson(path);
  if (!tree) return tl::unexpected(tree.error());
  TreeReader reader(*tree, path);
  const TreeCursor root = reader.Root();
  const std::size_t ranks = root.Size();
  RankClocks clocks(ranks);
  for (std::size_t i = 0; i < ranks && !reader.failed(); ++i) {
    const TreeCursor entry = root.At(i);
    const int rank = entry.Get("rank").Integer(0, static_cast<int>(ranks) - 1);
    std::vector<double> states = entry.Get("power_states").Numbers(kClocks);
    if (reader.failed()) break;
    if (!clocks[rank].empty()) {
      entry.Fail(fmt::format("expected each rank once, found rank {} again", rank));
      break;
    }
    clocks[rank] = std::move(states);
  }
  if (reader.failed()) return tl::unexpected(*reader.error());
  return clocks;
}

// Between two computations stand instructions for transfers, which the artifact
// counts, too. A transfer to and one from the same neighbour that meet in
// adjacent steps are one instruction; the first and the last stage load their
// microbatch before every forward; three instructions end the iteration
// (reductions and the optimizer step).
std::optional<std::vector<double>> ClocksOfComputations(const PipelineDag& dag, int stage,
                                                        std::span<const double> clocks) {
  constexpr std::size_t kEndInstructions = 3;
  const bool has_previous = stage > 0;
  const bool has_next = stage + 1 < dag.num_ranks;
  // With whom a computation exchanges: what it needs comes from one neighbour,
  // what it makes goes to the other.
  const auto receives = [&](bool forward) { return forward ? has_previous : has_next; };
  const auto sends = [&](bool forward) { return forward ? has_next : has_previous; };

  std::vector<double> chosen;
  std::size_t at = 0;  // The instruction that comes next.
  int last_step = -1;
  bool last_forward = false;
  for (const int index : dag.rank_order[stage]) {
    const Computation& computation = dag.computations[index];
    const bool forward = computation.id.type == ComputationType::kForward;
    const int step = StepOf(computation, stage, dag.num_ranks);
    const bool merged = !chosen.empty() && step == last_step + 1 && forward != last_forward;
    if (merged) {
      at += receives(forward) ? 1 : 0;
    } else {
      if (!chosen.empty()) at += sends(last_forward) ? 1 : 0;
      at += receives(forward) ? 1 : 0;
    }
    if (forward && (!has_previous || !has_next)) ++at;
    if (at >= clocks.size()) return std::nullopt;
    chosen.push_back(clocks[at]);
    ++at;
    last_step = step;
    last_forward = forward;
  }
  at += sends(last_forward) ? 1 : 0;
  if (at + kEndInstructions != clocks.size()) return std::nullopt;
  return chosen;
}

}  // namespace perseus::sosp24
