// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "model/saving_interval.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <random>
#include <tuple>
#include <utility>

#include "common/word_hash.h"
#include "model/iteration_energy.h"
#include "perseus/pipeline.h"

namespace perseus::model {
namespace {

// The first word of a draw.
constexpr std::uint64_t kCommonSource = 1;
constexpr std::uint64_t kRankSource = 2;
constexpr std::uint64_t kOwnError = 3;

const OptionErrors* Find(const std::vector<OptionErrors>& all, int stage, ComputationType type,
                         int knob) {
  const auto found = std::lower_bound(
      all.begin(), all.end(), std::tuple(stage, type, knob),
      [](const OptionErrors& errors, const std::tuple<int, ComputationType, int>& key) {
        return std::tuple(errors.stage, errors.type, errors.knob) < key;
      });
  const bool is_it =
      found != all.end() && found->stage == stage && found->type == type && found->knob == knob;
  return is_it ? &*found : nullptr;
}

}  // namespace

// Halves of a backward that was measured whole have its errors, and the other way round; a
// recompute that was not measured has the forward's.
const OptionErrors* ErrorsOf(const std::vector<OptionErrors>& all, const CostTable& table,
                             int knob) {
  const OptionErrors* errors = Find(all, table.stage, table.type, knob);
  if (errors != nullptr || table.type == ComputationType::kForward) return errors;
  if (table.type == ComputationType::kRecompute) {
    return Find(all, table.stage, ComputationType::kForward, knob);
  }
  errors = Find(all, table.stage, ComputationType::kBackward, knob);
  return errors != nullptr ? errors : Find(all, table.stage, ComputationType::kBackwardInput, knob);
}

double OwnError(double std, const std::vector<double>& sources) {
  double variance = std * std;
  for (const double source : sources) variance -= source * source;
  return std::sqrt(std::max(0.0, variance));
}

double TimeErrorBesideBaseline(const CostedPipeline& pipeline, const CostTable& table, int knob) {
  if (knob == table.baseline.knob) return 0;
  const OptionErrors* const errors = ErrorsOf(pipeline.errors, table, knob);
  const OptionErrors* const base = ErrorsOf(pipeline.errors, table, table.baseline.knob);
  const OptionErrors none;
  const OptionErrors& own = errors == nullptr ? none : *errors;
  const OptionErrors& beside = base == nullptr ? none : *base;
  double variance = std::pow(OwnError(own.time_std, own.time_sources), 2) +
                    std::pow(OwnError(beside.time_std, beside.time_sources), 2);
  const auto at = [](const std::vector<double>& of, std::size_t k) {
    return k < of.size() ? of[k] : 0.0;
  };
  for (std::size_t k = 0; k < std::max(own.time_sources.size(), beside.time_sources.size()); ++k) {
    variance += std::pow(at(own.time_sources, k) - at(beside.time_sources, k), 2);
  }
  return std::sqrt(variance);
}

std::vector<double> DrawTrueTimes(const CostedPipeline& pipeline, std::uint64_t seed) {
  if (pipeline.errors.empty()) return {};
  const WordHash root(seed);
  std::vector<int> rank_of(pipeline.tables.size(), 0);
  for (int i = 0; i < pipeline.dag.size(); ++i) {
    rank_of[pipeline.table_of[i]] = pipeline.dag.computations[i].rank;
  }
  const auto time_of = [&](const CostTable& table, int rank, int knob) {
    const OptionErrors* const errors = ErrorsOf(pipeline.errors, table, knob);
    if (errors == nullptr) return 1.0;
    // Of all tables of the kind, whatever their work.
    const auto which = static_cast<std::uint64_t>(errors - pipeline.errors.data());
    double time = 1 + OwnError(errors->time_std, errors->time_sources) *
                          root.With(kOwnError).With(which).StandardDraw();
    for (std::size_t k = 0; k < errors->time_sources.size(); ++k) {
      const double own = root.With(kRankSource).With(rank).With(k).StandardDraw();
      const double common = root.With(kCommonSource).With(k).StandardDraw();
      time += errors->time_sources[k] *
              (std::sqrt(1 - kCommonErrorShare) * own + std::sqrt(kCommonErrorShare) * common);
    }
    return std::max(kLeastErrorShare, time);
  };
  const std::size_t knobs = pipeline.knobs.size();
  std::vector<double> times(pipeline.tables.size() * knobs, 1.0);
  for (std::size_t t = 0; t < pipeline.tables.size(); ++t) {
    const CostTable& table = pipeline.tables[t];
    const double baseline = time_of(table, rank_of[t], table.baseline.knob);
    for (const CostOption& option : table.all_options) {
      if (option.knob == table.baseline.knob) continue;
      times[t * knobs + option.knob] = time_of(table, rank_of[t], option.knob) / baseline;
    }
  }
  return times;
}

namespace {

constexpr int kDraws = 256;
// 95 % of Student's t with 10 degrees of freedom: a sweep goes back to few clocks, so how wide its
// errors are is not well known either.
constexpr double kSigmas = 2.23;
// Nearly normal, of the same bits on every machine.
class Normal {
 public:
  double operator()() {
    constexpr int kTerms = 12;  // Their variances add up to 1.
    double sum = 0;
    for (int i = 0; i < kTerms; ++i) sum += static_cast<double>(random_() >> 11U) * 0x1p-53;
    return sum - kTerms / 2.0;
  }

