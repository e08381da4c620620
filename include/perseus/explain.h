// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_EXPLAIN_H_
#define PERSEUS_EXPLAIN_H_

// Link perseus::core (pkg-config: perseus-core).

#include <optional>
#include <string>
#include <vector>

#include "perseus/computation.h"
#include "perseus/export.h"
#include "perseus/pipeline.h"

PERSEUS_EXPORT_BEGIN
namespace perseus {
inline namespace v0 {

// One computation, at its highest clock (baseline) and as planned.
struct ExplainedComputation {
  std::string type = {};  // "forward", ..., "forward+backward" where fused.
  int stage = 0;          // The forward's, where fused.
  Phase phase = Phase::kSteady;
  double blocking_power_watts = 0;  // Of its rank.
  double baseline_seconds = 0;
  double baseline_joules = 0;
  bool baseline_critical = false;  // On a longest path of the baseline.
  double seconds = 0;
  double joules = 0;
  bool critical = false;  // On a longest path of the plan.
};

struct ExplainInput {
  std::vector<ExplainedComputation> computations = {};
  double total_blocking_power_watts = 0;  // Of all ranks.
  double baseline_iteration_seconds = 0;
  double iteration_seconds = 0;
  // Energy of waiting beyond these blocking powers, where it depends on the clock.
  double baseline_dearer_waiting_joules = 0;
  double dearer_waiting_joules = 0;
};

// The part of one group of computations in the saving.
struct SavingShare {
  std::string label = {};  // "0" (stage), "forward", "warm-up"
  int computations = 0;
  int slowed = 0;  // Run slower than in the baseline.
  int baseline_critical = 0;
  int critical = 0;
  double baseline_seconds = 0;  // Busy time.
  double seconds = 0;
  double baseline_critical_seconds = 0;
  // Saved effective energy, which is energy - blocking power x time: a rank that computes longer
  // waits less.
  double saving_joules = 0;
  double share_percent = 0;  // Of computation_saving_joules; 0 where that is 0.
};

struct Explanation {
  std::vector<SavingShare> stages = {};  // Ascending.
  std::vector<SavingShare> types = {};   // By name of the type.
  std::vector<SavingShare> phases = {};  // warm-up, steady, cool-down; absent ones left out.
  // The sum of the next three, up to rounding.
  double saving_joules = 0;
  double computation_saving_joules = 0;
  double iteration_saving_joules = 0;  // Blocking power x time saved; negative when slower.
  double waiting_saving_joules = 0;    // By waiting at lower clocks.
  // The stage that the others wait for: the one with most time on the baseline's longest paths, the
  // lowest of equals. No value without computations.
  std::optional<int> critical_stage = {};
};

// Divides the saving of a plan by stage, type and phase. A pure function.
Explanation ExplainSaving(const ExplainInput& input);

}  // namespace v0
}  // namespace perseus
PERSEUS_EXPORT_END

#endif  // PERSEUS_EXPLAIN_H_
