// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/csv_records.h"
#include "common/file.h"
#include "common/located_error.h"
#include "common/nearest_name.h"
#include "common/numbers.h"
#include "fleet/site.h"
#include "job/job_fields.h"
#include "perseus/emulator.h"
#include "perseus/fleet.h"
#include "perseus/job.h"
#include "perseus/plan_document.h"
#include "perseus/plan_file.h"
#include "perseus/planner.h"
#include "perseus/policy.h"

// From a site file to jobs with frontiers.
namespace perseus::fleet {
namespace {

constexpr std::array<std::string_view, 2> kFrontierColumns = {"iteration_time_s", "energy_j"};

Parsed<std::vector<IterationPoint>> ReadPoints(std::string_view text) {
  CsvRecords records(text);
  CsvRecord record;
  auto more = records.Next(&record);
  if (!more) return tl::unexpected(more.error());
  for (std::size_t k = 0; k < kFrontierColumns.size(); ++k) {
    if (!*more || record.cells.size() <= k || record.cells[k].text != kFrontierColumns[k]) {
      return ProblemAt(0,
                       "expected the columns iteration_time_s,energy_j,slope_w of a frontier "
                       "that 'perseus plan' or 'perseus frontier' has written");
    }
  }
  std::vector<IterationPoint> points;
  while (true) {
    more = records.Next(&record);
    if (!more) return tl::unexpected(more.error());
    if (!*more) break;
    std::array<double, 2> values = {};
    for (std::size_t k = 0; k < values.size(); ++k) {
      if (record.cells.size() <= k) {
        return ProblemAt(record.offset, "expected a time and an energy in each row");
      }
      const Number number = ParseNumber(record.cells[k].text);
      if (number.kind != NumberKind::kFinite || number.value < 0) {
        return ProblemAt(
            record.cells[k].offset,
            fmt::format("expected a number of at least 0, found {}", Shown(record.cells[k].text)));
      }
      values[k] = number.value;
    }
    if (values[0] <= (points.empty() ? 0 : points.back().time_seconds)) {
      return ProblemAt(record.cells[0].offset, "expected times above 0 that grow from row to row");
    }
    points.push_back({values[0], values[1]});
  }
  if (points.empty()) return ProblemAt(text.size(), "the frontier has no row");
  return points;
}

tl::unexpected<Error> AboutJob(const SiteJob& job, Error error) {
  Error located = ErrorAt(job.place.file, job.place.line, job.place.column,
                          fmt::format("the job '{}': {}", job.name, error.message));
  located.code = error.code;
  return tl::unexpected<Error>(std::move(located));
}

Result<SharedModel> ModelOfFolder(const SiteJob& job) {
  const std::filesystem::path folder(job.plan_folder);
  const std::string plan = (folder / kPlanFileName).string();
  const std::string frontier = (folder / kFrontierFileName).string();
  const Result<std::string> plan_text = ReadWholeFile(plan, kMaxPlanFileBytes);
  if (!plan_text) return AboutJob(job, plan_text.error());
  const Result<std::string> frontier_text = ReadWholeFile(frontier, kMaxPlanFileBytes);
  if (!frontier_text) return AboutJob(job, frontier_text.error());
  return ParseModel(*plan_text, plan, *frontier_text, frontier);
}

Result<SharedModel> ModelOfSettings(const SiteJob& job, const ProgressFunction& progress) {
  Result<Job> loaded = Job::Load(job.settings);
  if (!loaded) {
    return loaded.error().line > 0 ? tl::unexpected<Error>(loaded.error())
                                   : AboutJob(job, loaded.error());
  }
  Result<Planner> planner = loaded->MakePlanner(progress);
  if (!planner) return AboutJob(job, planner.error());
  JobModel model;
  for (const FrontierPoint& point : planner->lower_bound().points) {
    model.frontier.push_back({point.iteration_time_seconds, point.energy_joules});
  }
  model.full_speed = PointOf(planner->baseline());
  model.waiting_watts = planner->frontier().total_blocking_power_watts;
  model.gpus = loaded->pipeline.dag.num_ranks * loaded->pipeline.tensor_parallel;
  model.job = *std::move(loaded);
  model.planner = *std::move(planner);
  return SharedModel(std::make_shared<const JobModel>(std::move(model)));
}

bool Alike(const SiteJob& a, const SiteJob& b) {
  return a.plan_folder == b.plan_folder && job::SamePipeline(a.settings, b.settings);
}

// Makes the models that are missing: one for all jobs that are alike.
Result<void> MakeModels(const std::vector<SiteJob>& jobs, std::vector<SharedModel>* models,
                        const ProgressFunction& progress) {
  std::vector<std::size_t> firsts;  // The first job of each.
  std::vector<std::size_t> first_of(jobs.size());
  for (std::size_t j = 0; j < jobs.size(); ++j) {
    if ((*models)[j] != nullptr) continue;
    const auto same = std::find_if(firsts.begin(), firsts.end(),
                                   [&](std::size_t f) { return Alike(jobs[f], jobs[j]); });
    first_of[j] = same == firsts.end() ? j : *same;
    if (same == firsts.end()) firsts.push_back(j);
  }
  double done = 0;
  for (const std::size_t first : firsts) {
    const double count = static_cast<double>(firsts.size());
    const ProgressFunction told = [&](const Progress& now) {
      return !progress || progress({.share = (done + now.share) / count});
    };
    const SiteJob& job = jobs[first];
    auto model = job.plan_folder.empty() ? ModelOfSettings(job, told) : ModelOfFolder(job);
    if (!model) return tl::unexpected(model.error());
    for (std::size_t j = first; j < jobs.size(); ++j) {
      if ((*models)[j] == nullptr && first_of[j] == first) (*models)[j] = *model;
    }
    done += 1;
  }
  return {};
}

// Pipelines with stragglers: they follow the fastest plan, and each iteration of theirs takes as
// long as the emulator says.
class LatePipelines {
 public:
  Result<std::vector<LatePipeline>> Of(const SiteJob& job, const JobModel& model) {
    std::vector<LatePipeline> late;
    std::set<int> pipelines;
    for (const Straggler& each : job.stragglers) {
      if (each.first_iteration == 0) pipelines.insert(each.pipeline);
    }
    if (pipelines.empty()) return late;
    if (!model.planner) {
      return AboutJob(job, {ErrorCode::kInvalidInput,
                            "'stragglers' need a profile, and only its frontier is known; give "
                            "'job' or 'profile'"});
    }
    const Planner& planner = *model.planner;
    auto known = policies_.find(&model);
    if (known == policies_.end()) {
      Result<Plan> plan = planner.PlanFor(planner.frontier().fastest_seconds,
                                          {.constraints = model.job->Constraints()});
      if (!plan && plan.error().code == ErrorCode::kInfeasible) plan = planner.baseline();
      if (!plan) return AboutJob(job, plan.error());
      known = policies_.emplace(&model, MakeSinglePlanPolicy("perseus", *std::move(plan))).first;
    }
    for (const int pipeline : pipelines) {
      EmulationSpec spec;
      spec.target_seconds = planner.baseline().iteration_time_seconds;
      spec.control.reacts = false;
      for (Straggler each : job.stragglers) {
        if (each.pipeline != pipeline || each.first_iteration != 0) continue;
        each.pipeline = 0;
        spec.stragglers.push_back(each);
      }
      const Result<Emulation> emulated = Emulate(planner, *known->second, spec);
      if (!emulated) return AboutJob(job, emulated.error());
      late.push_back({{emulated->time_seconds, emulated->energy.total_joules()}});
    }
    return late;
  }

