// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "perseus/work.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <string_view>
#include <utility>
#include <vector>

#include "common/input_limits.h"
#include "common/located_error.h"

namespace perseus {
inline namespace v0 {
namespace {

using Kind = std::pair<int, ComputationType>;

// The type whose rows hold for this one, too, where it has none of its own.
std::optional<ComputationType> StandInOf(ComputationType type) {
  using enum ComputationType;
  switch (type) {
    case kBackwardInput:
    case kBackwardWeight:
      return kBackward;
    case kRecompute:
      return kForward;
    case kForward:
    case kBackward:
      break;
  }
  return std::nullopt;
}

tl::unexpected<Error> WrongRow(const WorkTable& table, const WorkRow& row,
                               std::string_view message) {
  return InvalidAt(table.source, row.line, row.column, message);
}

// Whether a row of this stage and type says something of what is run.
bool IsRun(const std::vector<Kind>& kinds, int stage, ComputationType type) {
  return std::any_of(kinds.begin(), kinds.end(), [&](const Kind& kind) {
    return kind.first == stage && (kind.second == type || StandInOf(kind.second) == type);
  });
}

Result<void> CheckRows(const WorkTable& table, int num_microbatches,
                       const std::vector<Kind>& kinds) {
  for (const WorkRow& row : table.rows) {
    if (row.microbatch < 0 || row.microbatch >= num_microbatches) {
      return WrongRow(table, row,
                      fmt::format("microbatch {} is not there: the pipeline has {}, counted from 0",
                                  row.microbatch, num_microbatches));
    }
    if (!row.type || IsRun(kinds, row.stage, *row.type)) continue;
    return WrongRow(table, row,
                    fmt::format("the schedule runs no {} of stage {}; remove the row, or correct "
                                "its stage or type",
                                ComputationTypeName(*row.type), row.stage));
  }
  return {};
}

Work OfFactors(const WorkTable& table, int num_microbatches, const std::vector<Kind>& kinds) {
  const bool by_kind = std::any_of(table.rows.begin(), table.rows.end(),
                                   [](const WorkRow& row) { return row.type.has_value(); });
  if (!by_kind) {
    std::vector<double> factors(static_cast<std::size_t>(num_microbatches), 1.0);
    for (const WorkRow& row : table.rows) factors[row.microbatch] = row.value;
    return Work(std::move(factors));
  }
  Work work;
  // Those that stand in for others first: rows of these win over them.
  for (const WorkRow& row : table.rows) {
    for (const auto& [stage, type] : kinds) {
      if (stage == row.stage && StandInOf(type) == row.type) {
        work.Set({type, stage, row.microbatch}, row.value);
      }
    }
  }
  for (const WorkRow& row : table.rows) {
    work.Set({*row.type, row.stage, row.microbatch}, row.value);
  }
  return work;
}

Result<std::vector<double>> TokensOf(const WorkTable& table, int num_microbatches) {
  std::vector<double> tokens(static_cast<std::size_t>(num_microbatches), 0.0);
  for (const WorkRow& row : table.rows) tokens[row.microbatch] = row.value;
  const auto missing = std::find(tokens.begin(), tokens.end(), 0.0);
  if (missing == tokens.end()) return tokens;
  return InvalidInput(fmt::format(
      "{}: microbatch {} has no row; a table in tokens needs one for each of the {} microbatches",
      table.source, missing - tokens.begin(), num_microbatches));
}

double BaselineSeconds(const OptionTable& table) {
  return table.options[table.baseline].time_seconds;
}

// Seconds of the fit and of the profile, at the highest clock.
struct FittedKind {
  double seconds = 0;
  double seconds_per_token = 0;
  double profiled_seconds = 0;
};

// By the rows of the kind itself, else of what stands in for it, else of the
// halves that it is made of.
Result<FittedKind> FittedOf(const WorkFit& fit, const Profile& profile, const Kind& kind) {
  const auto add = [&](ComputationType type, FittedKind* sum) {
    const WorkFitRow* row = fit.Find(kind.first, type);
    const OptionTable* table = profile.Find(kind.first, type);
    if (row == nullptr || table == nullptr) return false;
    sum->seconds += row->seconds;
    sum->seconds_per_token += row->seconds_per_token;
    sum->profiled_seconds += BaselineSeconds(*table);
    return true;
  };
  FittedKind fitted;
  if (add(kind.second, &fitted)) return fitted;
  const auto stand_in = StandInOf(kind.second);
  if (stand_in && add(*stand_in, &fitted)) return fitted;
  if (kind.second == ComputationType::kBackward && add(ComputationType::kBackwardInput, &fitted) &&
      add(ComputationType::kBackwardWeight, &fitted)) {
    return fitted;
  }
  return InvalidInput(fmt::format(
      "{}: there is no row for {} of stage {}, which the schedule runs (the profile must have such "
      "rows, too)",
      fit.source, ComputationTypeName(kind.second), kind.first));
}

Result<double> CheckedFactor(const WorkTable& table, const ComputationId& id, double factor) {
  if (factor >= kLeastWork && factor <= kMostWork) return factor;
  return InvalidInput(fmt::format(
      "{}: {} of stage {}, microbatch {} would be {:.3g} times the profile's work; expected {:g} "
      "to {:g}",
      table.source, ComputationTypeName(id.type), id.stage, id.microbatch, factor, kLeastWork,
      kMostWork));
}

Result<Work> OfTokens(const WorkTable& table, const TokenRule& rule, const Profile& profile,
                      int num_microbatches, const std::vector<Kind>& kinds) {
  const Result<std::vector<double>> tokens = TokensOf(table, num_microbatches);
  if (!tokens) return tl::unexpected(tokens.error());
  if (!rule.fit) {
    double reference = rule.profiled_tokens.value_or(0);
    if (!rule.profiled_tokens) {
      for (const double each : *tokens) reference += each;
      reference /= static_cast<double>(tokens->size());
    }
    std::vector<double> factors;
    for (const double each : *tokens) {
      const ComputationId id = {.microbatch = static_cast<int>(factors.size())};
      const Result<double> factor = CheckedFactor(table, id, each / reference);
      if (!factor) return tl::unexpected(factor.error());
      factors.push_back(*factor);
    }
    return Work(std::move(factors));
  }
  Work work;
  for (const Kind& kind : kinds) {
    const Result<FittedKind> fitted = FittedOf(*rule.fit, profile, kind);
    if (!fitted) return tl::unexpected(fitted.error());
    for (int m = 0; m < num_microbatches; ++m) {
      const ComputationId id = {kind.second, kind.first, m};
      const double seconds = fitted->seconds + fitted->seconds_per_token * (*tokens)[m];
      const Result<double> factor = CheckedFactor(table, id, seconds / fitted->profiled_seconds);
      if (!factor) return tl::unexpected(factor.error());
      work.Set(id, *factor);
    }
  }
  return work;
}

}  // namespace

namespace {

// What any pipeline can have, and more: no index leads to more memory than this.
constexpr std::size_t kMostCells = std::size_t{1} << 27;

}  // namespace

void Work::Set(const ComputationId& id, double factor) {
  const auto place = [](const ComputationId& a, int stages) {
    return (static_cast<std::size_t>(a.microbatch) * stages + a.stage) * kNumComputationTypes +
           static_cast<std::size_t>(a.type);
  };
  const bool is_placed =
      id.stage >= 0 && id.microbatch >= 0 && static_cast<int>(id.type) < kNumComputationTypes;
  // Twice as many stages as are asked for may be made room for.
  constexpr std::size_t kMostRows = kMostCells / (2 * kNumComputationTypes);
  if (!is_placed || static_cast<std::size_t>(std::max(id.stage + 1.0, 1.0 * stages_)) >
                        kMostRows / (static_cast<std::size_t>(num_microbatches()) + 1 +
                                     static_cast<std::size_t>(std::max(id.microbatch, 0)))) {
    if (misplaced_.empty()) misplaced_.emplace_back(id, factor);
    return;
  }
  if (id.stage >= stages_) {
    // Doubling, so that stages may come one by one.
    const int stages = std::max(id.stage + 1, 2 * stages_);
    std::vector<double> wider;
    const std::size_t old_row = static_cast<std::size_t>(stages_) * kNumComputationTypes;
    const std::size_t row = static_cast<std::size_t>(stages) * kNumComputationTypes;
    if (old_row > 0) wider.resize(of_computation_.size() / old_row * row, 0.0);
    for (std::size_t k = 0; k < of_computation_.size(); ++k) {
      wider[k / old_row * row + k % old_row] = of_computation_[k];
    }
    of_computation_ = std::move(wider);
    stages_ = stages;
  }
  const std::size_t row = static_cast<std::size_t>(stages_) * kNumComputationTypes;
  const std::size_t needed = (static_cast<std::size_t>(id.microbatch) + 1) * row;
  if (needed > of_computation_.size()) of_computation_.resize(needed, 0.0);
  // 0 stands for "not given"; given, it is as wrong as any other number that is none.
  of_computation_[place(id, stages_)] =
      factor == 0 ? std::numeric_limits<double>::quiet_NaN() : factor;
}

std::vector<std::pair<ComputationId, double>> Work::Given() const {
  std::vector<std::pair<ComputationId, double>> given = misplaced_;
  const std::size_t row = static_cast<std::size_t>(stages_) * kNumComputationTypes;
  for (std::size_t k = 0; k < of_computation_.size(); ++k) {
    if (of_computation_[k] == 0) continue;
    const auto type = static_cast<ComputationType>(k % kNumComputationTypes);
    given.push_back(
        {{type, static_cast<int>(k % row / kNumComputationTypes), static_cast<int>(k / row)},
         of_computation_[k]});
  }
  return given;
}

double Work::FactorOf(const ComputationId& id) const {
  if (id.stage < 0 || id.microbatch < 0) return 1.0;
  if (id.stage < stages_) {
    const std::size_t k =
        (static_cast<std::size_t>(id.microbatch) * stages_ + id.stage) * kNumComputationTypes +
        static_cast<std::size_t>(id.type);
    if (k < of_computation_.size() && of_computation_[k] != 0) return of_computation_[k];
  }
  const auto microbatch = static_cast<std::size_t>(id.microbatch);
  return microbatch < of_microbatch_.size() ? of_microbatch_[microbatch] : 1.0;
}

int Work::num_microbatches() const {
  const std::size_t row = static_cast<std::size_t>(stages_) * kNumComputationTypes;
  const std::size_t by_computation = row > 0 ? of_computation_.size() / row : 0;
  return static_cast<int>(std::max(of_microbatch_.size(), by_computation));
}

const WorkFitRow* WorkFit::Find(int stage, ComputationType type) const {
  const auto found = std::find_if(rows.begin(), rows.end(), [&](const WorkFitRow& row) {
    return row.stage == stage && row.type == type;
  });
  return found == rows.end() ? nullptr : &*found;
}

Result<Work> MakeWork(const WorkTable& table, const TokenRule& tokens, const Profile& profile,
                      int num_microbatches,
                      const std::vector<std::pair<int, ComputationType>>& kinds) {
  if (auto good = profile.Validate(); !good) return tl::unexpected(good.error());
  if (auto good = CheckRows(table, num_microbatches, kinds); !good) {
    return tl::unexpected(good.error());
  }
  if (!table.in_tokens) return OfFactors(table, num_microbatches, kinds);
  return OfTokens(table, tokens, profile, num_microbatches, kinds);
}

}  // namespace v0
}  // namespace perseus
