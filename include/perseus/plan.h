// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_PLAN_H_
#define PERSEUS_PLAN_H_

// Link perseus::model (pkg-config: perseus-model).

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "perseus/computation.h"
#include "perseus/costed_pipeline.h"
#include "perseus/export.h"
#include "perseus/pipeline.h"
#include "perseus/result.h"

PERSEUS_EXPORT_BEGIN
namespace perseus {
inline namespace v0 {

// One breakpoint of the exact convex lower bound E(T).
struct FrontierPoint {
  double iteration_time_seconds = 0;
  double energy_joules = 0;
  // -dE_eff/dT to the right of the point: the price of a second. 0 in the last.
  double slope_watts = 0;
};

// E(T) and the points of it that have names. Times ascending.
struct Frontier {
  std::vector<FrontierPoint> points = {};
  double fastest_seconds = 0;     // T_min
  double min_energy_seconds = 0;  // where E(T) is least
  double tstar_seconds = 0;       // T*: beyond it nothing is saved but time lost
  // How far `points` can be from the exact curve, relatively. 0: they are exact.
  double certified_error = 0;
  // True for the frontier of an exponential fit, which bounds nothing.
  bool fitted = false;
  // Step of the slopes in the coarse mode; 0 when exact.
  double slope_quantum_watts = 0;

  // Power of all the pipeline's GPUs together while they wait.
  double total_blocking_power_watts = 0;

  // The lower bound at `seconds`: linear between points; beyond the last, GPUs wait at blocking
  // power. Before the first point, where no plan is, it is that of the first. 0 without points.
  double EnergyAt(double seconds) const;
};

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
  // A margin against noisy measurements. The search takes every option but the one at the highest
  // clock to last longer: by this many standard deviations (`time_std` of the profile) or by this
  // fraction (0.01 = 1 %), whichever is more. The times of the plan are stated as measured.
  double time_margin_sigmas = 0;
  double time_margin_fraction = 0;

  bool any() const {
    return granularity != Granularity::kComputation || time_margin_sigmas > 0 ||
           time_margin_fraction > 0;
  }
};

// How far a plan whose computations share knobs is from the best such plan.
struct SharedKnobBound {
  // No plan within the constraints that takes the same time uses less. Never
  // below Plan::lower_bound_joules, nor above the plan's own energy.
  double lower_bound_joules = 0;
  double gap_percent = 0;  // 100 (energy - lower bound) / lower bound
  // Whether the plan is proven to be the best: no other plan within the constraints that ends by
  // the requested time uses less energy over an iteration of that length, up to rounding (1e-10).
  bool proven_best = false;
};

// A tighter lower bound than Plan::lower_bound_joules. That one lets a computation mix options;
// this one takes one option for each computation, as plans do (docs/explanation/planning.md).
struct DiscreteBound {
  double lower_bound_joules = 0;
  double gap_percent = 0;  // 100 (energy - lower bound) / lower bound
};

// Between these lies the saving of a plan with a probability of 95 %, as far as the errors of the
// measured profile go.
struct SavingInterval {
  double least_percent = 0;
  double most_percent = 0;
};

// A plan against an iteration at default clocks, as the job ran before Perseus: GPUs boost, or
// their power cap holds them back. Savings and slowdowns of a plan are else against all clocks at
// maximum.
struct DefaultClockFigures {
  double iteration_time_seconds = 0;  // At default clocks.
  double energy_joules = 0;
  double slowdown_percent = 0;  // Of the plan. Below 0: the plan is faster.
  double saving_percent = 0;    // Of the plan.

  friend bool operator==(const DefaultClockFigures&, const DefaultClockFigures&) = default;
};

// The figures of a plan: one iteration of one pipeline, replayed from the measured options by
// Replay().
struct PlanFigures {
  double requested_time_seconds = 0;  // Asked for. Exceeded by Conditions::max_slowdown at most.
  double iteration_time_seconds = 0;  // Achieved.
  double energy_joules = 0;           // Achieved, with blocking power.
  double average_power_watts = 0;
  double lower_bound_joules = 0;  // No plan of this time can use less (optimality gap).
  double gap_percent = 0;         // 100 (energy - lower bound) / lower bound
  double saving_percent = 0;      // Against the all-maximum-clock baseline.
  int knob_changes = 0;           // Within an iteration, summed over ranks.
  int distinct_knobs = 0;
  // Has a value if a granularity makes computations share knobs, and the search found a bound.
  std::optional<SharedKnobBound> shared_knobs;
  // Of a plan document, where the profile says its errors (CostedPipeline::errors). Else none.
  std::optional<SavingInterval> saving_interval = {};
  // Of a plan document, where the profile says what all computations cost at default clocks.
  std::optional<DefaultClockFigures> default_clocks = {};
};

// At which clock a rank waits.
enum class Waiting : std::uint8_t {
  kSetClock,  // That of the computation before: nothing sets another one.
  kCheapest,  // CostedPipeline::WaitingKnob().
};

// A plan: one option for every computation, and the figures that follow. The baseline is a plan,
// too.
struct Plan : PlanFigures {
  std::vector<CostOption> options;  // [computation]
  // Matters only where what a rank draws while it waits depends on its clock.
  Waiting waiting = Waiting::kSetClock;
  // The bound of Planner::AddDiscreteBound(), if it was asked for.
  std::optional<DiscreteBound> discrete_bound;
  // CostedPipeline::Fingerprint() of the pipeline that it was made for; 0: not said.
  std::uint64_t pipeline = 0;

  // The knob of a computation. Errors: those of CheckPlan(), and no such computation.
  Result<Knob> KnobOf(const CostedPipeline& of, const ComputationId& id) const;
};

// Whether there is one option for each computation, and all are in the pipeline's tables.
Result<void> CheckOptions(const CostedPipeline& pipeline, const std::vector<CostOption>& options);
// Whether a plan was made for this pipeline. Every function that takes both checks this. Takes
// linear time.
Result<void> CheckPlan(const CostedPipeline& pipeline, const Plan& plan);

// Changes of clock (of knob) in one iteration of one pipeline, all ranks together.
struct KnobChanges {
  int within = 0;  // Between computations of the iteration: Plan::knob_changes.
  int back = 0;    // From a rank's last computation to its first of the next iteration.

  // The count for Conditions::max_changes and ChangePricePoint.
  int all() const { return within + back; }
};
// Counts changes, from one knob or option for each computation of `dag`. Errors: another number of
// them.
Result<KnobChanges> CountKnobChanges(const PipelineDag& dag, std::span<const int> knobs);
Result<KnobChanges> CountKnobChanges(const PipelineDag& dag,
                                     const std::vector<CostOption>& options);

// The wanted place of a plan on the frontier.
struct PlanTarget {
  enum class Kind : std::uint8_t { kBaselineFactor, kSeconds, kMinEnergy, kFastest, kTStar };
  Kind kind = Kind::kBaselineFactor;
  double value = 1.0;  // Factor of the all-maximum-clock time, or seconds.

  friend bool operator==(const PlanTarget&, const PlanTarget&) = default;
};
// "1.02x", "5.3s" (also ms, us), "min-energy", "fastest", "tstar". A number without a unit may mean
// a factor or seconds, and is refused.
Result<PlanTarget> ParsePlanTarget(std::string_view text);
// Its inverse; a factor of one is "1.0x".
std::string PlanTargetText(const PlanTarget& target);

}  // namespace v0
}  // namespace perseus
PERSEUS_EXPORT_END

#endif  // PERSEUS_PLAN_H_
