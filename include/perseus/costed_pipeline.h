// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_COSTED_PIPELINE_H_
#define PERSEUS_COSTED_PIPELINE_H_

// Link perseus::model (pkg-config: perseus-model).

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "perseus/computation.h"
#include "perseus/export.h"
#include "perseus/note.h"
#include "perseus/pipeline.h"
#include "perseus/profile.h"
#include "perseus/result.h"
#include "perseus/work.h"

PERSEUS_EXPORT_BEGIN
namespace perseus {
inline namespace v0 {

// How a profile is scaled to one pipeline. Watts are per GPU.
struct CostSpec {
  // Power of a GPU that waits: one number for all, or one per rank. Where Profile::waiting says it
  // for a stage of a rank, this rank's number is not used; where it says it for all ranks, no
  // number need be given.
  std::vector<double> blocking_power_watts = {};
  // Take what a GPU that waits draws as constant, also where the profile says it by clock: that at
  // the highest one. For who runs plans without changing clocks for waiting.
  bool waiting_is_constant = false;
  // GPUs per rank. Without: as many as the profile has tp_rank values, else 1. With
  // a tp_rank column any other number is an error.
  std::optional<int> tensor_parallel = {};
  // Share of `backward` that is the input gradient, where a schedule needs I
  // and W and the profile has only B.
  double split_ratio = 0.5;
  // Factors of microbatches that differ.
  Work work = {};
};

// One way to run a computation, scaled to its rank (all its GPUs).
struct CostOption {
  int knob = 0;  // Index into CostedPipeline::knobs.
  double time_seconds = 0;
  double energy_joules = 0;
  double time_std_seconds = 0;  // The profile's spread; 0 where it states none.
};

// The options of one kind of computation, and of one amount of work.
struct CostTable {
  int stage = 0;
  ComputationType type = ComputationType::kForward;
  std::optional<ComputationType> fused_type = {};  // With fused_stage, where two run as one.
  int fused_stage = 0;
  double blocking_power_watts = 0;  // Of the rank; see rank_blocking_power_watts.
  // Those that no other option beats in both time and effective energy (see EffectiveEnergy()).
  // The fastest and dearest is first, the slowest and cheapest last. Not empty.
  std::vector<CostOption> options = {};
  // One option for every knob of the profile, sorted by knob.
  std::vector<CostOption> all_options = {};
  CostOption baseline = {};  // At the highest clock; perhaps not one of `options`.
  // At default clocks, where the profile says it. No option of plans. Its knob is that of the
  // baseline, at which the GPU is taken to wait meanwhile.
  std::optional<CostOption> default_clocks = {};
  int dominated = 0;   // How many of `all_options` are not in `options`.
  bool split = false;  // I or W made from B by the split ratio.
  // How many times as much work as in the profile. `fused_work` is that of the fused computation.
  double work = 1;
  double fused_work = 1;
  // Computations of one kind that differ in work have a table each. This is the index of the
  // kind's first table; -1 in the first itself. Tables of a kind have the same knobs.
  int same_kind_as = -1;
};

// Energy minus blocking power x time. That is what an option really costs: a rank that computes
// longer waits less (docs/explanation/planning.md).
double EffectiveEnergy(const CostTable& table, const CostOption& option);

// The computations of one pipeline and what each costs at each knob. A plain value. Once it is made
// nobody changes it, so threads may share it.
struct CostedPipeline {
  PipelineDag dag = {};
  std::vector<Knob> knobs = {};
  bool knobs_are_numbers = true;
  std::vector<CostTable> tables = {};
  std::vector<int> table_of = {};  // [computation] -> table
  // Power of all GPUs of a rank together while they wait. Where that depends on their clock, the
  // least of it.
  std::vector<double> rank_blocking_power_watts = {};
  double total_blocking_power_watts = 0;
  // [rank][knob] What they draw while they wait at a knob. Empty: taken as constant.
  std::vector<std::vector<double>> rank_waiting_watts = {};
  int tensor_parallel = 1;
  double split_ratio = 0.5;  // CostSpec::split_ratio
  // Findings in the profile and in the costs, such as rows that the schedule does not use.
  std::vector<Note> notes = {};
  std::string modelled = {};              // Profile::modelled.
  std::vector<OptionErrors> errors = {};  // Profile::errors.

  // Whether a pipeline that was filled in by hand is consistent: the DAG is valid, indices are in
  // range, `options` and `baseline` are among `all_options`, lists are in the order stated above,
  // numbers are finite and times not negative. Takes linear time.
  Result<void> Validate() const;
  // A hash of the whole pipeline: pipelines that differ have different ones, for all practical
  // purposes. Never 0. Takes linear time.
  std::uint64_t Fingerprint() const;

  bool waiting_depends_on_clock() const { return !rank_waiting_watts.empty(); }
  // Power of waiting at a knob beyond rank_blocking_power_watts. 0 where it is constant.
  double DearerWatts(int rank, int knob) const {
    if (rank_waiting_watts.empty()) return 0;
    const auto r = static_cast<std::size_t>(rank);
    return rank_waiting_watts[r][static_cast<std::size_t>(knob)] - rank_blocking_power_watts[r];
  }
  // The knob at which waiting draws least; of equal ones the highest. Without a value where
  // waiting is constant.
  std::optional<int> WaitingKnob(int rank) const;

  const CostTable& TableOf(int computation) const {
    const int table = table_of[static_cast<std::size_t>(computation)];
    return tables[static_cast<std::size_t>(table)];
  }
  // The first table of the kind of computation (stage, type, what it is fused with).
  int KindOf(int table) const {
    const int first = tables[static_cast<std::size_t>(table)].same_kind_as;
    return first < 0 ? table : first;
  }
};

}  // namespace v0
}  // namespace perseus
PERSEUS_EXPORT_END

#endif  // PERSEUS_COSTED_PIPELINE_H_
