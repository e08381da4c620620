// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "trace/trace_energy.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <string>
#include <utility>

#include "perseus/planner.h"
#include "plan/cost_options.h"
#include "trace/length_fit.h"
#include "trace/recorded_pipeline.h"
#include "trace/trace_policies.h"
#include "trace/trace_replay.h"

namespace perseus::trace {
namespace {

enum PolicyNumber : std::size_t {
  kMaximum,
  kStatic,
  kAnswered,
  kOwn,
  kShared,
  kPredicted,
  kAsSlow,
  kNumTracePolicies
};

struct PolicyText {
  const char* key;
  const char* name;
};
constexpr std::array<PolicyText, kNumTracePolicies> kPolicies = {{
    {"max-clocks", "maximum clocks, as recorded"},
    {"static", "one plan for the mean lengths"},
    {"static-stragglers", "the same, and an answer to stragglers that the detector knows"},
    {"per-iteration-alone", "one plan an iteration, each pipeline by itself"},
    {"per-iteration", "one plan an iteration, as slow as the slowest pipeline"},
    {"per-iteration-lengths", "the same, knowing one length for each microbatch"},
    {"per-iteration-as-slow", "one plan an iteration, given the time that the static plan takes"},
}};

// What a policy makes of the whole recording.
struct PolicyRun {
  std::vector<double> own_seconds;       // [operation]
  std::vector<double> computing_joules;  // [step index]
  std::vector<double> busy_seconds;
};

class EnergyAnalysis {
 public:
  EnergyAnalysis(const Recording& recording, const Links& links, const TraceEnergySpec& spec)
      : recording_(recording),
        links_(links),
        spec_(spec),
        maker_(recording, links),
        own_(OwnSeconds(recording, links)),
        predicted_(FitLengths(recording, own_)) {
    for (PolicyRun& run : runs_) {
      run.own_seconds = own_;
      run.computing_joules.resize(recording.steps.size());
      run.busy_seconds.resize(recording.steps.size());
    }
    rank_watts_ = spec.costs.blocking_power_watts * spec.costs.gpus_per_rank;
  }

  Result<TraceEnergy> Compute() {
    if (auto good = RunStatic(); !good) return tl::unexpected(good.error());
    Finish(kMaximum);
    Finish(kStatic);
    Finish(kAnswered);
    const double as_slow =
        std::max(1.0, result_.plans[kStatic].step_seconds / result_.plans[kMaximum].step_seconds);
    for (std::size_t step = 0; step < recording_.steps.size(); ++step) {
      if (auto good = RunPerIteration(static_cast<int>(step), as_slow); !good) {
        return tl::unexpected(good.error());
      }
    }
    Finish(kOwn);
    Finish(kShared);
    Finish(kPredicted);
    Finish(kAsSlow);
    result_.length_error = predicted_.error;
    Summarise();
    return std::move(result_);
  }

 private:
  struct Costed {
    std::size_t step = 0;
    RecordedPipeline pipeline;
    CostedPipeline costs;
    double seconds = 0;  // At maximum clocks.
    double predicted_seconds = 0;
  };

  Result<Costed> CostOf(int step, int pipeline) const {
    Costed result;
    result.step = static_cast<std::size_t>(step);
    result.pipeline = maker_.Make(step, pipeline, own_);
    const std::vector<double> seconds = Of(result.pipeline, own_);
    auto costs = CostRecorded(result.pipeline, seconds, spec_.costs);
    if (!costs) return tl::unexpected(costs.error());
    result.costs = *std::move(costs);
    result.seconds = Replay(result.pipeline.dag, seconds).iteration_time_seconds;
    result.predicted_seconds =
        Replay(result.pipeline.dag, Of(result.pipeline, predicted_.seconds)).iteration_time_seconds;
    return result;
  }

  // Those of the pipeline's computations.
  static std::vector<double> Of(const RecordedPipeline& pipeline,
                                const std::vector<double>& seconds) {
    std::vector<double> result;
    for (const int operation : pipeline.operations) result.push_back(seconds[operation]);
    return result;
  }

  void Put(PolicyNumber policy, const Costed& of, int computation, const CostOption& option) {
    PolicyRun& run = runs_[policy];
    run.own_seconds[of.pipeline.operations[computation]] = option.time_seconds;
    run.computing_joules[of.step] += option.energy_joules;
    run.busy_seconds[of.step] += option.time_seconds;
  }

