// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "model/option_errors.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <tuple>

#include "common/word_hash.h"

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

}  // namespace perseus::model