 private:
  std::mt19937_64 random_{1};
};

// An option of a rank that is drawn anew.
struct Cell {
  const OptionErrors* errors = nullptr;
  int rank = 0;
  double own_time = 0;
  double own_power = 0;
  double time = 1;  // As drawn, over what was measured.
  double energy = 1;
};

class Draws {
 public:
  explicit Draws(const CostedPipeline& pipeline) : pipeline_(pipeline) {
    for (const OptionErrors& errors : pipeline.errors) {
      times_ = std::max(times_, errors.time_sources.size());
      powers_ = std::max(powers_, errors.power_sources.size());
    }
    blocking_.resize(static_cast<std::size_t>(pipeline.dag.num_ranks));
    blocking_std_.resize(blocking_.size());
    blocking_share_.resize(blocking_.size());
    time_values_.assign(blocking_.size(), std::vector<double>(times_));
    power_values_.assign(blocking_.size(), std::vector<double>(powers_));
  }

  // The cells of these options; false where a cell has no errors.
  bool Use(const std::vector<CostOption>& options, std::vector<std::size_t>* cells) {
    for (int i = 0; i < pipeline_.dag.size(); ++i) {
      const CostTable& table = pipeline_.TableOf(i);
      const int knob = options[static_cast<std::size_t>(i)].knob;
      const OptionErrors* const errors = ErrorsOf(pipeline_.errors, table, knob);
      if (errors == nullptr) return false;
      const int rank = pipeline_.dag.computations[static_cast<std::size_t>(i)].rank;
      const auto [known, is_new] = known_.emplace(errors, cells_.size());
      if (is_new) {
        cells_.push_back({.errors = errors,
                          .rank = rank,
                          .own_time = OwnError(errors->time_std, errors->time_sources),
                          .own_power = OwnError(errors->power_std, errors->power_sources)});
        double& blocking = blocking_std_[static_cast<std::size_t>(rank)];
        blocking = std::max(blocking, errors->blocking_std);
      }
      cells->push_back(known->second);
    }
    return true;
  }