  void PutBaseline(PolicyNumber policy, const Costed& of) {
    for (int i = 0; i < of.costs.dag.size(); ++i) Put(policy, of, i, of.costs.TableOf(i).baseline);
  }

  void PutKnobs(PolicyNumber policy, const Costed& of, const StaticPlans::Knobs& knobs) {
    for (int i = 0; i < of.costs.dag.size(); ++i) {
      const ComputationId& id = of.costs.dag.computations[i].id;
      const auto knob = knobs.of.find({id.stage, id.type, id.microbatch});
      const CostTable& table = of.costs.TableOf(i);
      // A microbatch that the first step had not runs at the highest clock.
      const CostOption* option =
          knob == knobs.of.end() ? nullptr : plan::FindOption(table, knob->second);
      Put(policy, of, i, option == nullptr ? table.baseline : *option);
    }
  }

  Result<void> RunStatic() {
    auto plans = StaticPlans::Create(recording_, maker_, own_, spec_);
    if (!plans) return tl::unexpected(plans.error());
    StragglerWatch watch(recording_.pipelines, spec_);
    for (std::size_t step = 0; step < recording_.steps.size(); ++step) {
      const std::vector<double> factors = watch.Known();
      const double slowest = *std::max_element(factors.begin(), factors.end());
      if (slowest > 1) ++result_.stragglers_answered;
      const auto base = plans->For(1.0);
      if (!base) return tl::unexpected(base.error());
      const auto answer = plans->For(slowest);
      if (!answer) return tl::unexpected(answer.error());
      std::vector<double> seconds;
      double predicted = 0;
      for (int pipeline = 0; pipeline < recording_.pipelines; ++pipeline) {
        const auto of = CostOf(static_cast<int>(step), pipeline);
        if (!of) return tl::unexpected(of.error());
        seconds.push_back(of->seconds);
        predicted = std::max(predicted, of->predicted_seconds);
        PutBaseline(kMaximum, *of);
        PutKnobs(kStatic, *of, **base);
        PutKnobs(kAnswered, *of,
                 factors[static_cast<std::size_t>(pipeline)] > 1 ? **base : **answer);
      }
      watch.Add(seconds);
      slowest_pipeline_.push_back(*std::max_element(seconds.begin(), seconds.end()));
      slowest_predicted_.push_back(predicted);
    }
    return {};
  }

  Result<void> RunPerIteration(int step, double as_slow) {
    TraceStepEnergy split;
    split.step = recording_.steps[static_cast<std::size_t>(step)];
    for (int pipeline = 0; pipeline < recording_.pipelines; ++pipeline) {
      auto of = CostOf(step, pipeline);
      if (!of) return tl::unexpected(of.error());
      auto planner = Planner::Create(of->costs, {});
      if (!planner) return tl::unexpected(planner.error());
      const double own = planner->baseline().iteration_time_seconds;
      const double job = std::max(own, slowest_pipeline_[static_cast<std::size_t>(step)]);
      Split(*planner, own, job, &split);
      for (const auto& [policy, seconds] :
           {std::pair(kOwn, own), std::pair(kShared, job), std::pair(kAsSlow, job * as_slow)}) {
        const Result<Plan> plan = planner->PlanFor(seconds, {.effort = spec_.effort});
        if (!plan) return tl::unexpected(plan.error());
        for (int i = 0; i < of->costs.dag.size(); ++i) Put(policy, *of, i, plan->options[i]);
      }
      if (auto good = RunPredicted(*of); !good) return good;
      if (!GoesOn(step, pipeline)) {
        return MakeError(ErrorCode::kCancelled, "the plans for the recording were cancelled");
      }
    }
    result_.steps.push_back(split);
    return {};
  }

  // Planned by the predicted times, run on the true ones.
  Result<void> RunPredicted(const Costed& of) {
    auto costs = CostRecorded(of.pipeline, Of(of.pipeline, predicted_.seconds), spec_.costs);
    if (!costs) return tl::unexpected(costs.error());
    auto planner = Planner::Create(*std::move(costs), {});
    if (!planner) return tl::unexpected(planner.error());
    const double seconds =
        std::max(planner->baseline().iteration_time_seconds, slowest_predicted_[of.step]);
    const Result<Plan> plan = planner->PlanFor(seconds, {.effort = spec_.effort});
    if (!plan) return tl::unexpected(plan.error());
    for (int i = 0; i < of.costs.dag.size(); ++i) {
      const CostOption* option = plan::FindOption(of.costs.TableOf(i), plan->options[i].knob);
      Put(kPredicted, of, i, option == nullptr ? of.costs.TableOf(i).baseline : *option);
    }
    return {};
  }

