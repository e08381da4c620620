// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "robust/bounds/saving_bound.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <vector>

#include "robust/bounds/dual_bound.h"
#include "robust/bounds/price_path.h"
#include "robust/knobs.h"
#include "robust/replay/lane_replay.h"
#include "robust/replay/samples.h"

namespace perseus::robust {
namespace {

constexpr std::uint64_t kBoundSeed = 0xB0BD;  // No search sees these draws.

// Calls begin when computations start, and each outlasts a call at any clock.
bool PairsAreExact(const CostedPipeline& pipeline, const Conditions& conditions) {
  const ClockSwitching& switching = conditions.switching;
  if (conditions.noise.any() || switching.call_ahead != CallAhead::kNone ||
      !(switching.latency_seconds > 0) || !switching.latency_at.empty() ||
      switching.latency_spread_seconds > 0 || switching.stall_seconds > 0 ||
      switching.min_interval_seconds > 0) {
    return false;
  }
  return std::all_of(pipeline.tables.begin(), pipeline.tables.end(), [&](const CostTable& table) {
    return table.all_options.size() == pipeline.knobs.size() &&
           std::all_of(table.all_options.begin(), table.all_options.end(),
                       [&](const CostOption& option) {
                         return option.time_seconds > switching.latency_seconds;
                       });
  });
}

// No plan whose iteration takes from `shortest` to `accepted` has less energy, waiting included.
// With a second at a dual's price p, worked out for iterations of w seconds, no plan of t seconds
// has less effective energy than effective_joules + p (w - t); a second costs the blocking power
// besides. So each dual is a line below the energies, and the least of all is where the highest
// line is lowest: at an end, or where two lines meet.
class EnergyLines {
 public:
  EnergyLines(double watts, double shortest, double accepted)
      : watts_(watts), ends_{std::min(shortest, accepted), accepted} {}

  void Add(const DualBound& dual, double within) {
    lines_.push_back({dual.effective_joules + dual.price_of_time * within,  //
                      watts_ - dual.price_of_time});
  }

  double LeastJoules() const {
    double least = std::min(At(ends_.front()), At(ends_.back()));
    for (const Line& a : lines_) {
      for (const Line& b : lines_) {
        const double seconds = (b.joules - a.joules) / (a.watts - b.watts);
        if (a.watts > b.watts && seconds > ends_.front() && seconds < ends_.back())
          least = std::min(least, At(seconds));
      }
    }
    return least;
  }

 private:
  struct Line {
    double joules = 0;  // At no time.
    double watts = 0;
  };

  double At(double seconds) const {
    double most = -std::numeric_limits<double>::infinity();
    for (const Line& line : lines_) most = std::max(most, line.joules + line.watts * seconds);
    return most;
  }

  double watts_;
  std::array<double, 2> ends_;
  std::vector<Line> lines_;
};

std::vector<int> FastestKnobs(const CostedPipeline& pipeline) {
  std::vector<int> knobs;
  for (int i = 0; i < pipeline.dag.size(); ++i) {
    const std::vector<CostOption>& options = pipeline.TableOf(i).all_options;
    knobs.push_back(std::min_element(options.begin(), options.end(),
                                     [](const CostOption& a, const CostOption& b) {
                                       return a.time_seconds < b.time_seconds;
                                     })
                        ->knob);
  }
  return knobs;
}

}  // namespace

RobustBound SavingBound(const Planner& planner, const RobustPlanSpec& spec, double slower_percent,
                        const ReplayedFigures& baseline) {
  constexpr int kRounds = 400;
  constexpr int kLanes = 128;
  constexpr int kMostCells = 1 << 20;
  const CostedPipeline& pipeline = planner.pipeline();
  const int lanes = std::clamp(kMostCells / pipeline.dag.size(), 16, kLanes);
  const Samples samples =
      DrawSamples(pipeline, spec.conditions.noise, spec.pipelines, lanes, kBoundSeed);
  LaneReplay replay(pipeline, {}, samples);
  replay.Reset(KnobsOf(planner.baseline().options));
  const double watts = pipeline.total_blocking_power_watts;
  // The baseline in the lanes, with the same draws; where its own clocks change (kinds whose
  // highest clocks differ), and without noise, as it is replayed.
  const bool as_replayed = !spec.conditions.noise.any() || pipeline.waiting_depends_on_clock() ||
                           CountChanges(pipeline.dag, KnobsOf(planner.baseline().options)) > 0;
  const double base_seconds =
      as_replayed ? baseline.iteration_time_seconds : replay.figures().seconds;
  const double base_joules = as_replayed ? baseline.energy_joules
                                         : replay.figures().effective_joules + watts * base_seconds;
  const double accepted = base_seconds * (1 + slower_percent / 100);
  const Frontier& frontier = planner.lower_bound();
  const double fastest = frontier.fastest_seconds;
  const auto saving = [&](double joules) { return 100 * (1 - joules / base_joules); };
  RobustBound bound;
  bound.proven = !spec.conditions.noise.any();
  if (bound.proven) {
    // The frontier is exact; work at a mixture of clocks is on its hulls.
    const double most = std::max(fastest, frontier.economic_seconds);
    bound.saving_without_switching_percent =
        saving(frontier.EnergyAt(std::clamp(accepted, fastest, most)));
  } else {
    // With noise an iteration may be shorter than the fastest without, but in the same draws none
    // is shorter than with every computation at its fastest.
    replay.Reset(FastestKnobs(pipeline));
    const double shortest = std::min(replay.figures().seconds, accepted);
    EnergyLines lines(watts, shortest, accepted);
    const auto add = [&](double within) {
      lines.Add(BoundByPrices(pipeline, samples, within, 0, kRounds), within);
    };
    add(accepted);
    // A target beyond the time of least energy says little of plans that end there: prices of
    // times about it do.
    const double economic =
        base_seconds * frontier.economic_seconds / planner.baseline().iteration_time_seconds;
    if (accepted > economic) {
      add(std::max(shortest, 0.99 * economic));
      add(std::min(accepted, 1.01 * economic));
    }
    bound.saving_without_switching_percent = saving(lines.LeastJoules());
  }
  bound.saving_percent = bound.saving_without_switching_percent;
  if (PairsAreExact(pipeline, spec.conditions)) {
    const DualBound dual = BoundByPrices(pipeline, samples, accepted,
                                         spec.conditions.switching.latency_seconds, kRounds);
    EnergyLines lines(watts, fastest, accepted);
    lines.Add(dual, accepted);
    bound.saving_percent = std::min(bound.saving_percent, saving(lines.LeastJoules()));
  }
  return bound;
}

}  // namespace perseus::robust
