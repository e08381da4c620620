// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "evaluation/jobs.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include "evaluation/csv_table.h"
#include "evaluation/derived_job.h"
#include "evaluation/planning.h"
#include "evaluation/runs.h"
#include "evaluation/zeus_rows.h"

namespace perseus::sosp24 {
namespace {

namespace fs = std::filesystem;

constexpr std::array kSlowdowns = {1.05, 1.1, 1.2, 1.3, 1.4, 1.5};  // Table 4.

std::string Shown(const Workload& workload) {
  return fmt::format("Job {} on {} ({})", workload.model, workload.gpu, workload.Layout());
}

bool FastestFirst(const std::vector<Sosp24Point>& plans) {
  return !plans.empty() &&
         plans.front().iteration_time_seconds < plans.back().iteration_time_seconds;
}

// As the artifact's tables take them: slowest plan first, fastest last, by the
// order in which they were run.
std::vector<Sosp24Point> SlowToFast(std::vector<Sosp24Point> plans) {
  if (FastestFirst(plans)) std::reverse(plans.begin(), plans.end());
  return plans;
}

std::string Plans(const std::vector<int>& numbers) {
  return fmt::format("{} {}", numbers.size() == 1 ? "plan" : "plans", fmt::join(numbers, ", "));
}

double ErrorPercent(double predicted, double measured) {
  return 100 * (predicted - measured) / measured;
}

// Never below 0, as in the paper's Table 3.
double SlowdownPercent(const Sosp24Point& baseline, const Sosp24Point& point) {
  return std::max(0.0, 100 * (point.iteration_time_seconds / baseline.iteration_time_seconds - 1));
}

// One job under way.
class Job {
 public:
  Job(const Workload& workload, const JobSources& sources, double blocking_power_watts,
      Sosp24Evaluation* evaluation)
      : workload_(workload),
        sources_(sources),
        blocking_power_watts_(blocking_power_watts),
        evaluation_(evaluation) {
    job_.gpu = workload.gpu;
    job_.model = workload.model;
    job_.layout = workload.Layout();
    job_.stages = workload.stages;
    job_.microbatch_size = workload.microbatch_size;
    job_.microbatches = workload.microbatches;
  }

  Result<void> ReadBaselines();
  Result<void> ReadPerseus();
  Result<void> ReadEnvPipe();
  void FillTable3();
  Result<void> PlanOurs(const Sosp24Options& options);
  Result<void> FillTable4(const Sosp24Options& options);
  void Finish();

 private:
  void Missing(const std::string& what) {
    evaluation_->missing.push_back(fmt::format("{}: {}", Shown(workload_), what));
  }
  bool HasBaseline() const { return job_.baseline.energy_joules > 0; }
  void NameAbsentPlans();
  Result<void> ReplayPublished(const DerivedJob& derived);
  std::optional<double> PerseusPercent(double slowdown) const;
  std::optional<double> EnvPipePercent(double slowdown) const;
  // Of the whole job, with what its GPUs use while they wait until `seconds`.
  // Waiting may be negative: EnvPipe's plan is charged with the iteration's time
  // even where it is slower, as the artifact does.
  double Until(const Sosp24Point& point, double seconds) const {
    return point.energy_joules +
           (seconds - point.iteration_time_seconds) * workload_.Gpus() * blocking_power_watts_;
  }