  // docs/explanation/emulation.md, "Energy".
  void Split(const Planner& planner, double own, double job, TraceStepEnergy* split) const {
    const CostedPipeline& costs = planner.pipeline();
    const Frontier& frontier = planner.frontier();
    double effective = 0;
    for (int i = 0; i < costs.dag.size(); ++i) {
      effective += EffectiveEnergy(costs.TableOf(i), costs.TableOf(i).baseline);
    }
    const auto least = [&](double seconds) {
      const double at = std::max(seconds, frontier.fastest_seconds);
      return frontier.EnergyAt(at) - costs.total_blocking_power_watts * at;
    };
    split->intrinsic_joules += effective - least(own);
    split->extrinsic_joules += least(own) - least(job);
  }

  // Tells how far it is.
  bool GoesOn(int step, int pipeline) const {
    if (!spec_.progress) return true;
    const double all = static_cast<double>(recording_.steps.size()) * recording_.pipelines;
    const double done = static_cast<double>(step) * recording_.pipelines + pipeline + 1;
    return spec_.progress({.share = done / all});
  }

  // Replays what the policy made of all steps.
  void Finish(PolicyNumber policy) {
    const PolicyRun& run = runs_[policy];
    ReplayTrace(recording_, links_, run.own_seconds, &timing_);
    TracePlanOutcome outcome;
    outcome.key = kPolicies[policy].key;
    outcome.name = kPolicies[policy].name;
    const double steps = static_cast<double>(recording_.steps.size());
    double blocking = 0;
    for (std::size_t step = 0; step < recording_.steps.size(); ++step) {
      const double waiting =
          rank_watts_ * (timing_.step_seconds[step] * recording_.places() - run.busy_seconds[step]);
      outcome.step_joules.push_back(run.computing_joules[step] + waiting);
      outcome.step_seconds_each.push_back(timing_.step_seconds[step]);
      outcome.energy_joules += outcome.step_joules.back() / steps;
      blocking += waiting / steps;
    }
    outcome.step_seconds = MeanOf(timing_.step_seconds);
    if (policy == kMaximum) {
      result_.step_seconds = outcome.step_seconds;
      result_.energy_joules = outcome.energy_joules;
      result_.blocking_joules = blocking;
    }
    if (result_.energy_joules > 0) {
      outcome.saving_percent = 100 * (1 - outcome.energy_joules / result_.energy_joules);
    }
    outcome.slowdown_percent = 100 * (outcome.step_seconds / result_.step_seconds - 1);
    result_.plans.push_back(std::move(outcome));
  }

  void Summarise() {
    const double steps = static_cast<double>(recording_.steps.size());
    for (const TraceStepEnergy& step : result_.steps) {
      result_.intrinsic_joules += step.intrinsic_joules / steps;
      result_.extrinsic_joules += step.extrinsic_joules / steps;
    }
    result_.useful_joules = result_.energy_joules - result_.blocking_joules -
                            result_.intrinsic_joules - result_.extrinsic_joules;
  }

  const Recording& recording_;
  const Links& links_;
  const TraceEnergySpec& spec_;
  PipelineMaker maker_;
  std::vector<double> own_;
  LengthFit predicted_;
  double rank_watts_ = 0;
  std::array<PolicyRun, kNumTracePolicies> runs_;
  std::vector<double> slowest_predicted_;  // [step index]
  std::vector<double> slowest_pipeline_;   // [step index], at maximum clocks.
  TraceTiming timing_;
  TraceEnergy result_;
};

}  // namespace

Result<TraceEnergy> ComputeTraceEnergy(const Recording& recording, const Links& links,
                                       const TraceEnergySpec& spec) {
  return EnergyAnalysis(recording, links, spec).Compute();
}

std::string NoPlanSaves(const TraceEnergy& energy) {
  constexpr double kShownPercent = 0.005;
  const bool same =
      std::all_of(energy.plans.begin(), energy.plans.end(), [](const TracePlanOutcome& plan) {
        return std::abs(plan.slowdown_percent) < kShownPercent &&
               std::abs(plan.saving_percent) < kShownPercent;
      });
  if (!same || energy.plans.size() < 2) return "";
  return fmt::format("The {} other plans are left out: none saves or costs anything here (0.00 %).",
                     energy.plans.size() - 1);
}

}  // namespace perseus::trace