 private:
  std::map<const JobModel*, std::unique_ptr<Policy>> policies_;
};

void NoteModel(const SiteJob& job, const JobModel& model, std::vector<Note>* notes) {
  if (!model.job) return;
  const std::vector<Note>& own = model.job->notes;
  notes->insert(notes->end(), own.begin(), own.end());
  if (!HasConditions(model.job->settings)) return;
  notes->push_back({.severity = Severity::kOdd,
                    .text = fmt::format("the job '{}' has conditions (noise, late clocks), and a "
                                        "division knows none: its plans are without conditions",
                                        job.name),
                    .source = job.place.file,
                    .line = job.place.line,
                    .column = job.place.column});
}

FleetJob FleetJobOf(const SiteJob& job, const JobModel& model) {
  FleetJob fleet;
  fleet.name = job.name;
  fleet.tenant = job.tenant;
  fleet.frontier = model.frontier;
  fleet.full_speed_seconds = model.full_speed.time_seconds;
  fleet.waiting_watts = model.waiting_watts;
  fleet.pipelines = job.pipelines;
  fleet.fixed_watts = job.fixed_watts;
  fleet.weight = job.weight;
  if (job.max_slowdown) {
    fleet.slowest_seconds = model.full_speed.time_seconds * (1 + *job.max_slowdown);
  }
  fleet.least_watts = job.least_watts;
  fleet.shares = job.shares;
  return fleet;
}

// Jobs that are left out go, and so do their models.
void DropLeftOut(std::vector<SiteJob>* jobs, std::vector<SharedModel>* models) {
  std::size_t kept = 0;
  for (std::size_t j = 0; j < jobs->size(); ++j) {
    if ((*jobs)[j].is_left_out) continue;
    if (kept != j) {
      (*jobs)[kept] = std::move((*jobs)[j]);
      (*models)[kept] = std::move((*models)[j]);
    }
    ++kept;
  }
  jobs->resize(kept);
  models->resize(kept);
}

}  // namespace

Result<SharedModel> ParseModel(std::string_view plan_json, const std::string& plan_name,
                               std::string_view frontier_csv, const std::string& frontier_name) {
  const Result<PlanDocument> plan = ParsePlanJson(plan_json, plan_name);
  if (!plan) return tl::unexpected(plan.error());
  if (plan->exponential_fit) {
    return InvalidInput(
        fmt::format("{}: it was made with the cost curve 'exponential', whose frontier bounds "
                    "nothing; plan the job again without it",
                    plan_name));
  }
  auto points = ReadPoints(frontier_csv);
  if (!points) {
    const TextPosition at = PositionOf(frontier_csv, points.error().offset);
    return InvalidAt(frontier_name, static_cast<int>(at.line), static_cast<int>(at.column),
                     points.error().message);
  }
  JobModel model;
  model.frontier = *std::move(points);
  model.full_speed = {plan->baseline.iteration_time_seconds, plan->baseline.energy_joules};
  for (const PlannedRank& rank : plan->ranks) {
    model.waiting_watts += rank.blocking_power_watts * plan->tensor_parallel;
  }
  model.gpus = static_cast<int>(plan->ranks.size()) * plan->tensor_parallel;
  model.pipelines = plan->data_parallel;
  return SharedModel(std::make_shared<const JobModel>(std::move(model)));
}

Result<Site> LoadSite(SiteFile file, std::vector<SharedModel> known,
                      const ProgressFunction& progress) {
  Site site;
  site.file = std::move(file);
  site.models = std::move(known);
  site.models.resize(site.file.jobs.size());
  DropLeftOut(&site.file.jobs, &site.models);
  if (auto made = MakeModels(site.file.jobs, &site.models, progress); !made) {
    return tl::unexpected(made.error());
  }
  site.power.nodes = site.file.nodes;
  site.power.meter_factor = site.file.power_usage_effectiveness;
  LatePipelines late;
  std::set<const JobModel*> seen;
  for (std::size_t j = 0; j < site.models.size(); ++j) {
    SiteJob& job = site.file.jobs[j];
    const JobModel& model = *site.models[j];
    if (!job.has_pipelines) job.pipelines = model.pipelines;
    if (seen.insert(&model).second) NoteModel(job, model, &site.notes);
    FleetJob fleet = FleetJobOf(job, model);
    Result<std::vector<LatePipeline>> those = late.Of(job, model);
    if (!those) return tl::unexpected(those.error());
    fleet.late = *std::move(those);
    // Accept iterations as long as those of stragglers.
    for (const LatePipeline& each : fleet.late) {
      if (!fleet.slowest_seconds) break;
      fleet.slowest_seconds = std::max(*fleet.slowest_seconds, each.point.time_seconds);
    }
    site.power.jobs.push_back(std::move(fleet));
  }
  return site;
}

}  // namespace perseus::fleet
