// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "model/plan_figures.h"
#include "perseus/job.h"
#include "perseus/job_file.h"
#include "perseus/plan_file.h"
#include "perseus/planner_c.h"
#include "perseus/report.h"
#include "planner_c/boundary.h"
#include "planner_c/handles.h"
#include "planner_c/planner_input.h"

namespace perseus::planner_c {
namespace {

using SharedJob = std::shared_ptr<const PlannedJob>;

std::unique_ptr<perseus_plan> NewPlan(PlanDocument document) {
  PlanColumns columns(document);
  return std::make_unique<perseus_plan>(perseus_plan{std::move(document), std::move(columns)});
}

std::unique_ptr<perseus_plan> NewPlan(const SharedJob& planned, JobFile settings, JobPlan made) {
  auto plan = NewPlan(std::exchange(made.document, {}));
  plan->job = planned;
  plan->settings = std::move(settings);
  plan->made = std::move(made);
  return plan;
}

Result<std::unique_ptr<perseus_plan>> NewPlan(const SharedJob& planned, JobFile settings,
                                              const Planner& planner, Plan plan,
                                              const PlanConstraints& constraints) {
  PlanContext context = planned->job.Context();
  context.constraints = constraints;
  context.notes = planned->job.NotesAt(planner.frontier(), plan.requested_time_seconds);
  JobPlan made = {.planner = planner, .plan = std::move(plan)};
  Result<PlanDocument> document = MakePlanDocument(planner, made.plan, context);
  if (!document) return tl::unexpected(document.error());
  made.document = *std::move(document);
  return NewPlan(planned, std::move(settings), std::move(made));
}

// report.html, with the one row of the plan.
Result<std::string> ReportText(const perseus_plan& plan) {
  if (!plan.made) {
    return InvalidInput(
        "a plan that was read from a file knows no profile, which a report shows; make the plan "
        "again with a planner");
  }
  Job job = plan.job->job;
  job.settings = plan.settings;
  JobPlan made = *plan.made;
  made.document = plan.document;
  return FormatHtmlReport(ReportOf(job, made));
}

Result<std::unique_ptr<perseus_plan>> MakePlan(const SharedJob& planned,
                                               std::string_view settings_json,
                                               const Progress& progress) {
  Result<JobFile> settings = ReadPlanSettings(settings_json, planned->job.settings);
  if (!settings) return tl::unexpected(settings.error());
  JobPlanSpec spec = {.settings = *settings, .with_bound = false};
  spec.progress = ToldAs(progress);
  Result<JobPlan> made = MakeJobPlan(planned->job, planned->planner, spec);
  if (!made) return tl::unexpected(made.error());
  return NewPlan(planned, *std::move(settings), *std::move(made));
}

// `others`: as many factors as `work` has for each of the pipelines that this one waits for.
Result<std::unique_ptr<perseus_plan>> MakePlanForWork(const SharedJob& planned, const double* work,
                                                      std::size_t work_count, const double* others,
                                                      std::size_t num_others,
                                                      std::string_view settings_json,
                                                      const Progress& progress) {
  const Result<JobFile> settings = ReadPlanSettings(settings_json, planned->job.settings);
  if (!settings) return tl::unexpected(settings.error());
  // The job's conditions are for its one plan.
  if (const auto asked = ReadSettings(settings_json); asked && HasConditions(*asked)) {
    return InvalidInput(
        "a plan for given lengths is made without conditions; leave 'conditions' out here");
  }
  const auto microbatches = static_cast<std::size_t>(planned->job.pipeline.dag.num_microbatches);
  if (work_count != microbatches) {
    return InvalidInput(fmt::format(
        "the work of {} microbatches is given, but the pipeline has {}; give one factor for each",
        work_count, microbatches));
  }
  const StreamOptions options = StreamOptionsOf(*settings);
  const StreamPlanner stream = planned->stream.With(options);
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
  Result<StreamPlan> made =
      stream.PlanFor(Work({work, work + work_count}), slowest, ToldAs(progress));
  if (!made) return tl::unexpected(made.error());
  return NewPlan(planned, *settings, made->planner, std::move(made->plan), options.constraints);
}

// The figures of plan.json that have a member in C, by their group and name in the list of figures.
using CFigures = perseus_plan_figures;
constexpr struct {
  std::string_view group;
  std::string_view name;
  std::variant<double CFigures::*, std::int32_t CFigures::*> member;
} kMembers[] = {
    {"", "requested_time_s", &CFigures::requested_time_seconds},
    {"", "iteration_time_s", &CFigures::iteration_time_seconds},
    {"", "energy_j", &CFigures::energy_joules},
    {"", "average_power_w", &CFigures::average_power_watts},
    {"", "lower_bound_j", &CFigures::lower_bound_joules},
    {"", "gap_percent", &CFigures::gap_percent},
    {"", "saving_percent", &CFigures::saving_percent},
    {"", "knob_changes", &CFigures::knob_changes},
    {"", "distinct_knobs", &CFigures::distinct_knobs},
    {model::kSharedKnobGroup, "lower_bound_j", &CFigures::shared_knob_bound_joules},
    {model::kSharedKnobGroup, "gap_percent", &CFigures::shared_knob_gap_percent},
    {model::kSharedKnobGroup, "proven", &CFigures::proven_best},
    {model::kExpectedGroup, "iteration_time_s", &CFigures::expected_iteration_time_seconds},
    {model::kExpectedGroup, "energy_j", &CFigures::expected_energy_joules},
    {model::kExpectedGroup, "slowdown_percent", &CFigures::expected_slowdown_percent},
    {model::kExpectedGroup, "saving_percent", &CFigures::expected_saving_percent},
    {model::kExpectedGroup, "clock_calls", &CFigures::expected_clock_calls},
};

CFigures FiguresOf(const perseus_plan& plan) {
  CFigures figures = {};
  figures.has_shared_knob_bound = plan.document.shared_knobs ? 1 : 0;
  figures.has_expected = plan.document.expected ? 1 : 0;
  for (const model::FigureValue& value : model::FigureValues(plan.document)) {
    if (!value.known) continue;
    for (const auto& [group, name, member] : kMembers) {
      if (group != value.group || name != value.name) continue;
      std::visit(
          [&](auto pointer) {
            using Number = std::remove_reference_t<decltype(figures.*pointer)>;
            figures.*pointer = static_cast<Number>(value.value);
          },
          member);
    }
  }
  return figures;
}

// The texts of the list of figures are literals, so they end with a zero.
perseus_figure FigureOf(const model::FigureValue& from) {
  perseus_figure figure = {};
  figure.known = from.known ? 1 : 0;
  figure.whole = from.whole ? 1 : 0;
  figure.group = from.group.data();
  figure.name = from.name.data();
  figure.unit = model::FigureUnitName(from.unit).data();
  figure.text = from.says.data();
  figure.value = from.value;
  return figure;
}

}  // namespace

PlanColumns::PlanColumns(const PlanDocument& document)
    : num_ranks(static_cast<int>(document.ranks.size())) {
  for (int r = 0; r < num_ranks; ++r) {
    for (const PlannedComputation& computation : document.ranks[r].computations) {
      const std::optional<ComputationId>& fused = computation.fused;
      rank.push_back(r);
      type.push_back(static_cast<std::int32_t>(computation.id.type));
      stage.push_back(computation.id.stage);
      microbatch.push_back(computation.id.microbatch);
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

perseus_status perseus_planner_plan(const perseus_planner* planner, const char* settings_json,
                                    size_t settings_json_size, perseus_planner_progress progress,
                                    void* user, perseus_plan** plan, char** message) {
  return pc::Guarded(message, [&] {
    if (plan != nullptr) *plan = nullptr;
    if (planner == nullptr || plan == nullptr) {
      return pc::FailInvalid("there is no planner, or no place for the plan", message);
    }
    const auto json =
        perseus::c_boundary::TextOf("settings_json", settings_json, settings_json_size);
    if (!json) return pc::Fail(json.error(), message);
    return pc::Give(pc::MakePlan(planner->job, *json, {progress, user}), plan, message);
  });
}

perseus_status perseus_planner_plan_work(const perseus_planner* planner, const double* work,
                                         size_t work_count, const char* settings_json,
                                         size_t settings_json_size,
                                         perseus_planner_progress progress, void* user,
                                         perseus_plan** plan, char** message) {
  return perseus_planner_plan_work_among(planner, work, work_count, nullptr, 0, settings_json,
                                         settings_json_size, progress, user, plan, message);
}

perseus_status perseus_planner_plan_work_among(const perseus_planner* planner, const double* work,
                                               size_t work_count, const double* others,
                                               size_t num_others, const char* settings_json,
                                               size_t settings_json_size,
                                               perseus_planner_progress progress, void* user,
                                               perseus_plan** plan, char** message) {
  return pc::Guarded(message, [&] {
    if (plan != nullptr) *plan = nullptr;
    if (planner == nullptr || plan == nullptr || work == nullptr) {
      return pc::FailInvalid("there is no planner, no work, or no place for the plan", message);
    }
    if (others == nullptr && num_others > 0) {
      return pc::FailInvalid("the work of other pipelines is not given", message);
    }
    const auto json =
        perseus::c_boundary::TextOf("settings_json", settings_json, settings_json_size);
    if (!json) return pc::Fail(json.error(), message);
    return pc::Give(pc::MakePlanForWork(planner->job, work, work_count, others, num_others, *json,
                                        {progress, user}),
                    plan, message);
  });
}

perseus_status perseus_planner_baseline(const perseus_planner* planner, perseus_plan** plan,
                                        char** message) {
  return pc::Guarded(message, [&] {
    if (plan != nullptr) *plan = nullptr;
    if (planner == nullptr || plan == nullptr) {
      return pc::FailInvalid("there is no planner, or no place for the plan", message);
    }
    const pc::PlannedJob& planned = *planner->job;
    return pc::Give(pc::NewPlan(planner->job, planned.job.settings, planned.planner,
                                planned.planner.baseline(), {}),
                    plan, message);
  });
}

perseus_status perseus_plan_read(const char* json, size_t json_size, const char* name,
                                 perseus_plan** plan, char** message) {
  return pc::Guarded(message, [&] {
    if (plan != nullptr) *plan = nullptr;
    if (json == nullptr || plan == nullptr) {
      return pc::FailInvalid("there is no text of a plan, or no place for the plan", message);
    }
    const auto text = perseus::c_boundary::TextOf("json", json, json_size);
    if (!text) return pc::Fail(text.error(), message);
    auto document = perseus::ParsePlanJson(*text, name == nullptr ? "plan.json" : name);
    if (!document) return pc::Fail(document.error(), message);
    *plan = pc::NewPlan(*std::move(document)).release();
    return PERSEUS_OK;
  });
}

void perseus_plan_free(perseus_plan* plan) { delete plan; }

perseus_status perseus_plan_get_figures(const perseus_plan* plan, perseus_plan_figures* figures,
                                        char** message) {
  return pc::Guarded(message, [&] {
    if (plan == nullptr) return pc::FailInvalid("there is no plan", message);
    return pc::Give("perseus_plan_figures", pc::FiguresOf(*plan), figures, message);
  });
}

size_t perseus_plan_figure_count(const perseus_plan* plan) {
  return plan == nullptr ? 0 : perseus::model::FigureValues(plan->document).size();
}

perseus_status perseus_plan_get_figure(const perseus_plan* plan, size_t index,
                                       perseus_figure* figure, char** message) {
  return pc::Guarded(message, [&] {
    if (plan == nullptr) return pc::FailInvalid("there is no plan", message);
    const auto values = perseus::model::FigureValues(plan->document);
    if (index >= values.size()) {
      return pc::FailInvalid(
          fmt::format("there is no figure {}: there are {}, counted from 0", index, values.size()),
          message);
    }
    return pc::Give("perseus_figure", pc::FigureOf(values[index]), figure, message);
  });
}

perseus_status perseus_plan_get_columns(const perseus_plan* plan, perseus_plan_columns* columns,
                                        char** message) {
  return pc::Guarded(message, [&] {
    if (plan == nullptr) return pc::FailInvalid("there is no plan", message);
    return pc::Give("perseus_plan_columns", plan->columns.Columns(), columns, message);
  });
}

size_t perseus_plan_note_count(const perseus_plan* plan) {
  return plan == nullptr ? 0 : plan->document.notes.size();
}

perseus_status perseus_plan_get_note(const perseus_plan* plan, size_t index, perseus_note* note,
                                     char** message) {
  return pc::Guarded(message, [&] {
    if (plan == nullptr) return pc::FailInvalid("there is no plan", message);
    return pc::GiveNote(plan->document.notes, index, note, message);
  });
}

perseus_status perseus_plan_json(const perseus_plan* plan, char** text, char** message) {
  return pc::Guarded(message, [&] {
    if (text != nullptr) *text = nullptr;
    if (plan == nullptr || text == nullptr) {
      return pc::FailInvalid("there is no plan, or no place for its text", message);
    }
    *text = pc::NewText(perseus::FormatPlanJson(plan->document));
    return PERSEUS_OK;
  });
}

perseus_status perseus_plan_zeus(const perseus_plan* plan, char** text, char** message) {
  return pc::Guarded(message, [&] {
    if (text != nullptr) *text = nullptr;
    if (plan == nullptr || text == nullptr) {
      return pc::FailInvalid("there is no plan, or no place for its text", message);
    }
    const perseus::Result<std::string> zeus = perseus::FormatZeusPlan(plan->document);
    if (!zeus) return pc::Fail(zeus.error(), message);
    *text = pc::NewText(*zeus);
    return PERSEUS_OK;
  });
}

perseus_status perseus_plan_report(const perseus_plan* plan, char** text, char** message) {
  return pc::Guarded(message, [&] {
    if (text != nullptr) *text = nullptr;
    if (plan == nullptr || text == nullptr) {
      return pc::FailInvalid("there is no plan, or no place for its report", message);
    }
    const perseus::Result<std::string> report = pc::ReportText(*plan);
    if (!report) return pc::Fail(report.error(), message);
    *text = pc::NewText(*report);
    return PERSEUS_OK;
  });
}
