// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/planning/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "cli/cluster/json_values.h"
#include "cli/cluster/server_client.h"
#include "cli/commands.h"
#include "cli/framework/table.h"
#include "cli/framework/terminal.h"
#include "cli/framework/value_parsers.h"
#include "cli/planning/job.h"
#include "cli/planning/summary.h"
#include "common/file.h"
#include "common/mutex.h"
#include "common/nearest_name.h"
#include "common/printable.h"
#include "http/target.h"
#include "job/job_fields.h"
#include "model/iteration_energy.h"
#include "model/plan_figures.h"
#include "model/saving_interval.h"
#include "perseus/effort.h"
#include "perseus/job_file.h"
#include "perseus/plan_document.h"
#include "perseus/plan_file.h"
#include "perseus/report.h"
#include "perseus/result.h"
#include "plan/named_times.h"
#include "server/planning/conditions_state.h"

namespace perseus::cli {
namespace {

// Plans for different times, each made by itself.
struct Row {
  double seconds = 0;
  std::optional<Result<Plan>> plan;
};

Result<DiscreteBound> BoundOf(const Planner& planner, Plan plan, double effort) {
  if (auto bounded = planner.AddDiscreteBound(&plan, effort); !bounded) {
    return tl::unexpected(bounded.error());
  }
  return *plan.discrete_bound;
}

// The rows are one queue, from which helpers take while the calling thread does the longest work,
// the chosen plan and its bound; then it takes as well.
class RowQueue {
 public:
  RowQueue(const Planner& planner, const PlanConstraints& constraints, double effort,
           std::vector<Row>* rows)
      : planner_(planner), constraints_(constraints), effort_(effort), rows_(*rows) {}
  ~RowQueue() {
    Stop();
    for (std::thread& helper : helpers_) helper.join();
  }
  RowQueue(const RowQueue&) = delete;
  RowQueue& operator=(const RowQueue&) = delete;

  // With the calling one `threads`, where there are so many rows. The second call does nothing.
  void StartHelpers(int threads) {
    if (!helpers_.empty()) return;
    for (int k = 1; k < std::min(threads, Count() + 1); ++k) {
      try {
        helpers_.emplace_back([this] { Work({}); });
      } catch (const std::system_error&) {  // No more threads: fewer do the same.
        break;
      }
    }
  }

