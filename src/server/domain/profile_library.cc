// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "server/domain/profile_library.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>
#include <vector>

#include "common/json_text.h"
#include "perseus/job_file.h"
#include "profile/sha256.h"
#include "server/domain/profiling_summary.h"

namespace perseus::server {
namespace {

using Json = nlohmann::ordered_json;

// The GPUs of each pipeline rank: name and clocks, each different one once. Null where
// a rank does not say.
Json GpusOf(const Shape& shape, const std::map<int, store::RankRecord>& ranks) {
  std::vector<std::set<std::string>> of_stage(static_cast<std::size_t>(shape.pipeline_parallel));
  for (const auto& [number, rank] : ranks) {
    if (rank.gpu_name.empty() || rank.clocks_mhz.empty()) return nullptr;
    std::vector<int> clocks = rank.clocks_mhz;
    std::sort(clocks.begin(), clocks.end());
    of_stage[static_cast<std::size_t>(rank.pp_rank)].insert(
        fmt::format("{}: {}", rank.gpu_name, fmt::join(clocks, " ")));
  }
  return of_stage;
}

}  // namespace

std::string LayoutOf(const LibraryRequest& request, const std::string& settings_json,
                     const Shape& shape, const std::map<int, store::RankRecord>& ranks) {
  if (request.model.empty()) return "";
  const Result<JobFile> settings = ParseJobFile(settings_json, "job", JobFileFormat::kJson);
  const Result<Measurable> measurable = MeasurableOf(settings_json);
  if (!settings || !measurable) return "";
  Json gpus = GpusOf(shape, ranks);
  if (gpus.is_null()) return "";
  return FormatCompact({{"model", request.model},
                        {"microbatch_size", request.microbatch_size},
                        {"stages", measurable->num_stages},
                        {"virtual_stages", settings->virtual_stages.value_or(1)},
                        {"pipeline_parallel", shape.pipeline_parallel},
                        {"tensor_parallel", shape.tensor_parallel},
                        // The schedule decides which parts of a stage share a GPU.
                        {"schedule", settings->schedule_csv ? Sha256Hex(*settings->schedule_csv)
                                                            : settings->schedule.value_or("")},
                        {"splits_backward", measurable->splits_backward},
                        {"gpus", std::move(gpus)}});
}

namespace {

// The description of a profile in the library, for people.
struct Metadata {
  const store::JobRecord& job;
  JobFile settings = {};
  double microbatch_size = 0;
  std::vector<std::string> gpus = {};
  std::size_t rows = 0;
  ProfilingSummary measured = {};
};
constexpr Field kMetadataFields[] = {
    Value("job_name", [](const Metadata& of) -> const std::string& { return of.job.name; }),
    Value("schedule", [](const Metadata& of) { return of.settings.schedule.value_or(""); }),
    Value("stages", [](const Metadata& of) { return of.settings.stages.value_or(0); }),
    Value("virtual_stages",
          [](const Metadata& of) { return of.settings.virtual_stages.value_or(1); }),
    Value("pipeline_parallel", [](const Metadata& of) { return of.job.pipeline_parallel; }),
    Value("tensor_parallel", [](const Metadata& of) { return of.job.tensor_parallel; }),
    Value<&Metadata::microbatch_size>("microbatch_size").Nullable().UnlessEmpty(),
    Value<&Metadata::gpus>("gpus"),
    Value<&Metadata::rows>("rows"),
    Inline<&Metadata::measured>(kProfilingSummary)};
constexpr Message<Metadata> kMetadata = {"Metadata", kMetadataFields};

}  // namespace

store::ProfileRecord RecordOf(const store::JobRecord& job, int sweep_round,
                              const std::string& layout, const ProfileTable& table,
                              const std::map<int, store::RankRecord>& ranks) {
  const LibraryRequest request = ParseLibraryRequest(job.library_json);
  std::set<std::string> gpus;
  for (const auto& [number, rank] : ranks) {
    if (!rank.gpu_name.empty()) gpus.insert(rank.gpu_name);
  }
  const Result<JobFile> settings = ParseJobFile(job.settings_json, "job", JobFileFormat::kJson);
  const Metadata metadata = {.job = job,
                             .settings = settings.value_or(JobFile()),
                             .microbatch_size = request.microbatch_size,
                             .gpus = {gpus.begin(), gpus.end()},
                             .rows = table.rows(),
                             .measured = SummaryOf(table, job.pipeline_parallel)};
  store::ProfileRecord record;
  record.job = job.id;
  // The job's own digits; of later sweeps of it with their number.
  record.id = "p-" + job.id.substr(std::min<std::size_t>(job.id.size(), 2));
  if (sweep_round > 0) record.id += fmt::format("-{}", sweep_round);
  record.model = request.model;
  record.layout = layout;
  record.metadata_json = wire::Write(kMetadata, metadata);
  record.blocking_power_watts = table.BlockingPowerWatts(job.pipeline_parallel);
  return record;
}

}  // namespace perseus::server
