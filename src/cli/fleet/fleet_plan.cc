// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include <atomic>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <future>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "cli/cluster/server_client.h"
#include "cli/fleet/fleet_actions.h"
#include "cli/fleet/fleet_summary.h"
#include "cli/framework/outputs.h"
#include "cli/planning/plan_rows.h"
#include "common/belief.h"
#include "common/file.h"
#include "perseus/fleet.h"
#include "perseus/plan_file.h"
#include "site/site.h"

// `perseus fleet plan`.
namespace perseus::cli {
namespace {

constexpr std::string_view kFleetFileName = "fleet.json";

// `threads` at a time, the calling one included.
site::ForEach InThreads(int threads) {
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

std::vector<InputFile> InputsOfSite(const std::string& path, const site::SiteFile& file) {
  std::vector<InputFile> inputs = {{"the site file", path}};
  for (const site::SiteJob& job : file.jobs) {
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
Result<void> CheckFleetOutputs(const FleetFlags& flags, const site::SiteFile& file) {
  if (flags.output_directory.empty()) return {};
  const std::vector<InputFile> inputs = InputsOfSite(flags.input, file);
  if (auto good = CheckOutputFiles(flags.output_directory, {std::string(kFleetFileName)}, inputs);
      !good) {
    return good;
  }
  const std::vector<std::string> names = {std::string(kPlanFileName),
                                          std::string(kFrontierFileName)};
  for (const site::SiteJob& job : file.jobs) {
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
    const site::JobModel& model = *summary.site.models[j];
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
Result<Printout> Refuse(const FleetFlags& flags, const site::Site& site, Error error) {
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

}  // namespace

Result<Printout> RunFleetPlan(const FleetFlags& flags, const Style& style) {
  if (flags.input.empty()) {
    return InvalidInput("the site file is missing, as in 'perseus fleet plan site.toml'");
  }
  const bool has_server = !flags.server.server.empty();
  Result<site::SiteFile> file =
      site::ReadSiteFile(flags.input, {.days = {}, .jobs_may_be_missing = has_server});
  if (!file) return tl::unexpected(file.error());
  if (auto good = CheckFleetOutputs(flags, *file); !good) return tl::unexpected(good.error());
  FleetSummary summary;
  summary.output_directory = flags.output_directory;
  std::vector<site::SharedModel> known;
  if (has_server) {
    Result<ServerClient> server = ServerClient::Connect(flags.server);
    if (!server) return tl::unexpected(server.error());
    auto models = AddServerJobs(&*server, &*file, &summary.notes);
    if (!models) return tl::unexpected(models.error());
    known = *std::move(models);
  }
  ProgressLine progress("frontiers");
  Result<site::Site> site = site::LoadSite(*std::move(file), std::move(known), progress.Function());
  if (!site) return tl::unexpected(site.error());
  if (auto good = RefuseUnbelievable(site->notes, kAcceptingInJobFile); !good) {
    return tl::unexpected(good.error());
  }
  summary.notes.insert(summary.notes.end(), site->notes.begin(), site->notes.end());

  site::FleetPlanOptions options;
  if (flags.effort) options.effort = *flags.effort;
  options.for_each = InThreads(UsualThreads());
  options.told = [&progress](std::size_t plans) {
    progress.Announce(fmt::format("{} plans", plans));
  };
  Result<site::FleetPlan> plan = site::PlanFleet(*site, options);
  if (!plan) return Refuse(flags, *site, plan.error());
  summary.site = *std::move(site);
  summary.plan = *std::move(plan);
  if (!summary.output_directory.empty()) {
    if (auto written = WriteFleet(summary); !written) return tl::unexpected(written.error());
  }
  return Printout(flags.json ? FormatFleetJson(summary) : FormatFleet(summary, style),
                  summary.output_directory);
}

}  // namespace perseus::cli