  const Workload& workload_;
  const JobSources& sources_;
  double blocking_power_watts_;
  Sosp24Evaluation* evaluation_;
  Sosp24Job job_;
  std::optional<RunFolder> runs_;
  std::vector<int> plan_numbers_;  // Of job_.perseus, where there are raw runs.
  std::optional<DerivedJob> derived_;
};

Result<void> Job::ReadBaselines() {
  const fs::path folder = sources_.root / "zeus" / "csv" / workload_.gpu;
  const auto global = ReadZeus(folder / "zeus_global.csv", workload_);
  if (!global) return tl::unexpected(global.error());
  const auto local = ReadZeus(folder / "zeus_local.csv", workload_);
  if (!local) return tl::unexpected(local.error());
  job_.zeus_global = Points(*global);
  job_.zeus_per_stage = Points(*local);
  const auto highest = std::max_element(
      global->begin(), global->end(),
      [](const ZeusRow& a, const ZeusRow& b) { return a.power_limit_watts < b.power_limit_watts; });
  if (highest == global->end()) {
    Missing(
        fmt::format("zeus/csv/{}/zeus_global.csv has no rows of it, and so no baseline, so it "
                    "is left out of Tables 3 and 4.",
                    workload_.gpu));
  } else {
    job_.baseline = highest->point;
  }
  // Without stages to balance it is ZeusGlobal.
  if (local->empty() && workload_.stages > 1) {
    Missing(
        fmt::format("zeus/csv/{}/zeus_local.csv has no rows of it, so the curve of ZeusPerStage is "
                    "left out of Figure 9.",
                    workload_.gpu));
  }
  return {};
}

Result<void> Job::ReadPerseus() {
  runs_ = FindRunFolder(sources_.root, "perseus", workload_);
  if (runs_) {
    for (const int plan : ListPlans(runs_->path, "prof")) {
      if (plan < runs_->warm_up_plans) continue;
      const Result<Sosp24Point> point = ReadMeasurement(runs_->path, plan);
      if (!point) return tl::unexpected(point.error());
      job_.perseus.push_back(*point);
      plan_numbers_.push_back(plan);
    }
    NameAbsentPlans();
  }
  if (!job_.perseus.empty()) return {};
  for (const fs::path& folder : sources_.measured) {
    const fs::path file = folder / workload_.FileName();
    if (!IsFile(file)) continue;
    constexpr int kWarmUpPlans = 2;
    auto points = ReadSummary(file, kWarmUpPlans);
    if (!points) return tl::unexpected(points.error());
    job_.perseus = *std::move(points);
    job_.summarised = true;
    std::vector<std::string>& beside = evaluation_->read_beside;
    if (!sources_.measured_is_named &&
        std::find(beside.begin(), beside.end(), folder.string()) == beside.end()) {
      beside.push_back(folder.string());
    }
    return {};
  }
  return {};
}

// Plans are numbered without gaps, from the first after those of warm-up.
void Job::NameAbsentPlans() {
  if (plan_numbers_.empty()) return;  // Summaries have them, or nothing has.
  std::vector<std::string> absent;
  int next = runs_->warm_up_plans;
  for (const int plan : plan_numbers_) {
    for (; next < plan; ++next) absent.push_back(fmt::format("{}.prof.json", next));
    next = plan + 1;
  }
  // The last ones leave no gap, but perhaps their clocks.
  for (const int plan : ListPlans(runs_->path, "sched")) {
    if (plan > plan_numbers_.back()) absent.push_back(fmt::format("{}.prof.json", plan));
  }
  if (absent.empty()) return;
  Missing(fmt::format("{} {} absent from {}, so these plans are left out.", fmt::join(absent, ", "),
                      absent.size() == 1 ? "is" : "are", runs_->path.filename().string()));
}

Result<void> Job::ReadEnvPipe() {
  const auto folder = FindRunFolder(sources_.root, "envpipe", workload_);
  if (folder) {
    const std::vector<int> plans = ListPlans(folder->path, "prof");
    // Its one plan is run after those of warm-up.
    if (!plans.empty() && plans.back() >= folder->warm_up_plans) {
      const Result<Sosp24Point> point = ReadMeasurement(folder->path, plans.back());
      if (!point) return tl::unexpected(point.error());
      job_.envpipe = *point;
    }
  }
  std::vector<std::string> absent;
  if (job_.perseus.empty()) absent.emplace_back("Perseus");
  if (!job_.envpipe) absent.emplace_back("EnvPipe");
  if (!absent.empty()) {
    Missing(
        fmt::format("no measured plans of {}, so these cells of Tables 3 and 4 and curves of "
                    "Figure 9 are left out.",
                    fmt::join(absent, " and ")));
  }
  return {};
}

void Job::FillTable3() {
  if (!HasBaseline()) return;
  const double baseline = job_.baseline.energy_joules;
  if (!job_.perseus.empty()) {
    const Sosp24Point fastest = SlowToFast(job_.perseus).back();
    job_.perseus_saving_percent = SavingPercent(baseline, fastest.energy_joules);
    job_.perseus_slowdown_percent = SlowdownPercent(job_.baseline, fastest);
  }
  if (job_.envpipe) {
    job_.envpipe_saving_percent = SavingPercent(baseline, job_.envpipe->energy_joules);
    job_.envpipe_slowdown_percent = SlowdownPercent(job_.baseline, *job_.envpipe);
  }
}

Result<void> Job::PlanOurs(const Sosp24Options& options) {
  if (sources_.derived.empty()) return {};
  const fs::path file = sources_.derived / workload_.FileName();
  if (!IsFile(file)) return {};
  if (options.progress) {
    options.progress(fmt::format("Tables 3 and 4: {}, {}", workload_.model, workload_.gpu));
  }
  Result<DerivedJob> derived = DerivedJob::Create(workload_, file.string(), blocking_power_watts_);
  if (!derived) return tl::unexpected(derived.error());
  if (auto filled = derived->FillPlans(options, &job_); !filled) return filled;
  if (auto replayed = ReplayPublished(*derived); !replayed) return replayed;
  derived_ = *std::move(derived);
  return {};
}

Result<void> Job::ReplayPublished(const DerivedJob& derived) {
  std::vector<int> absent;
  std::vector<int> misfits;
  for (std::size_t i = 0; i < plan_numbers_.size(); ++i) {
    const int number = plan_numbers_[i];
    if (!IsFile(runs_->path / fmt::format("{}.sched.json", number))) {
      absent.push_back(number);
      continue;
    }
    const Result<RankClocks> clocks = ReadClocks(runs_->path, number);
    if (!clocks) return tl::unexpected(clocks.error());
    const std::optional<Plan> plan = derived.PlanOf(*clocks);
    if (!plan) {
      misfits.push_back(number);
      continue;
    }
    const Sosp24Point& measured = job_.perseus[i];
    job_.replay_error_percent.push_back(
        ErrorPercent(plan->iteration_time_seconds, measured.iteration_time_seconds));
    job_.replay_energy_error_percent.push_back(
        ErrorPercent(workload_.data_parallel * plan->energy_joules, measured.energy_joules));
    const std::size_t fastest = FastestFirst(job_.perseus) ? 0 : job_.perseus.size() - 1;
    if (i != fastest) continue;
    job_.replay_saving_percent = plan->saving_percent;  // The plan of Table 3.
    job_.replay_slowdown_percent =
        ErrorPercent(plan->iteration_time_seconds, job_.derived_baseline_seconds);
  }
  if (!absent.empty()) {
    Missing(fmt::format("no list of clocks (N.sched.json) of {}, not replayed.", Plans(absent)));
  }
  if (!misfits.empty()) {
    Missing(fmt::format("the clocks of {} do not fit 1F1B or the derived profile, not replayed.",
                        Plans(misfits)));
  }
  return {};
}

// Of the plans, from the slowest on, the first that is in time.
std::optional<double> Job::PerseusPercent(double slowdown) const {
  if (!HasBaseline()) return std::nullopt;
  const double until = slowdown * job_.baseline.iteration_time_seconds;
  for (const Sosp24Point& plan : SlowToFast(job_.perseus)) {
    if (plan.iteration_time_seconds > until) continue;
    return SavingPercent(Until(job_.baseline, until), Until(plan, until));
  }
  return std::nullopt;
}

std::optional<double> Job::EnvPipePercent(double slowdown) const {
  if (!HasBaseline() || !job_.envpipe) return std::nullopt;
  const double until = slowdown * job_.baseline.iteration_time_seconds;
  return SavingPercent(Until(job_.baseline, until), Until(*job_.envpipe, until));
}

Result<void> Job::FillTable4(const Sosp24Options& options) {
  std::vector<double> late;
  for (const double slowdown : kSlowdowns) {
    Sosp24JobStraggler row;
    row.gpu = workload_.gpu;
    row.model = workload_.model;
    row.slowdown = slowdown;
    row.perseus_percent = PerseusPercent(slowdown);
    row.envpipe_percent = EnvPipePercent(slowdown);
    if (HasBaseline() && !job_.perseus.empty() && !row.perseus_percent) late.push_back(slowdown);
    if (derived_) {
      const Result<double> ours = derived_->StragglerPercent(slowdown, options.effort);
      if (!ours) return tl::unexpected(ours.error());
      row.ours_percent = *ours;
    }
    if (row.perseus_percent || row.envpipe_percent || row.ours_percent) {
      evaluation_->job_stragglers.push_back(std::move(row));
    }
  }
  if (!late.empty()) {
    Missing(fmt::format(
        "no measured plan of Perseus ends in time at slowdown {}, so its cells of Table 4 are left "
        "out there.",
        fmt::join(late, ", ")));
  }
  return {};
}

void Job::Finish() {
  if (!job_.zeus_global.empty() || !job_.zeus_per_stage.empty() || !job_.perseus.empty() ||
      job_.envpipe || job_.has_derived) {
    evaluation_->jobs.push_back(std::move(job_));
  }
}

}  // namespace

JobSources FindJobSources(const fs::path& root, const Sosp24Options& options) {
  JobSources sources = {.root = root,
                        .measured = {},
                        .measured_is_named = !options.measured_directory.empty(),
                        .derived = options.derived_directory};
  if (sources.measured_is_named) {
    sources.measured.emplace_back(options.measured_directory);
    return sources;
  }
  std::vector<fs::path> candidates = {root / ".." / "measured"};
  if (!sources.derived.empty()) candidates.push_back(sources.derived / ".." / "measured");
  std::error_code ignored;
  for (const fs::path& folder : candidates) {
    if (fs::is_directory(folder, ignored)) sources.measured.push_back(folder);
  }
  return sources;
}

Result<void> EvaluateJob(const Workload& workload, const JobSources& sources,
                         const Sosp24Options& options, Sosp24Evaluation* evaluation) {
  const auto watts = BlockingPowerWatts(workload.gpu);
  if (!watts) {
    evaluation->missing.push_back(
        fmt::format("{}: the paper states no blocking power for this GPU, so it is left out.",
                    Shown(workload)));
    return {};
  }
  if (options.progress) {
    options.progress(fmt::format("Figure 9: {}, {}", workload.model, workload.gpu));
  }
  Job job(workload, sources, *watts, evaluation);
  if (auto read = job.ReadBaselines(); !read) return read;
  if (auto read = job.ReadPerseus(); !read) return read;
  if (auto read = job.ReadEnvPipe(); !read) return read;
  job.FillTable3();
  if (auto planned = job.PlanOurs(options); !planned) return planned;
  if (auto filled = job.FillTable4(options); !filled) return filled;
  job.Finish();
  return {};
}

}  // namespace perseus::sosp24