  void Draw() {
    DrawSources(&time_values_);
    DrawSources(&power_values_);
    for (std::size_t rank = 0; rank < blocking_.size(); ++rank) {
      blocking_share_[rank] = std::max(kLeastErrorShare, 1 + blocking_std_[rank] * normal_());
      blocking_[rank] = pipeline_.rank_blocking_power_watts[rank] * blocking_share_[rank];
    }
    for (Cell& cell : cells_) {
      const auto rank = static_cast<std::size_t>(cell.rank);
      double time = 1 + cell.own_time * normal_();
      double power = 1 + cell.own_power * normal_();
      for (std::size_t k = 0; k < cell.errors->time_sources.size(); ++k) {
        time += cell.errors->time_sources[k] * time_values_[rank][k];
      }
      for (std::size_t k = 0; k < cell.errors->power_sources.size(); ++k) {
        power += cell.errors->power_sources[k] * power_values_[rank][k];
      }
      cell.time = std::max(kLeastErrorShare, time);
      cell.energy = cell.time * std::max(kLeastErrorShare, power);
    }
  }

  double Joules(const std::vector<CostOption>& options, Waiting waiting,
                const std::vector<std::size_t>& cells) {
    durations_.resize(options.size());
    double joules = 0;
    for (std::size_t i = 0; i < options.size(); ++i) {
      const Cell& cell = cells_[cells[i]];
      durations_[i] = options[i].time_seconds * cell.time;
      const auto rank = static_cast<std::size_t>(pipeline_.dag.computations[i].rank);
      joules += options[i].energy_joules * cell.energy - blocking_[rank] * durations_[i];
    }
    const Timing timing = Replay(pipeline_.dag, durations_);
    for (const double watts : blocking_) joules += watts * timing.iteration_time_seconds;
    const auto dearer = DearerWaitingJoules(pipeline_, options, waiting, timing);
    for (std::size_t rank = 0; rank < dearer.size(); ++rank) {
      joules += dearer[rank] * blocking_share_[rank];
    }
    return joules;
  }

 private:
  void DrawSources(std::vector<std::vector<double>>* values) {
    std::vector<double> common(values->front().size());
    for (double& value : common) value = normal_();
    for (std::vector<double>& of_rank : *values) {
      for (std::size_t k = 0; k < of_rank.size(); ++k) {
        of_rank[k] =
            std::sqrt(1 - kCommonErrorShare) * normal_() + std::sqrt(kCommonErrorShare) * common[k];
      }
    }
  }

  const CostedPipeline& pipeline_;
  std::size_t times_ = 0;
  std::size_t powers_ = 0;
  Normal normal_;
  std::map<const OptionErrors*, std::size_t> known_;
  std::vector<Cell> cells_;
  std::vector<double> blocking_;        // [rank], watts as drawn.
  std::vector<double> blocking_share_;  // [rank] As drawn, over what was measured, at each clock.
  std::vector<double> blocking_std_;
  std::vector<std::vector<double>> time_values_;  // [rank][source]
  std::vector<std::vector<double>> power_values_;
  std::vector<double> durations_;
};

}  // namespace

std::optional<SavingInterval> IntervalOfSaving(const CostedPipeline& pipeline,
                                               const std::vector<CostOption>& options,
                                               Waiting waiting) {
  if (pipeline.errors.empty() || options.empty()) return std::nullopt;
  std::vector<CostOption> baseline;
  baseline.reserve(static_cast<std::size_t>(pipeline.dag.size()));
  for (int i = 0; i < pipeline.dag.size(); ++i) baseline.push_back(pipeline.TableOf(i).baseline);
  Draws draws(pipeline);
  std::vector<std::size_t> cells;
  std::vector<std::size_t> baseline_cells;
  if (!draws.Use(options, &cells) || !draws.Use(baseline, &baseline_cells)) return std::nullopt;
  double sum = 0;
  double squares = 0;
  for (int i = 0; i < kDraws; ++i) {
    draws.Draw();
    const double before = draws.Joules(baseline, Waiting::kSetClock, baseline_cells);
    const double saving = 100 * (1 - draws.Joules(options, waiting, cells) / before);
    sum += saving;
    squares += saving * saving;
  }
  const double mean = sum / kDraws;
  const double spread =
      kSigmas * std::sqrt(std::max(0.0, (squares - kDraws * mean * mean) / (kDraws - 1)));
  if (!std::isfinite(mean + spread)) return std::nullopt;
  return SavingInterval{mean - spread, mean + spread};
}

}  // namespace perseus::model
