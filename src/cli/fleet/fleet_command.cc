// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include <atomic>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <future>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "cli/cluster/json_values.h"
#include "cli/cluster/server_client.h"
#include "cli/commands.h"
#include "cli/fleet/fleet_summary.h"
#include "cli/framework/terminal.h"
#include "cli/framework/value_parsers.h"
#include "cli/planning/plan.h"
#include "common/belief.h"
#include "common/file.h"
#include "common/located_error.h"
#include "common/nearest_name.h"
#include "fleet/site.h"
#include "http/target.h"
#include "job/job_fields.h"
#include "perseus/fleet.h"
#include "perseus/plan_file.h"

// `perseus fleet`.
namespace perseus::cli {
namespace {

// How a site says that what is implausible is meant.
constexpr std::string_view kAcceptingInJobFile = "set accept_implausible = true in its job file";

using Json = nlohmann::ordered_json;

struct ServerJob {
  std::string id;
  std::string name;
  std::string state;
  double stragglers = 0;
};

// Whether a job of this state runs, or will: it draws power.
bool Draws(std::string_view state) { return state != "finished" && state != "failed"; }

Result<std::vector<ServerJob>> JobsOf(ServerClient* server) {
  std::vector<ServerJob> jobs;
  std::string after;
  while (true) {
    const std::string target =
        "/api/v1/jobs?limit=1000" + (after.empty() ? "" : "&after=" + http::PercentEncoded(after));
    const Result<std::string> text = server->Text("GET", target);
    if (!text) return tl::unexpected(text.error());
    const Json page = ServerClient::Parsed(*text);
    for (const Json& each : ListOf(page, "jobs")) {
      ServerJob job = {MemberText(each, "id"), MemberText(each, "name"), MemberText(each, "state"),
                       NumberOf(each, "stragglers").value_or(0)};
      if (!job.id.empty() && Draws(job.state)) jobs.push_back(std::move(job));
    }
    after = MemberText(page, "next");
    if (after.empty()) return jobs;
  }
}

Result<fleet::SharedModel> ModelOf(ServerClient* server, const ServerJob& job) {
  const std::string path = "/api/v1/jobs/" + http::PercentEncoded(job.id);
  const Result<std::string> frontier = server->Text("GET", path + "/frontier");
  if (!frontier) return tl::unexpected(frontier.error());
  const Result<std::string> plan = server->Text("GET", path + "/plan.json");
  if (!plan) return tl::unexpected(plan.error());
  return fleet::ParseModel(*plan, path + "/plan.json", *frontier, path + "/frontier");
}

bool IsOfServer(const fleet::SiteJob& job) {
  return !job.settings.profile && job.plan_folder.empty();
}

// Adds the jobs of a server to those of the file, and a model for each of them: [job], null for
// jobs of the file that have a source of their own.
Result<std::vector<fleet::SharedModel>> AddServerJobs(ServerClient* server, fleet::SiteFile* file,
                                                      std::vector<Note>* notes) {
  const Result<std::vector<ServerJob>> jobs = JobsOf(server);
  if (!jobs) return tl::unexpected(jobs.error());
  std::map<std::string, int> same_names;
  for (const ServerJob& job : *jobs) ++same_names[job.name];
  std::map<std::string, std::size_t> index;  // Of the file's jobs.
  for (std::size_t j = 0; j < file->jobs.size(); ++j) index[file->jobs[j].name] = j;

  std::vector<fleet::SharedModel> models(file->jobs.size());
  std::set<std::size_t> found;
  for (const ServerJob& job : *jobs) {
    // A name that several jobs have, or none, says nothing: then it is the id.
    const std::string& name = job.name.empty() || same_names[job.name] > 1 ? job.id : job.name;
    auto known = index.find(name);
    if (known == index.end()) known = index.find(job.id);
    std::optional<std::size_t> at;
    if (known != index.end() && IsOfServer(file->jobs[known->second])) at = known->second;
    if (at) found.insert(*at);
    if (at && file->jobs[*at].is_left_out) continue;
    if (!at && known != index.end()) {
      const JobPlace& place = file->jobs[known->second].place;
      return InvalidAt(place.file, place.line, place.column,
                       fmt::format("the server has a job '{}', too; remove the frontier of this "
                                   "one, or give it another name",
                                   name));
    }
    Result<fleet::SharedModel> model = ModelOf(server, job);
    if (!model) {
      return InvalidInput(fmt::format(
          "the job '{}' of the server ({}) has no frontier: {}; wait until it has one, or name it "
          "in the site file with 'leave_out = true' and take its power off the budget",
          name, job.state, model.error().message));
    }
    if (job.stragglers > 0) {
      notes->push_back({.severity = Severity::kOdd,
                        .text = fmt::format("the job '{}' of the server has stragglers, and this "
                                            "division does not know them",
                                            name)});
    }
    if (!at) {
      fleet::SiteJob added;
      added.name = name;
      added.place = file->node_places.front();
      file->jobs.push_back(std::move(added));
      models.emplace_back();
      at = models.size() - 1;
    }
    models[*at] = *std::move(model);
  }
  std::vector<std::string> names;
  for (const ServerJob& job : *jobs) names.push_back(job.name.empty() ? job.id : job.name);
  for (std::size_t j = 0; j < file->jobs.size(); ++j) {
    const fleet::SiteJob& job = file->jobs[j];
    if (models[j] != nullptr || found.contains(j) || !IsOfServer(job) || job.is_left_out) continue;
    return InvalidAt(job.place.file, job.place.line, job.place.column,
                     fmt::format("the server has no job {}{}; give the job a frontier ('job', "
                                 "'plan' or 'profile'), or remove it",
                                 Shown(job.name), NearestHint(job.name, names)));
  }
  if (file->jobs.empty()) return InvalidInput("the server has no job to divide power among");
  return models;
}

constexpr std::string_view kFleetFileName = "fleet.json";

// `threads` at a time, the calling one included.
fleet::ForEach InThreads(int threads) {
  return [threads](std::size_t count, const std::function<void(std::size_t)>& work) {
    std::atomic<std::size_t> next = 0;
    const auto take = [&] {
      for (std::size_t k = next++; k < count; k = next++) work(k);
    };
    std::vector<std::future<void>> helpers;
    for (int k = 1; k < threads && static_cast<std::size_t>(k) < count; ++k) {
      try {
        helpers.push_back(std::async(std::launch::async, take));
      } catch (const std::system_error&) {  // No more threads: fewer do the same.
        break;
      }
    }
    take();
    for (std::future<void>& helper : helpers) helper.get();
  };
}

std::vector<InputFile> InputsOfSite(const std::string& path, const fleet::SiteFile& file) {
  std::vector<InputFile> inputs = {{"the site file", path}};
  for (const fleet::SiteJob& job : file.jobs) {
    if (job.settings.profile) inputs.push_back({"a job's profile", *job.settings.profile});
    if (!job.plan_folder.empty()) {
      inputs.push_back(
          {"a job's frontier", job.plan_folder + "/" + std::string(kFrontierFileName)});
    }
  }
  return inputs;
}

std::string FolderOf(const std::string& directory, const std::string& job) {
  return (std::filesystem::path(directory) / job).string();
}

// Before any work: whether all files could be written, and would replace no input.
Result<void> CheckFleetOutputs(const FleetFlags& flags, const fleet::SiteFile& file) {
  if (flags.output_directory.empty()) return {};
  const std::vector<InputFile> inputs = InputsOfSite(flags.input, file);
  if (auto good = CheckOutputFiles(flags.output_directory, {std::string(kFleetFileName)}, inputs);
      !good) {
    return good;
  }
  const std::vector<std::string> names = {std::string(kPlanFileName),
                                          std::string(kFrontierFileName)};
  for (const fleet::SiteJob& job : file.jobs) {
    if (!job.settings.profile) continue;
    if (auto good = CheckOutputFiles(FolderOf(flags.output_directory, job.name), names, inputs);
        !good) {
      return good;
    }
  }
  return {};
}

// A folder for each job, each whole; then the answer.
Result<void> WriteFleet(const FleetSummary& summary) {
  const std::string& directory = summary.output_directory;
  for (std::size_t j = 0; j < summary.site.models.size(); ++j) {
    const fleet::JobModel& model = *summary.site.models[j];
    if (summary.plan.plans[j] == nullptr) continue;
    Result<PlanDocument> document = model.job->Document(*model.planner, *summary.plan.plans[j]);
    if (!document) return tl::unexpected(document.error());
    document->data_parallel = summary.site.file.jobs[j].pipelines;
    const std::vector<OutputFile> files = {
        {std::string(kPlanFileName), FormatPlanJson(*document)},
        {std::string(kFrontierFileName), FormatFrontierCsv(model.planner->frontier())}};
    const std::string folder = FolderOf(directory, summary.site.file.jobs[j].name);
    if (auto written = WriteFilesAtomically(folder, files); !written) return written;
  }
  return WriteFilesAtomically(directory, {{std::string(kFleetFileName), FormatFleetJson(summary)}});
}

// Why there is no division: an answer, too.
Result<Printout> Refuse(const FleetFlags& flags, const fleet::Site& site, Error error) {
  if (error.code != ErrorCode::kInfeasible) return tl::unexpected(std::move(error));
  const Result<std::vector<PowerShortage>> shortages = FindShortages(site.power);
  if (!shortages) return tl::unexpected(shortages.error());
  if (shortages->empty()) {
    const JobPlace& place = site.file.node_places.front();
    error.message = fmt::format(
        "{}:{}:{}: the power is enough for the frontiers of all jobs, but "
        "not for plans, which draw a little more: {}",
        place.file, place.line, place.column, error.message);
  } else {
    error = ShortageError(site, *shortages);
  }
  if (!flags.json) return tl::unexpected(std::move(error));
  Printout printout(FormatShortagesJson(site, *shortages, error.message));
  printout.is_refusal = true;
  return printout;
}

Result<Printout> RunFleetPlan(const FleetFlags& flags, const Style& style) {
  if (flags.input.empty()) {
    return InvalidInput("the site file is missing, as in 'perseus fleet plan site.toml'");
  }
  const bool has_server = !flags.server.server.empty();
  Result<fleet::SiteFile> file = fleet::ReadSiteFile(flags.input, has_server);
  if (!file) return tl::unexpected(file.error());
  if (auto good = CheckFleetOutputs(flags, *file); !good) return tl::unexpected(good.error());
  FleetSummary summary;
  summary.output_directory = flags.output_directory;
  std::vector<fleet::SharedModel> known;
  if (has_server) {
    Result<ServerClient> server = ServerClient::Connect(flags.server);
    if (!server) return tl::unexpected(server.error());
    auto models = AddServerJobs(&*server, &*file, &summary.notes);
    if (!models) return tl::unexpected(models.error());
    known = *std::move(models);
  }
  ProgressLine progress("frontiers");
  Result<fleet::Site> site =
      fleet::LoadSite(*std::move(file), std::move(known), progress.Function());
  if (!site) return tl::unexpected(site.error());
  if (auto good = RefuseUnbelievable(site->notes, kAcceptingInJobFile); !good) {
    return tl::unexpected(good.error());
  }
  summary.notes.insert(summary.notes.end(), site->notes.begin(), site->notes.end());

  fleet::FleetPlanOptions options;
  if (flags.effort) options.effort = *flags.effort;
  options.for_each = InThreads(UsualThreads());
  options.told = [&progress](std::size_t plans) {
    progress.Announce(fmt::format("{} plans", plans));
  };
  Result<fleet::FleetPlan> plan = fleet::PlanFleet(*site, options);
  if (!plan) return Refuse(flags, *site, plan.error());
  summary.site = *std::move(site);
  summary.plan = *std::move(plan);
  if (!summary.output_directory.empty()) {
    if (auto written = WriteFleet(summary); !written) return tl::unexpected(written.error());
  }
  return Printout(flags.json ? FormatFleetJson(summary) : FormatFleet(summary, style),
                  summary.output_directory);
}

Result<Printout> RunFleetCurves(const FleetFlags& flags) {
  Result<fleet::SiteFile> file = fleet::ReadSiteFile(flags.input);
  if (!file) return tl::unexpected(file.error());
  ProgressLine progress("frontiers");
  const Result<fleet::Site> site = fleet::LoadSite(*std::move(file), {}, progress.Function());
  if (!site) return tl::unexpected(site.error());
  if (auto good = RefuseUnbelievable(site->notes, kAcceptingInJobFile); !good) {
    return tl::unexpected(good.error());
  }
  progress.SetWhat("plans");
  const Result<std::string> curves = fleet::FormatCurves(*site, progress.Function());
  if (!curves) return tl::unexpected(curves.error());
  return Printout(*curves);
}

void AddFleetPlan(CommandParser* parser, FleetFlags* flags) {
  parser->AddAction(
      &flags->action, "plan",
      "Divide a power budget among many jobs.\n\nReads a site file (docs/reference/files.md): a "
      "power budget, the jobs, and what each may be asked for. Finds the division of the power "
      "with which the jobs do the most work, makes a plan for each job, and says how far these "
      "plans are from the best that is possible. Changes nothing on any GPU.",
      {{"what each job gets of 40 kW", "perseus fleet plan site.toml"},
       {"write the plan of each job", "perseus fleet plan site.toml -o fleet/"},
       {"divide among the jobs of a server, and print JSON",
        "perseus fleet plan site.toml --server http://127.0.0.1:7787 --json"}});
  parser->AddInput(&flags->input, "SITE.toml", "The site file.");
  parser->AddValue<double>(
      &flags->effort, "--effort", "FACTOR",
      fmt::format("How much work to search for each plan (default {}); see 'perseus plan --help'.",
                  fleet::kFleetEffort),
      [](std::string_view text) {
        return ParseQuantity(text, {job::kMinEffort, job::kMaxEffort});
      });
  parser->SetGroup("Output");
  parser->AddOutput(&flags->output_directory, ValueKind::kDirectory,
                    "Write fleet.json into this folder, and for each job a folder of its name with "
                    "plan.json and frontier.csv.");
  parser->AddFlag(&flags->json, "--json", "Print one JSON document instead of text.");
  AddServerOptions(parser, &flags->server,
                   "Divide among the jobs of this server, too: http://HOST:PORT, "
                   "https://HOST:PORT or unix:PATH. A job of the site file without a frontier of "
                   "its own then says more of the server's job of this name.");
}

void AddFleetCurves(CommandParser* parser, FleetFlags* flags) {
  parser->AddAction(
      &flags->action, "curves",
      "Print what each job of a site can do.\n\nOne JSON document (docs/reference/files.md): the "
      "limits and jobs of a site file, and for each kind of job its frontier, some plans, one "
      "clock "
      "for all GPUs and one power cap for all. 'python -m perseus fleet emulate' works on it.",
      {{"the curves of a site", "perseus fleet curves site.toml"}});
  parser->AddInput(&flags->input, "SITE.toml", "The site file.");
  parser->AddFlag(&flags->json, "--json", "For scripts: the answer is JSON in any case.");
}

}  // namespace

Result<Printout> RunFleet(const FleetFlags& flags, const Style& style) {
  return flags.action == "curves" ? RunFleetCurves(flags) : RunFleetPlan(flags, style);
}

void AddFleetCommand(CommandParser* parser, Invocation* invocation) {
  parser->AddCommand("fleet",
                     "Divide the power of a site among its jobs, simulated: no GPU is touched.",
                     {{"what each job gets of a budget", "perseus fleet plan site.toml"},
                      {"what each job can do", "perseus fleet curves site.toml"}});
  AddFleetPlan(parser, &invocation->fleet);
  AddFleetCurves(parser, &invocation->fleet);
}

}  // namespace perseus::cli
