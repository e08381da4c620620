// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_PLAN_H_
#define PERSEUS_PLAN_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "perseus/pipeline.h"
#include "perseus/profile.h"
#include "perseus/result.h"

namespace perseus {

// ---------------------------------------------------------------------------
// From a profile and a DAG to costs per computation.
// ---------------------------------------------------------------------------

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
};

// One way to run a computation, scaled to its rank (all its GPUs).
struct CostOption {
  int knob = 0;  // Index into CostedPipeline::knobs.
  double time_seconds = 0;
  double energy_joules = 0;
  double time_std_seconds = 0;  // The profile's spread; 0 where it states none.
};

// The options of one kind of computation.
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
};

// Energy less what the rank would use if it waited for as long: what an
// option really costs, since a rank that computes longer waits less
// (docs/planning.md).
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

  const CostTable& TableOf(int computation) const { return tables[table_of[computation]]; }
};

// Errors: a stage or type that the schedule needs and the profile lacks, a
// wrong number of blocking powers, numbers out of range.
Result<CostedPipeline> CostPipeline(const Profile& profile, PipelineDag dag, const CostSpec& spec);

// Energy of one pipeline over an iteration: computations + blocking power
// while ranks wait (planner.md §1). Summed in the order of dag.computations.
double IterationEnergy(const CostedPipeline& pipeline, const std::vector<CostOption>& chosen,
                       double iteration_time_seconds);

// ---------------------------------------------------------------------------
// The frontier in the units of the user.
// ---------------------------------------------------------------------------

// One breakpoint of the exact convex lower bound E(T).
struct FrontierPoint {
  double iteration_time_seconds = 0;
  double energy_joules = 0;
  // -dE_eff/dT to the right of the point: the price of a second. 0 in the last.
  double slope_watts = 0;
};

// E(T) and the points of it that have names. Times ascending.
struct Frontier {
  std::vector<FrontierPoint> points;
  double fastest_seconds = 0;   // T_min
  double economic_seconds = 0;  // where E(T) is least
  double tstar_seconds = 0;     // T*: beyond it nothing is saved but time lost
  // Certified relative distance of `points` to the exact curve: 0 when exact,
  // else the coarse mode's bound.
  double certified_error = 0;
  // True for the frontier of an exponential fit, which bounds nothing.
  bool fitted = false;
  // Step of the slopes in the coarse mode; 0 when exact.
  double slope_quantum_watts = 0;

  // What the pipeline's GPUs draw together while they wait.
  double total_blocking_power_watts = 0;

  // The lower bound at `seconds`: linear between points, waiting at blocking
  // power beyond the last. Precondition: seconds >= fastest_seconds.
  double EnergyAt(double seconds) const;
};

// ---------------------------------------------------------------------------
// Plans.
// ---------------------------------------------------------------------------

// Which computations share one knob.
enum class Granularity : std::uint8_t {
  kComputation,  // Each its own.
  kPhase,        // Per stage, type and warm-up / steady / cool-down.
  kStageType,    // Per stage and type.
  kStage,        // Per rank.
};
std::string_view GranularityName(Granularity granularity);  // "computation", "phase", ...
std::optional<Granularity> ParseGranularity(std::string_view name);

struct PlanConstraints {
  Granularity granularity = Granularity::kComputation;
  // A rank keeps a knob for at least this long before it changes again. 0: none.
  double min_dwell_seconds = 0;
  // At most this many distinct knobs in the plan. 0: any number.
  int max_knobs = 0;
  // Safety margin against noisy measurements: every option but the
  // all-maximum-clock one is taken to last longer by this many standard
  // deviations of the profile (`time_std`) or by this fraction (0.01 = 1 %),
  // whichever is more. The realised time is still stated as measured.
  double time_margin_sigmas = 0;
  double time_margin_fraction = 0;

  bool any() const {
    return granularity != Granularity::kComputation || min_dwell_seconds > 0 || max_knobs > 0 ||
           time_margin_sigmas > 0 || time_margin_fraction > 0;
  }
};

// The baseline, or a point of the frontier made real: one option for every
// computation. Realised figures come from Replay() on the measured options.
struct Plan {
  double requested_time_seconds = 0;  // The realised time never exceeds it.
  std::vector<CostOption> options;    // [computation]
  double iteration_time_seconds = 0;  // Realised.
  double energy_joules = 0;           // Realised, one pipeline, with blocking power.
  double lower_bound_joules = 0;      // No plan of this time can use less (certificate).
  double gap_percent = 0;             // 100 (energy - lower bound) / lower bound
  double saving_percent = 0;          // Against the all-maximum-clock baseline.
  double average_power_watts = 0;     // Of one pipeline.
  int knob_changes = 0;               // Per iteration, summed over ranks.
  int distinct_knobs = 0;
};

