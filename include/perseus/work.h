// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_WORK_H_
#define PERSEUS_WORK_H_

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "perseus/computation.h"
#include "perseus/export.h"
#include "perseus/profile.h"
#include "perseus/result.h"

PERSEUS_EXPORT_BEGIN
namespace perseus {

// Where microbatches differ: how many times as much work as the profile's a
// computation is. At the same knob it takes so many times as long and as much
// energy, and the profile's spread grows alike; power stays. A plain value.
class Work {
 public:
  // Everything as in the profile.
  Work() = default;
  // One factor for each microbatch, for all its computations. Factors not given are 1.
  explicit Work(std::vector<double> factors) : of_microbatch_(std::move(factors)) {}

  // Of one stage and type of a microbatch. What is no factor (kLeastWork to kMostWork) and names
  // no computation is refused by whoever is given this work.
  void Set(const Action& action, double factor);

  double FactorOf(const Action& action) const;
  // Every Set() that holds, by microbatch, stage and type; of those that name no computation of any
  // pipeline, the first comes first.
  std::vector<std::pair<Action, double>> Given() const;
  bool empty() const { return of_microbatch_.empty() && of_action_.empty() && misplaced_.empty(); }
  // One more than the highest microbatch that a factor is given for.
  int num_microbatches() const;

 private:
  std::vector<double> of_microbatch_;
  // [(microbatch x stages + stage) x kNumComputationTypes + type]; 0: not given.
  std::vector<double> of_action_;
  int stages_ = 0;
  std::vector<std::pair<Action, double>> misplaced_;  // At most one.
};

// Above 0 and within these, so that sums stay finite.
inline constexpr double kLeastWork = 1e-6;
inline constexpr double kMostWork = 1e6;

// One row of a work table.
struct WorkRow {
  int microbatch = 0;
  int stage = 0;                        // With `type` alone.
  std::optional<ComputationType> type;  // Without: all computations of the microbatch.
  double value = 1;                     // A factor, or tokens.
  int line = 0;
  int column = 0;  // Of the value.
};

// A work table as it was read.
struct WorkTable {
  std::string source;  // File name as given, for messages.
  bool in_tokens = false;
  std::vector<WorkRow> rows;  // In the order of the file; each key once.
};

// Reads a work table, CSV with one of these headers (columns in any order):
//   microbatch,factor
//   microbatch,stage,type,factor
//   microbatch,tokens
// Errors name file:line:column. A file over 64 MiB is refused.
Result<WorkTable> ReadWork(const std::string& path);
// The same on text in memory; `name` stands for the path in messages.
Result<WorkTable> ParseWork(std::string_view text, const std::string& name);

// How long a computation takes at the highest clock: a + b x tokens.
struct WorkFitRow {
  int stage = 0;
  ComputationType type = ComputationType::kForward;
  double seconds = 0;            // a, >= 0
  double seconds_per_token = 0;  // b, >= 0; not both are 0.
};
struct WorkFit {
  std::string source;
  std::vector<WorkFitRow> rows;  // Each stage and type once.

  const WorkFitRow* Find(int stage, ComputationType type) const;
};

// Reads a fit, CSV with the columns stage,type,time,time_per_token (seconds).
Result<WorkFit> ReadWorkFit(const std::string& path);
Result<WorkFit> ParseWorkFit(std::string_view text, const std::string& name);

// How tokens become factors.
struct TokenRule {
  std::optional<WorkFit> fit;
  // Without a fit time is taken to grow in proportion. Tokens of a microbatch when the
  // profile was measured; 0: the mean of the table's.
  double profiled_tokens = 0;
};

// What a work table means for a pipeline: `kinds` are the stages and types
// that it runs. Rows of `backward` hold for both its halves where these have no
// rows of their own. Microbatches, or computations, without a row are as in the
// profile. Errors: a row for a microbatch, stage or type that there is not;
// tokens without a row for each microbatch; a fit that lacks a kind.
Result<Work> MakeWork(const WorkTable& table, const TokenRule& tokens, const Profile& profile,
                      int num_microbatches,
                      const std::vector<std::pair<int, ComputationType>>& kinds);

}  // namespace perseus
PERSEUS_EXPORT_END

#endif  // PERSEUS_WORK_H_
