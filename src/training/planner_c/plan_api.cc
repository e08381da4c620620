// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "perseus/emulator.h"
#include "perseus/plan_file.h"
#include "perseus/planner_c.h"
#include "perseus/robust_plan.h"
#include "plan/named_times.h"
#include "planner_c/boundary.h"
#include "planner_c/handles.h"
#include "planner_c/planner_input.h"

namespace perseus::planner_c {
namespace {

std::unique_ptr<perseus_plan> NewPlan(Plan plan, PlanDocument document) {
  PlanColumns columns(document);
  return std::make_unique<perseus_plan>(
      perseus_plan{std::move(plan), std::move(document), std::move(columns)});
}

std::unique_ptr<perseus_plan> NewPlan(const PlannedJob& planned, const Planner& planner, Plan plan,
                                      const PlanConstraints& constraints) {
  PlanDocument document = planned.job.Document(planner, plan, constraints);
  return NewPlan(std::move(plan), std::move(document));
}

Result<std::unique_ptr<perseus_plan>> MakePlanThatHolds(const PlannedJob& planned,
                                                        const JobFile& settings, double seconds,
                                                        const PlanCallback& callback) {
  RobustPlanSpec spec = RobustSpecOf(settings);
  spec.with_bound = false;
  // A search that is told to end gives what it has; who gave up wants none.
  bool ended = false;
  const auto told = [&](const PlanProgress& now) {
    ended = ended || (callback && !callback(now));
    return !ended;
  };
  Result<RobustPlan> held = PlanUnder(planned.planner, seconds, spec, told);
  if (ended) return MakeError(ErrorCode::kCancelled, "the search for a plan was cancelled");
  if (!held) return tl::unexpected(held.error());
  const auto expected =
      EmulateUnder(planned.planner, {&held->plan}, held->conditions, held->pipelines,
                   [&](double /*share*/) { return told({.share = 1, .better = nullptr}); });
  if (!expected) return tl::unexpected(expected.error());
  PlanDocument document = planned.job.Document(planned.planner, held->plan, spec.constraints);
  document.conditions = held->conditions;
  document.expected = expected->front();
  return NewPlan(std::move(held->plan), std::move(document));
}

Result<std::unique_ptr<perseus_plan>> MakePlan(const PlannedJob& planned,
                                               std::string_view settings_json,
                                               const Progress& progress) {
  const Result<JobFile> settings = ReadPlanSettings(settings_json, planned.job.settings);
  if (!settings) return tl::unexpected(settings.error());
  const PlanTarget target = settings->at.value_or(PlanTarget{});
  const Result<double> seconds = planned.planner.TargetSeconds(target);
  if (!seconds) return tl::unexpected(seconds.error());
  const PlanConstraints constraints = ConstraintsOf(*settings);
  PlanCallback callback;
  if (progress.function != nullptr) {
    callback = [&progress](const PlanProgress& now) { return progress(now.share); };
  }
  if (HasConditions(*settings)) return MakePlanThatHolds(planned, *settings, *seconds, callback);
  Result<Plan> plan =
      plan::PlanAmongNamed(planned.planner, *seconds, constraints, settings->effort.value_or(1),
                           callback, target.kind == PlanTarget::Kind::kEconomic);
  if (!plan) return tl::unexpected(plan.error());
  return NewPlan(planned, planned.planner, *std::move(plan), constraints);
}

// `others`: as many factors as `work` has for each of the pipelines that this one waits for.
Result<std::unique_ptr<perseus_plan>> MakePlanForWork(const PlannedJob& planned,
                                                      std::vector<double> work,
                                                      const double* others, std::size_t num_others,
                                                      std::string_view settings_json,
                                                      const Progress& progress) {
  const Result<JobFile> settings = ReadPlanSettings(settings_json, planned.job.settings);
  if (!settings) return tl::unexpected(settings.error());
  // The job's conditions are for its one plan.
  if (const auto asked = ReadSettings(settings_json); asked && HasConditions(*asked)) {
    return InvalidInput(
        "a plan for given lengths is made without conditions; leave 'conditions' out here");
  }
  const auto microbatches = static_cast<std::size_t>(planned.job.pipeline.dag.num_microbatches);
  if (work.size() != microbatches) {
    return InvalidInput(fmt::format(
        "the work of {} microbatches is given, but the pipeline has {}; give one factor for each",
        work.size(), microbatches));
  }
  StreamOptions options;
  options.target = settings->at.value_or(PlanTarget{});
  options.constraints = ConstraintsOf(*settings);
  options.effort = settings->effort.value_or(0);
  PlanCallback callback;
  if (progress.function != nullptr) {
    callback = [&progress](const PlanProgress& now) { return progress(now.share); };
  }
  const StreamPlanner stream = planned.stream.With(options);
  double slowest = 0;
  for (std::size_t k = 0; k < num_others; ++k) {
    // Those may need a frontier each.
    if (progress.function != nullptr && !progress(0)) {
      return MakeError(ErrorCode::kCancelled, "the search for a plan was cancelled");
    }
    const double* const other = others + k * microbatches;
    const Result<double> seconds = stream.TargetSeconds(Work({other, other + microbatches}));
    if (!seconds) {
      return MakeError(seconds.error().code,
                       fmt::format("others[{}]: {}", k, seconds.error().message));
    }
    slowest = std::max(slowest, *seconds);
  }
  Result<StreamPlan> made = stream.PlanFor(Work(std::move(work)), slowest, callback);
  if (!made) return tl::unexpected(made.error());
  return NewPlan(planned, made->planner, std::move(made->plan), options.constraints);
}

}  // namespace

PlanColumns::PlanColumns(const PlanDocument& document)
    : num_ranks(static_cast<int>(document.ranks.size())) {
  for (int r = 0; r < num_ranks; ++r) {
    for (const PlannedComputation& computation : document.ranks[r].computations) {
      const std::optional<Action>& fused = computation.fused;
      rank.push_back(r);
      type.push_back(static_cast<std::int32_t>(computation.action.type));
      stage.push_back(computation.action.stage);
      microbatch.push_back(computation.action.microbatch);
      fused_type.push_back(fused ? static_cast<std::int32_t>(fused->type) : -1);
      fused_stage.push_back(fused ? fused->stage : -1);
      fused_microbatch.push_back(fused ? fused->microbatch : -1);
      clock_mhz.push_back(document.knobs_are_numbers ? computation.knob.number
                                                     : std::numeric_limits<double>::quiet_NaN());
      labels.push_back(computation.knob.label);
      start_seconds.push_back(computation.start_seconds);
      duration_seconds.push_back(computation.duration_seconds);
      energy_joules.push_back(computation.energy_joules);
    }
  }
  for (const std::string& label : labels) knob.push_back(label.c_str());
}

perseus_plan_columns PlanColumns::Columns() const {
  perseus_plan_columns columns = {};
  columns.num_ranks = num_ranks;
  columns.count = rank.size();
  columns.rank = rank.data();
  columns.type = type.data();
  columns.stage = stage.data();
  columns.microbatch = microbatch.data();
  columns.fused_type = fused_type.data();
  columns.fused_stage = fused_stage.data();
  columns.fused_microbatch = fused_microbatch.data();
  columns.clock_mhz = clock_mhz.data();
  columns.knob = knob.data();
  columns.start_seconds = start_seconds.data();
  columns.duration_seconds = duration_seconds.data();
  columns.energy_joules = energy_joules.data();
  return columns;
}

}  // namespace perseus::planner_c

