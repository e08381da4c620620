// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_COSTED_PIPELINE_H_
#define PERSEUS_COSTED_PIPELINE_H_

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

// How a profile is scaled to one pipeline. Watts are per GPU.
struct CostSpec {
  // Power of a GPU that waits: one number for all, or one per rank.
  std::vector<double> blocking_power_watts;
  // GPUs per rank. 0: as many as the profile has tp_rank values, else 1. With
  // a tp_rank column any other number is an error.
  int tensor_parallel = 0;
  // Share of `backward` that is the input gradient, where a schedule needs I
  // and W and the profile has only B.
  double split_ratio = 0.5;
  // Where microbatches differ.
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
  std::optional<ComputationType> fused_type;  // With fused_stage, where two run as one.
  int fused_stage = 0;
  double blocking_power_watts = 0;  // Of the rank.
  // Pareto-optimal in (time, effective energy = energy - blocking power x
  // time): fastest and dearest first, slowest and cheapest last. Not empty.
  std::vector<CostOption> options;
  // One option for every knob of the profile, dominated ones too, by knob.
  std::vector<CostOption> all_options;
  CostOption baseline;  // All-maximum-clock option (may be dominated).
  int dominated = 0;    // Options of the profile that are not kept.
  bool split = false;   // I or W made from B by the split ratio.
  // How many times as much work as the profile's; of both, where two run as one.
  double work = 1;
  double fused_work = 1;
  // Where computations of one kind differ in work: the first table of the kind.
  // -1: this is it. Tables of a kind have the same knobs.
  int same_kind_as = -1;
};

// Energy less what the rank would use if it waited for as long: what an
// option really costs, since a rank that computes longer waits less
// (docs/explanation/planning.md).
double EffectiveEnergy(const CostTable& table, const CostOption& option);

// A DAG with what each computation costs at each knob, for one pipeline. A
// plain value, immutable by convention, safe to share.
struct CostedPipeline {
  PipelineDag dag;
  std::vector<Knob> knobs;
  bool knobs_are_numbers = true;
  std::vector<CostTable> tables;
  std::vector<int> table_of;                      // [computation] -> table
  std::vector<double> rank_blocking_power_watts;  // GPUs of the rank together.
  double total_blocking_power_watts = 0;
  int tensor_parallel = 1;
  double split_ratio = 0.5;  // CostSpec::split_ratio
  // Of rows of the profile that the schedule has no use for.
  std::vector<Note> notes;
  std::string modelled;  // Profile::modelled.

  // Whether a pipeline that was filled in by hand keeps to what is said above: its DAG, indices and
  // orders, one baseline and the Pareto options among all options, times that are not negative,
  // finite numbers. Linear.
  Result<void> Validate() const;
  // A number for all of it: two pipelines that are not the same have, for all practical purposes,
  // different ones. Never 0. Linear.
  std::uint64_t Fingerprint() const;

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

}  // namespace perseus
PERSEUS_EXPORT_END

#endif  // PERSEUS_COSTED_PIPELINE_H_
