// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_WORK_H_
#define PERSEUS_WORK_H_

// Link perseus::model (pkg-config: perseus-model).

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
inline namespace v0 {

// How microbatches differ: a factor for each computation. With a factor of 2, it takes twice the
// time and energy of the profile at every knob, with twice the spread. A plain value.
class Work {
 public:
  // Everything as in the profile.
  Work() = default;
  // One factor for each microbatch, for all its computations. Factors not given are 1.
  explicit Work(std::vector<double> factors) : of_microbatch_(std::move(factors)) {}

  // Of one stage and type of a microbatch. A factor outside of 1e-6 to 1e6, or a computation that
  // names no computation, is refused by whatever is given this work.
  void Set(const ComputationId& id, double factor);

  double FactorOf(const ComputationId& id) const;
  // Everything that was set, by microbatch, stage and type. A computation that cannot be in any
  // pipeline comes first.
  std::vector<std::pair<ComputationId, double>> Given() const;
  bool empty() const {
    return of_microbatch_.empty() && of_computation_.empty() && misplaced_.empty();
  }
  // One more than the highest microbatch that a factor is given for.
  int num_microbatches() const;

 private:
  std::vector<double> of_microbatch_;
  // [(microbatch x stages + stage) x kNumComputationTypes + type]; 0: not given.
  std::vector<double> of_computation_;
  int stages_ = 0;
  std::vector<std::pair<ComputationId, double>> misplaced_;  // At most one.
};

// One row of a work table.
struct WorkRow {
  int microbatch = 0;
  int stage = 0;                             // With `type` alone.
  std::optional<ComputationType> type = {};  // Without: all computations of the microbatch.
  double value = 1;                          // A factor, or tokens.
  int line = 0;
  int column = 0;  // Of the value.
};

// A work table as it was read.
struct WorkTable {
  std::string source = {};  // File name as given, for messages.
  bool in_tokens = false;
  std::vector<WorkRow> rows = {};  // In the order of the file; each key once.
};

// Reads a work table, CSV with one of these headers (columns in any order):
//   microbatch,factor
//   microbatch,stage,type,factor
//   microbatch,tokens
// Errors name file:line:column. A file over 64 MiB is refused.
Result<WorkTable> ReadWork(const std::string& path);
// The same on text in memory; `name` stands for the path in messages.
Result<WorkTable> ParseWork(std::string_view text, const std::string& name);

// How long a computation takes at the highest clock: seconds + seconds_per_token x tokens.
struct WorkFitRow {
  int stage = 0;
  ComputationType type = ComputationType::kForward;
  double seconds = 0;            // >= 0
  double seconds_per_token = 0;  // >= 0; not both are 0.
};
struct WorkFit {
  std::string source = {};
  std::vector<WorkFitRow> rows = {};  // Each stage and type once.

  const WorkFitRow* Find(int stage, ComputationType type) const;
};

// Reads a fit, CSV with the columns stage,type,time,time_per_token (seconds).
Result<WorkFit> ReadWorkFit(const std::string& path);
Result<WorkFit> ParseWorkFit(std::string_view text, const std::string& name);

// How tokens become factors.
struct TokenRule {
  std::optional<WorkFit> fit = {};
  // Without a fit, time grows in proportion to the tokens. This is how many tokens a microbatch
  // had when the profile was measured. Without it: the mean of the table's.
  std::optional<double> profiled_tokens = {};
};

// The work of a pipeline that runs `kinds` (stages and types), by a work table. A row of `backward`
// counts for its two halves, too, and one of `forward` for `recompute`, if these have no rows of
// their own. Microbatches and computations without a row are as in the profile. Errors: a row for a
// microbatch, stage or type that does not exist; tokens without a row for each microbatch; a fit
// that lacks a kind.
Result<Work> MakeWork(const WorkTable& table, const TokenRule& tokens, const Profile& profile,
                      int num_microbatches,
                      const std::vector<std::pair<int, ComputationType>>& kinds);

}  // namespace v0
}  // namespace perseus
PERSEUS_EXPORT_END

#endif  // PERSEUS_WORK_H_