namespace pc = perseus::planner_c;

perseus_planner_status perseus_planner_plan(const perseus_planner* planner,
                                            const char* settings_json, size_t settings_json_size,
                                            perseus_planner_progress progress, void* user,
                                            perseus_plan** plan, char** message) {
  return pc::Guarded(message, [&] {
    if (planner == nullptr || plan == nullptr) {
      return pc::Fail(pc::Invalid("there is no planner, or no place for the plan"), message);
    }
    auto made = pc::MakePlan(*planner->job, pc::TextOf(settings_json, settings_json_size),
                             {progress, user});
    if (!made) return pc::Fail(made.error(), message);
    *plan = made->release();
    return PERSEUS_PLANNER_OK;
  });
}

perseus_planner_status perseus_planner_plan_work(const perseus_planner* planner, const double* work,
                                                 size_t work_count, const char* settings_json,
                                                 size_t settings_json_size,
                                                 perseus_planner_progress progress, void* user,
                                                 perseus_plan** plan, char** message) {
  return perseus_planner_plan_work_among(planner, work, work_count, nullptr, 0, settings_json,
                                         settings_json_size, progress, user, plan, message);
}

perseus_planner_status perseus_planner_plan_work_among(
    const perseus_planner* planner, const double* work, size_t work_count, const double* others,
    size_t num_others, const char* settings_json, size_t settings_json_size,
    perseus_planner_progress progress, void* user, perseus_plan** plan, char** message) {
  return pc::Guarded(message, [&] {
    if (planner == nullptr || plan == nullptr || work == nullptr) {
      return pc::Fail(pc::Invalid("there is no planner, no work, or no place for the plan"),
                      message);
    }
    if (others == nullptr && num_others > 0) {
      return pc::Fail(pc::Invalid("the work of other pipelines is not given"), message);
    }
    auto made =
        pc::MakePlanForWork(*planner->job, {work, work + work_count}, others, num_others,
                            pc::TextOf(settings_json, settings_json_size), {progress, user});
    if (!made) return pc::Fail(made.error(), message);
    *plan = made->release();
    return PERSEUS_PLANNER_OK;
  });
}