// Where on the frontier a plan should be.
struct PlanTarget {
  enum class Kind : std::uint8_t { kBaselineFactor, kSeconds, kEconomic, kFastest, kTStar };
  Kind kind = Kind::kBaselineFactor;
  double value = 1.0;  // Factor of the all-maximum-clock time, or seconds.
};
// "1.02x", "5.3" (seconds), "economic", "fastest", "tstar".
Result<PlanTarget> ParsePlanTarget(std::string_view text);

// Called now and then with a share of the work done (0..1).
using ProgressFunction = std::function<void(double)>;

struct PlannerOptions {
  // Solve with slopes rounded to multiples of this many watts (certified
  // coarse mode). 0: exact. Negative: exact, unless the pipeline is so large
  // that coarse is advised.
  double slope_quantum_watts = 0;
  // Shows the frontier of the paper's fit a exp(b t) + c of each table. Plans
  // and their lower bounds still come from the options themselves.
  bool exponential_fit = false;
  // Called while the frontier is walked.
  ProgressFunction progress;
};

// What a search for a plan tells while it runs.
struct PlanProgress {
  double share = 0;  // Of the work, 0..1.
  // A plan that is better than any before, during the call; else nullptr.
  const Plan* better = nullptr;
};
// Called with the first plan early (within some 5 % of the work), then with
// each better one and now and then between. False ends the search: its result is the
// best plan so far. Must not throw.
using PlanCallback = std::function<bool(const PlanProgress&)>;

// Computes the frontier of a pipeline once, then makes plans anywhere on it. A
// handle: copies are cheap and share the pipeline, the frontier and the walks
// of it that plans start from (those of the last three time margins, each with
// at most 64 MiB besides its network), and what they refer to lives as long as
// the last copy. Deterministic. Const members may be called from several
// threads at once. A moved-from planner may only be assigned or destroyed.
class Planner {
 public:
  // Errors: kOverflow when quantities do not fit the integer arithmetic.
  static Result<Planner> Create(CostedPipeline pipeline, const PlannerOptions& options);

  const CostedPipeline& pipeline() const;
  const Frontier& frontier() const;
  // The frontier of the options themselves, below which no plan can be; the
  // same as frontier() unless that one is fitted.
  const Frontier& lower_bound() const;
  // Every computation at its highest clock: the origin of savings.
  const Plan& baseline() const;

  // The figures of a plan made elsewhere, one option for every computation:
  // time and energy as replayed, certificate, saving.
  // Precondition: options.size() == pipeline().dag.size().
  Plan Evaluate(std::vector<CostOption> options) const;

  // The time a target means. kInfeasible when it lies below T_min.
  Result<double> TargetSeconds(const PlanTarget& target) const;

  // A plan that ends by `seconds`. For more than T* it is the one for T*,
  // unless shared knobs have a use for more time. `effort` scales the work of
  // the search, which is cut there: 1 for a plan that will be used (about a
  // second of CPU up to 8 stages x 96 microbatches, in proportion to the
  // computations beyond), 0.2 for a row of a table. The search itself does not
  // depend on it, so that more effort never gives a worse plan: one with more
  // energy over an iteration of `seconds`. (Where computations share knobs it
  // may.) Errors: kInfeasible below T_min or when the constraints cannot be met
  // in that time; kInvalidInput for numbers out of range, or a margin in
  // standard deviations where the profile states none.
  Result<Plan> PlanFor(double seconds, const PlanConstraints& constraints = {}, double effort = 1.0,
                       const PlanCallback& callback = {}) const;

  // Plans for `count` (at least 2) evenly spaced times from the fastest to T*:
  // what a service needs that answers stragglers. No plan is worse than one for
  // less time (CarryForward). Times that the constraints leave no plan for are
  // left out. The callback gets every plan; false ends the ladder there.
  // Errors: those of PlanFor, where there is no plan at all.
  Result<std::vector<Plan>> Ladder(int count, const PlanConstraints& constraints = {},
                                   double effort = 0.2, const PlanCallback& callback = {}) const;

 private:
  struct Impl;
  explicit Planner(std::shared_ptr<const Impl> impl);
  std::shared_ptr<const Impl> impl_;
};

// Puts the plan for less time in the place of each plan that is worse: that
// uses more energy over iterations of the same length. `plans` are for one
// pipeline and the same constraints, by ascending requested time.
void CarryForward(const CostedPipeline& pipeline, std::vector<Plan>* plans);

}  // namespace perseus

#endif  // PERSEUS_PLAN_H_