  // Takes part until all rows are made. Throws what a helper threw: std::bad_alloc, most likely.
  void Finish(const RowsProgress& progress) {
    Work(progress.row);
    progress.rest();
    for (std::thread& helper : helpers_) helper.join();
    helpers_.clear();
    const MutexLock lock(mutex_);
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  int Count() const { return static_cast<int>(rows_.size()); }
  void Stop() { next_ = Count(); }

  void Work(const std::function<void(int, int)>& begun) {
    try {
      for (int k = next_++; k < Count(); k = next_++) {
        if (begun) begun(k + 1, Count());
        rows_[k].plan =
            planner_.PlanFor(rows_[k].seconds, {.constraints = constraints_, .effort = effort_});
      }
    } catch (...) {
      Stop();
      const MutexLock lock(mutex_);
      if (!failure_) failure_ = std::current_exception();
    }
  }

  const Planner& planner_;
  const PlanConstraints& constraints_;
  const double effort_;
  std::vector<Row>& rows_;
  std::atomic<int> next_ = 0;
  Mutex mutex_;
  std::exception_ptr failure_ PERSEUS_GUARDED_BY(mutex_);  // The first.
  std::vector<std::thread> helpers_;
};

// The different times of the points, but the chosen one, in their order.
std::vector<Row> RowsBesides(double chosen_seconds, const std::vector<PlanPoint>& points) {
  std::vector<double> times;
  times.reserve(points.size());
  for (const PlanPoint& point : points) times.push_back(point.seconds);
  std::sort(times.begin(), times.end());
  std::vector<Row> rows;
  for (const double seconds : times) {
    if (SameTime(seconds, chosen_seconds)) continue;
    if (rows.empty() || !SameTime(rows.back().seconds, seconds)) {
      rows.push_back({.seconds = seconds, .plan = {}});
    }
  }
  return rows;
}

bool SamePlan(const Plan& a, const Plan& b) {
  return std::equal(
      a.options.begin(), a.options.end(), b.options.begin(), b.options.end(),
      [](const CostOption& one, const CostOption& other) { return one.knob == other.knob; });
}

}  // namespace

Result<Plan> PlanRows(const Planner& planner, const PlanConstraints& constraints,
                      const RowEfforts& efforts, int threads, double chosen_seconds,
                      const RowsProgress& progress, std::vector<PlanPoint>* points,
                      bool min_energy) {
  std::vector<Row> rows = RowsBesides(chosen_seconds, *points);
  RowQueue queue(planner, constraints, efforts.row, &rows);
  // Without constraints, helper threads start with the first plan for the chosen time. If there is
  // none, its error is returned at once and need not wait for other rows. Under constraints the
  // first plan may come only at the end of the search, so helpers start now.
  if (constraints.any()) queue.StartHelpers(threads);
  const ProgressFunction told = [&](const Progress& reached) {
    if (reached.better != nullptr) queue.StartHelpers(threads);
    progress.chosen(reached.share);
    return true;
  };
  auto chosen = planner.PlanFor(
      chosen_seconds, {.constraints = constraints, .effort = efforts.chosen, .progress = told});
  if (!chosen) return tl::unexpected(chosen.error());
  queue.StartHelpers(threads);
  std::optional<DiscreteBound> bound;
  if (efforts.bound > 0) {
    progress.bound();
    auto found = BoundOf(planner, *chosen, efforts.bound);
    if (!found) return tl::unexpected(found.error());
    bound = *found;
  }
  queue.Finish(progress);

  const auto after = std::find_if(rows.begin(), rows.end(), [chosen_seconds](const Row& row) {
    return row.seconds > chosen_seconds;
  });
  const Plan before = *chosen;
  rows.insert(after, {.seconds = chosen_seconds, .plan = std::move(chosen)});
  std::vector<Plan> plans;
  std::vector<double> times;
  for (Row& row : rows) {
    if (!*row.plan && row.plan->error().code != ErrorCode::kInfeasible) {
      return tl::unexpected(row.plan->error());
    }
    if (!*row.plan) continue;
    plans.push_back(**std::move(row.plan));
    times.push_back(row.seconds);
  }
  plan::CarryForward(planner.pipeline(), &plans);
  Plan best;
  for (std::size_t k = 0; k < plans.size(); ++k) {
    if (times[k] == chosen_seconds) best = plans[k];
    for (PlanPoint& point : *points) {
      if (SameTime(point.seconds, times[k])) point.plan = plans[k];
    }
  }
  const std::size_t least = plan::LeastEnergy(plans);
  if (min_energy) best = plans[least];
  for (PlanPoint& point : *points) {
    if (point.name != plan::kMinEnergyName) continue;
    point.seconds = times[least];
    point.plan = plans[least];
  }
  SortByTime(points);
  if (bound && !SamePlan(best, before)) {  // The plan for less time is better.
    auto found = BoundOf(planner, best, efforts.bound);
    if (!found) return tl::unexpected(found.error());
    bound = *found;
  }
  best.discrete_bound = bound;
  return best;
}

int UsualThreads() { return static_cast<int>(std::max(1U, std::thread::hardware_concurrency())); }

namespace {

// As the server plans for them: of each boundary if 'stages' says how many there are, else one for
// all, their median.
void TakeTransfers(const std::vector<nlohmann::ordered_json>& shown, JobFile* settings) {
  std::vector<server::MeasuredTransfer> transfers;
  for (const auto& transfer : shown) {
    const std::optional<double> seconds = NumberOf(transfer, "measured_s");
    const auto boundary = static_cast<int>(NumberOf(transfer, "boundary").value_or(0));
    if (seconds) transfers.push_back({.boundary = boundary, .seconds = *seconds});
  }
  if (!settings->stages) {
    constexpr int kNone = 1 << 20;  // A boundary that the median stands for.
    for (server::MeasuredTransfer& transfer : transfers) transfer.boundary = kNone;
  }
  server::SetTransfers(transfers, settings->stages.value_or(2), settings);
}

// The JSON of the profile or job of this name. Profiles come first, as their ids begin with "p-".
Result<std::string> TextOf(ServerClient* client, const std::string& name) {
  constexpr int kNotFound = 404;
  const bool may_be_profile = name.starts_with("p-");
  if (may_be_profile) {
    int status = 0;
    Result<std::string> profile =
        client->Text("GET", "/api/v1/profiles/" + http::PercentEncoded(name), "", &status);
    if (profile || status != kNotFound) return profile;
  }
  const Result<std::string> path = client->JobPath(name);
  if (path) return client->Text("GET", *path);
  if (!may_be_profile) return tl::unexpected(path.error());
  return InvalidInput(
      fmt::format("there is no profile {}, and {}; 'perseus profile list' shows all profiles",
                  Printable(name), path.error().message));
}

}  // namespace

// Sets the noise and the latency that a job of a server measured, or that a profile of its library
// has from the jobs that used it, where the settings say nothing. Fails if there is nothing.
Result<void> TakeConditionsOf(const std::string& name, const ServerFlags& server,
                              JobFile* settings) {
  using server::Condition;
  Result<ServerClient> client = ServerClient::Connect(server);
  if (!client) return tl::unexpected(client.error());
  const Result<std::string> text = TextOf(&*client, name);
  if (!text) return tl::unexpected(text.error());
  server::MeasuredConditions measured;
  const auto shown = ServerClient::Parsed(*text);
  for (const auto& figure : ListOf(ObjectOf(shown, "conditions"), "figures")) {
    for (std::size_t i = 0; i < server::kConditions; ++i) {
      const std::optional<double> value = NumberOf(figure, "measured");
      if (!value || MemberText(figure, "name") != server::kConditionNames[i]) continue;
      measured.figures[i] = {
          .value = *value, .error = NumberOf(figure, "measured_std").value_or(0), .ranks = 1};
    }
  }
  for (const auto& each : ListOf(ObjectOf(shown, "conditions"), "latency_at")) {
    const std::optional<double> seconds = NumberOf(each, "measured_s");
    const std::optional<double> clock = NumberOf(each, "clock_mhz");
    if (!seconds || !clock) continue;
    measured.latency_at.push_back(
        {static_cast<int>(*clock),
         {.value = *seconds, .error = NumberOf(each, "measured_s_std").value_or(0), .ranks = 1}});
  }
  if (measured.ranks() == 0) {
    if (!shown.contains("state")) {  // Not a job.
      return InvalidInput(fmt::format(
          "no job that used the profile {} has measured noise and latency yet; name a job "
          "('perseus job list'), or give --noise and --switch-latency",
          Printable(name)));
    }
    return InvalidInput(
        fmt::format("job {} has measured neither noise nor latency yet; its ranks tell them after "
                    "some ten iterations under a plan ('perseus job show {}')",
                    Printable(name), Printable(name)));
  }
  server::SetMeasured(measured, settings);
  TakeTransfers(ListOf(ObjectOf(shown, "conditions"), "transfers"), settings);
  return {};
}

// The same for the table [conditions] of this file, which may hold nothing else.
Result<void> TakeConditionsFrom(const std::string& path, JobFile* settings) {
  const Result<JobFile> file = ReadJobFile(path);
  if (!file) return tl::unexpected(file.error());
  const bool has_latency = settings->switch_latency_seconds.has_value();  // For all clocks.
  bool gives_any = false;
  for (const job::Field& field : job::Fields()) {
    if (!job::IsSet(field, *file)) continue;
    if (!field.condition()) {
      return InvalidInput(fmt::format(
          "{}: --conditions takes a file with the table [{}] alone, but '{}' stands outside of it",
          Shown(path), job::kConditionsTable, field.key));
    }
    gives_any = true;
    if (job::IsSet(field, *settings)) continue;
    if (has_latency && field.key == "switch_latency_at") continue;
    std::visit([&](auto member) { settings->*member = (*file).*member; }, field.member);
  }
  if (!gives_any) {
    return InvalidInput(
        fmt::format("{}: it has no condition; give some under [conditions], as in 'switch_latency "
                    "= \"20ms\"'",
                    Shown(path)));
  }
  return {};
}

void AddPlanCommand(CommandParser* parser, Invocation* invocation) {
  parser->AddCommand(
      "plan",
      "Show what can be saved, and write a plan of clocks.\n\nReads a profile, computes the least "
      "energy for every iteration time (the frontier), and makes plans for some of these times: no "
      "slowdown, +1 %, +2 % and so on. Each plan has a gap: the best plan of the same time uses "
      "less energy by at most this much. Without -o no file is written.",
      {{"what is saved without slowing down, and what a little more time would buy",
        "perseus plan profile.csv --schedule 1f1b --microbatches 96 --blocking-power 83.64"},
       {"write the plan that may take 2 % longer, with report and timeline",
        "perseus plan profile.csv --schedule 1f1b --microbatches 96 --blocking-power 83.64 "
        "--at 1.02x -o plan/"},
       {"everything from a job file, but 48 microbatches",
        "perseus plan job.toml --microbatches 48"},
       {"one clock for each stage, as JSON", "perseus plan job.toml --granularity stage --json"}});
  AddPipelineOptions(parser, &invocation->job,
                     "Data-parallel pipelines of the job (default 1). Under conditions, an "
                     "iteration lasts as long as the slowest of them. Without conditions, only the "
                     "job's total depends on this number.");
  AddPlanOptions(parser, &invocation->job,
                 "How much work to search for a plan. 1 (default) takes about a second of CPU for "
                 "8 stages and 96 microbatches, and half a minute under conditions. More work "
                 "never makes the plan worse, but gains little: 4 adds some hundredths of a "
                 "percentage point to the saving, or nothing.");
  parser->SetGroup("Conditions");
  parser->AddValue<std::string>(
      &invocation->conditions_of, "--conditions-of", "JOB|PROFILE",
      "Plan for the noise, latency, pauses and transfers that this job of a server measured (its "
      "id, name or "
      "client key), or that jobs measured with this profile of the server's library (its id). A "
      "value that is given beside it is taken instead.",
      [](std::string_view text) -> Result<std::string> { return std::string(text); });
  parser->AddText(
      "--conditions", "FILE",
      "Plan for the conditions in this file: the table [conditions] of a job file. A value that "
      "is given beside it is taken instead.",
      CommandParser::NotEmpty(&invocation->conditions_file, "expected a file, got nothing"),
      {ValueKind::kFile, {}});
  AddConditionOptions(parser, &invocation->job);
  AddRobustOptions(parser, &invocation->job);
  AddSolverOptions(parser, &invocation->job);
  parser->SetGroup("Output");
  parser->AddOutput(&invocation->job.overrides.output, ValueKind::kDirectory,
                    "Write plan.json, frontier.csv, timeline.pftrace, report.html and the plan "
                    "file for Zeus into this folder. After an error, none of them is written.");
  parser->AddFlag(&invocation->json, "--json", "Print one JSON document instead of text.");
  AddServerOptions(parser, &invocation->server, "The server that --conditions-of asks.");
  parser->SetCommon({"--schedule", "--microbatches", "--blocking-power", "--tp", "--dp", "--at",
                     "--noise", "--switch-latency", "--output", "--json"});
}

namespace {

// Of the effort for the plan: for its tighter bound.
constexpr double kBoundEffort = 0.5;

// Rows of the table besides.
constexpr int kRows = 7;

std::string FlagValue(Granularity granularity) {
  return fmt::format(" {}", GranularityName(granularity));
}
std::string FlagValue(double /*value*/) { return ""; }

// Each constraint alone, as on the command line.
std::vector<std::pair<std::string, PlanConstraints>> Separately(const PlanConstraints& all) {
  std::vector<std::pair<std::string, PlanConstraints>> single;
  std::string_view field;
  for (const model::Constraint& each : model::Constraints()) {
    if (!each.IsIn(all)) continue;
    if (each.field != field) {
      single.emplace_back(job::FindField(each.field)->flag, PlanConstraints{});
      single.back().first += each.On(all, [](const auto& value) { return FlagValue(value); });
      field = each.field;
    }
    each.Copy(all, &single.back().second);
  }
  return single;
}

ConstraintPrice PriceOf(std::string constraint, const Plan& with, const Plan& without) {
  return {std::move(constraint), PercentOver(with.energy_joules, without.energy_joules),
          PercentOver(with.iteration_time_seconds, without.iteration_time_seconds)};
}

Result<std::vector<ConstraintPrice>> PriceConstraints(const Planner& planner, double seconds,
                                                      const PlanConstraints& constraints,
                                                      double effort, const ProgressFunction& told,
                                                      const Plan& chosen) {
  std::vector<ConstraintPrice> prices;
  if (!constraints.any()) return prices;
  const Result<Plan> free = planner.PlanFor(seconds, {.effort = effort, .progress = told});
  if (!free) return tl::unexpected(free.error());
  const auto single = Separately(constraints);
  if (single.size() == 1) {
    prices.push_back(PriceOf(single.front().first, chosen, *free));
    return prices;
  }
  for (const auto& [name, one] : single) {
    const Result<Plan> plan =
        planner.PlanFor(seconds, {.constraints = one, .effort = effort, .progress = told});
    // A search that finds all together may still miss one of them alone.
    if (!plan && plan.error().code == ErrorCode::kInfeasible) continue;
    if (!plan) return tl::unexpected(plan.error());
    prices.push_back(PriceOf(name, *plan, *free));
  }
  prices.push_back(PriceOf("all together", chosen, *free));
  return prices;
}

// The rows of the points, where the chosen plan is one of them; that of the conditions stands after
// the point that it was asked for.
std::vector<ReportRow> RowsOf(const std::vector<PlanPoint>& points, double chosen_seconds,
                              const Plan& chosen, bool is_robust) {
  std::vector<ReportRow> rows;
  bool has_robust = false;
  for (const PlanPoint& point : points) {
    ReportRow row;
    if (point.plan) row = MakeReportRow(point.label, *point.plan);
    row.label = point.label;
    row.name = point.name;
    row.feasible = point.plan.has_value();
    row.requested_time_seconds = point.seconds;
    const bool asked = SameTime(point.seconds, chosen_seconds);
    row.chosen = asked && !is_robust;
    if (row.chosen) row.discrete_bound = chosen.discrete_bound;
    rows.push_back(std::move(row));
    if (!asked || !is_robust || has_robust) continue;
    has_robust = true;
    row = MakeReportRow(std::string(kRobustRowLabel), chosen);
    row.name = kRobustRowName;
    row.chosen = true;
    rows.push_back(std::move(row));
  }
  return rows;
}

// Fills in what the report says of the robust plan.
void SetRobust(RobustSummary held, PlanSummary* summary) {
  summary->held = std::move(held);
  const RobustPlan& robust = summary->held->robust;
  summary->conditions = robust.conditions;
  summary->expected = summary->held->expected;
  summary->expected_of_paper_plan = summary->held->paper;
  summary->paper_plan = &robust.paper_plan;
  summary->bound_percent = robust.bound.saving_percent;
  summary->bound_is_proven = robust.bound.proven;
  for (const ChangePricePoint& point : robust.price_curve) {
    summary->price_curve.emplace_back(point.changes, point.saving_percent);
  }
}

// Writes all output files, or none.
Result<void> WriteOutputs(const Job& job, const Planner& planner, PlanSummary* summary) {
  const std::string& directory = summary->output_directory;
  Result<PlanDocument> made = job.Document(planner, *summary->chosen);
  if (!made) return tl::unexpected(made.error());
  PlanDocument& document = *made;
  if (summary->held) {
    document.conditions = summary->held->robust.conditions;
    document.expected = summary->held->expected;
  }
  std::string plan_json = FormatPlanJson(document);
  if (plan_json.size() > kMaxPlanFileBytes) {
    return InvalidInput(fmt::format(
        "{} would have {} MiB, more than the {} that can be read back; shorten the names of the "
        "knobs, or use fewer microbatches",
        kPlanFileName, plan_json.size() >> 20, kMaxPlanFileBytes >> 20));
  }
  std::vector<OutputFile> files = {
      {std::string(kPlanFileName), std::move(plan_json)},
      {std::string(kFrontierFileName), FormatFrontierCsv(*summary->frontier)}};
  Result<std::string> zeus = FormatZeusPlan(document);
  if (zeus) {
    files.push_back({std::string(kZeusPlanFileName), *std::move(zeus)});
  } else if (zeus.error().code == ErrorCode::kInfeasible) {
    summary->remarks.push_back(zeus.error().message + ".");
    NoteStale(directory, kZeusPlanFileName, &summary->remarks);
  } else {
    return tl::unexpected(zeus.error());
  }
  ReportInput report = *summary;
  if (summary->held) {
    for (std::string& each : RobustPlanNotes(*summary->held))
      report.remarks.push_back(std::move(each));
  }
  const auto add = [&files](std::string_view name, Result<std::string> bytes) -> Result<void> {
    if (!bytes) return tl::unexpected(bytes.error());
    files.push_back({std::string(name), *std::move(bytes)});
    return {};
  };
  if (auto good = add(kTraceFileName, FormatTimelineTrace(report)); !good) return good;
  if (auto good = add("report.html", FormatHtmlReport(report)); !good) return good;
  for (const OutputFile& file : files) summary->files.push_back(file.name);
  return WriteFilesAtomically(directory, files);
}

}  // namespace

Result<Printout> RunPlan(const Invocation& invocation, const Style& style) {
  Result<JobFile> settings = MergeSettings(invocation.job);
  if (!settings) return tl::unexpected(settings.error());
  if (!invocation.conditions_file.empty()) {
    const auto taken = TakeConditionsFrom(invocation.conditions_file, &*settings);
    if (!taken) return tl::unexpected(taken.error());
  }
  if (!invocation.conditions_of.empty()) {
    const auto taken = TakeConditionsOf(invocation.conditions_of, invocation.server, &*settings);
    if (!taken) return tl::unexpected(taken.error());
  }
  if (auto good = CheckPairs(*settings, false, false); !good) return tl::unexpected(good.error());
  if (settings->output) {
    const std::vector<std::string> names = {
        std::string(kPlanFileName), std::string(kFrontierFileName), std::string(kZeusPlanFileName),
        std::string(kTraceFileName), "report.html"};
    const auto good =
        CheckOutputFiles(*settings->output, names, InputsOf(invocation.job, *settings));
    if (!good) return tl::unexpected(good.error());
  }
  const Result<Job> job = LoadBelievableJob(invocation.job, *std::move(settings), "plan");
  if (!job) return tl::unexpected(job.error());
  const PlanTarget target = job->Target();
  const PlanConstraints constraints = job->Constraints();
  const double effort = job->Effort();
  ProgressLine progress("frontier");
  const Result<Planner> planner = MakePlanner(*job, effort * (1 + kRows * kTableEffort), &progress);
  if (!planner) return tl::unexpected(planner.error());

  PlanSummary summary;
  summary.profile = &job->profile;
  summary.pipeline = &planner->pipeline();
  summary.frontier = &planner->frontier();
  summary.baseline = &planner->baseline();
  summary.virtual_stages = job->virtual_stages;
  summary.data_parallel = job->DataParallel();
  summary.split_ratio = job->costs.split_ratio;
  summary.at = PlanTargetText(target);
  summary.title = "Energy plan: " + std::filesystem::path(job->profile.source).stem().string();
  summary.constraints = constraints;
  const Result<double> seconds = planner->TargetSeconds(target);
  if (!seconds) return tl::unexpected(seconds.error());
  summary.notes = job->NotesAt(planner->frontier(), *seconds);
  if (auto good = RefuseNotes(summary.notes, job->settings.strict.value_or(false)); !good) {
    return tl::unexpected(good.error());
  }
  summary.remarks = PipelineRemarks(planner->pipeline(), job->virtual_stages);
  if (job->settings.measures_conditions && !HasConditions(job->settings)) {
    summary.remarks.emplace_back(
        "[conditions] gives neither noise nor latency, so a server measures them; this plan is "
        "made for none. --conditions-of JOB|PROFILE takes what a job measured");
  }
  for (const ClockLatency& each : ConditionsOf(job->settings).switching.latency_at) {
    const std::vector<Knob>& knobs = planner->pipeline().knobs;
    const bool is_there = std::any_of(knobs.begin(), knobs.end(),
                                      [&](const Knob& knob) { return knob.number == each.clock; });
    if (is_there) continue;
    summary.remarks.push_back(
        fmt::format("the clock {:g} has a latency of its own, but the profile has no such clock: "
                    "no plan uses it",
                    each.clock));
  }
  progress.SetWhat("plan");
  std::vector<PlanPoint> points =
      TablePoints(planner->frontier(), planner->baseline().iteration_time_seconds, *seconds,
                  summary.at, &summary.beyond_tstar);
  const RowEfforts efforts = {.chosen = effort,
                              .row = kTableEffort * effort,
                              .bound = HasConditions(job->settings) ? 0 : kBoundEffort * effort};
  const auto begun = [&progress](int row, int rows) {
    progress.Announce(fmt::format("plan {} of {}", row + 1, rows + 1));
  };
  const RowsProgress rows_progress = {
      .chosen = [&progress](double share) { progress.Report(share); },
      .bound = [&progress] { progress.Announce("optimality gap"); },
      .row = begun,
      .rest = [&progress] { progress.Announce("last plans"); }};
  Result<Plan> chosen =
      PlanRows(*planner, constraints, efforts, UsualThreads(), *seconds, rows_progress, &points,
               target.kind == PlanTarget::Kind::kMinEnergy);
  if (!chosen) return tl::unexpected(chosen.error());
  const double chosen_seconds = chosen->requested_time_seconds;
  const ProgressFunction told = progress.Function();
  if (constraints.any()) progress.Announce("price of the constraints");
  auto prices = PriceConstraints(*planner, *seconds, constraints, effort, told, *chosen);
  if (!prices) return tl::unexpected(prices.error());
  summary.prices = *std::move(prices);
  if (HasConditions(job->settings)) {
    Result<RobustSummary> held = MakeRobustPlan(*job, *planner, *seconds, effort, &progress);
    if (!held) return tl::unexpected(held.error());
    SetRobust(*std::move(held), &summary);
    chosen = summary.held->robust.plan;
  }
  chosen->saving_interval =
      model::IntervalOfSaving(planner->pipeline(), chosen->options, chosen->waiting);
  if (const auto iteration = model::DefaultClockIterationOf(planner->pipeline())) {
    chosen->default_clocks = model::AgainstDefaultClocks(*iteration, *chosen);
  }
  summary.chosen = &*chosen;
  summary.rows = RowsOf(points, chosen_seconds, *chosen, summary.held.has_value());
  if (job->settings.output) {
    summary.output_directory = *job->settings.output;
    if (auto written = WriteOutputs(*job, *planner, &summary); !written) {
      return tl::unexpected(written.error());
    }
  }
  if (!invocation.json) {
    return Printout(FormatPlanSummary(summary, style), summary.output_directory);
  }
  Result<std::string> json = FormatPlanSummaryJson(summary);
  if (!json) return tl::unexpected(json.error());
  return Printout(*std::move(json), summary.output_directory);
}

}  // namespace perseus::cli