perseus_planner_status perseus_planner_baseline(const perseus_planner* planner, perseus_plan** plan,
                                                char** message) {
  return pc::Guarded(message, [&] {
    if (planner == nullptr || plan == nullptr) {
      return pc::Fail(pc::Invalid("there is no planner, or no place for the plan"), message);
    }
    const pc::PlannedJob& planned = *planner->job;
    *plan = pc::NewPlan(planned, planned.planner, planned.planner.baseline(), {}).release();
    return PERSEUS_PLANNER_OK;
  });
}

void perseus_plan_free(perseus_plan* plan) { delete plan; }

perseus_planner_status perseus_plan_get_figures(const perseus_plan* plan,
                                                perseus_plan_figures* figures) {
  if (plan == nullptr) return PERSEUS_PLANNER_INVALID;
  const perseus::Plan& from = plan->plan;
  perseus_plan_figures known = {};
  known.distinct_knobs = from.distinct_knobs;
  known.knob_changes = from.knob_changes;
  known.has_shared_knob_bound = from.shared_knobs ? 1 : 0;
  known.requested_time_seconds = from.requested_time_seconds;
  known.iteration_time_seconds = from.iteration_time_seconds;
  known.energy_joules = from.energy_joules;
  known.lower_bound_joules = from.lower_bound_joules;
  known.gap_percent = from.gap_percent;
  known.saving_percent = from.saving_percent;
  known.average_power_watts = from.average_power_watts;
  if (from.shared_knobs) {
    known.shared_knob_bound_joules = from.shared_knobs->lower_bound_joules;
    known.shared_knob_gap_percent = from.shared_knobs->gap_percent;
    known.proven_best = from.shared_knobs->proven_best ? 1 : 0;
  }
  if (const auto& expected = plan->document.expected) {
    known.has_expected = 1;
    known.expected_iteration_time_seconds = expected->iteration_time_seconds;
    known.expected_energy_joules = expected->energy_joules;
    known.expected_slowdown_percent = expected->slowdown_percent;
    known.expected_saving_percent = expected->saving_percent;
    known.expected_clock_calls = expected->clock_calls;
  }
  return pc::CopyOut(known, figures);
}

perseus_planner_status perseus_plan_get_columns(const perseus_plan* plan,
                                                perseus_plan_columns* columns) {
  if (plan == nullptr) return PERSEUS_PLANNER_INVALID;
  return pc::CopyOut(plan->columns.Columns(), columns);
}

size_t perseus_plan_note_count(const perseus_plan* plan) {
  return plan == nullptr ? 0 : plan->document.notes.size();
}

perseus_planner_status perseus_plan_get_note(const perseus_plan* plan, size_t index,
                                             perseus_note* note) {
  if (plan == nullptr) return PERSEUS_PLANNER_INVALID;
  return pc::CopyNote(plan->document.notes, index, note);
}

perseus_planner_status perseus_plan_json(const perseus_plan* plan, char** text, char** message) {
  return pc::Guarded(message, [&] {
    if (plan == nullptr || text == nullptr) {
      return pc::Fail(pc::Invalid("there is no plan, or no place for its text"), message);
    }
    *text = pc::NewText(perseus::FormatPlanJson(plan->document));
    return PERSEUS_PLANNER_OK;
  });
}

perseus_planner_status perseus_plan_zeus(const perseus_plan* plan, char** text, char** message) {
  return pc::Guarded(message, [&] {
    if (plan == nullptr || text == nullptr) {
      return pc::Fail(pc::Invalid("there is no plan, or no place for its text"), message);
    }
    const perseus::Result<std::string> zeus = perseus::FormatZeusPlan(plan->document);
    if (!zeus) return pc::Fail(zeus.error(), message);
    *text = pc::NewText(*zeus);
    return PERSEUS_PLANNER_OK;
  });
}
