// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "perseus/job_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

#include "common/nearest_name.h"
#include "common/tree.h"
#include "common/tree_reader.h"
#include "perseus/file.h"
#include "perseus/schedule.h"

namespace perseus {
namespace {

constexpr std::size_t kMaxJobFileBytes = std::size_t{1} << 20;

constexpr std::array<std::string_view, 23> kKeys = {"profile",
                                                    "schedule",
                                                    "schedule_file",
                                                    "stages",
                                                    "microbatches",
                                                    "virtual_stages",
                                                    "microbatch_group_size",
                                                    "blocking_power",
                                                    "tp",
                                                    "dp",
                                                    "split_ratio",
                                                    "comm_delay",
                                                    "data_loading",
                                                    "iteration_overhead",
                                                    "at",
                                                    "granularity",
                                                    "min_dwell",
                                                    "max_clocks",
                                                    "time_margin",
                                                    "coarse_watts",
                                                    "exponential_fit",
                                                    "effort",
                                                    "output"};

constexpr NumberRange kInnerShare = {
    .least = 0, .most = 1, .above_least = true, .below_most = true};

std::string_view Trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t";
  const std::size_t first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

// A finite number of at least 0 that is the whole text.
std::optional<double> ParseNumber(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  if (!std::isfinite(value) || value < 0) return std::nullopt;
  return value;
}

bool ConsumeSuffix(std::string_view* text, std::string_view suffix) {
  if (text->size() < suffix.size() || text->substr(text->size() - suffix.size()) != suffix) {
    return false;
  }
  *text = Trimmed(text->substr(0, text->size() - suffix.size()));
  return true;
}

bool HasExtension(std::string_view path, std::string_view extension) {
  return std::filesystem::path(path).extension() == extension;
}

class JobParser {
 public:
  JobParser(const TreeNode& root, const std::string& name)
      : reader_(root, name),
        root_(reader_.Root()),
        directory_(std::filesystem::path(name).parent_path()) {}

  Result<JobFile> Parse() {
    root_.AllowOnly(kKeys);
    ReadPipeline();
    ReadCosts();
    ReadPlan();
    if (reader_.failed()) return tl::unexpected(*reader_.error());
    return std::move(job_);
  }

 private:
  void ReadPipeline() {
    Read("profile", &job_.profile);
    ReadSchedule();
    ReadCount("stages", &job_.stages);
    ReadCount("microbatches", &job_.microbatches);
    ReadCount("virtual_stages", &job_.virtual_stages);
    ReadCount("microbatch_group_size", &job_.microbatch_group_size);
  }

  void ReadCosts() {
    ReadNumbers("blocking_power", &job_.blocking_power_watts);
    ReadCount("tp", &job_.tensor_parallel);
    ReadCount("dp", &job_.data_parallel);
    ReadNumber("split_ratio", kInnerShare, &job_.split_ratio);
    ReadNumbers("comm_delay", &job_.comm_delay_seconds);
    ReadNumber("data_loading", kNotNegative, &job_.data_loading_seconds);
    ReadNumber("iteration_overhead", kNotNegative, &job_.iteration_overhead_seconds);
    if (const auto found = root_.Find("time_margin")) {
      if (const Result<TimeMargin> margin = ParseTimeMargin(found->String())) {
        job_.time_margin = *margin;
      } else {
        found->Fail(margin.error().message);
      }
    }
  }

  void ReadPlan() {
    ReadTarget();
    if (const auto found = root_.Find("granularity")) {
      job_.granularity = ParseGranularity(found->String());
      if (!job_.granularity) found->FailExpected("computation, phase, stage-type or stage");
    }
    ReadNumber("min_dwell", kNotNegative, &job_.min_dwell_seconds);
    ReadCount("max_clocks", &job_.max_clocks);
    ReadNumber("coarse_watts", {.least = 0, .most = 1e6}, &job_.coarse_watts);
    if (const auto found = root_.Find("exponential_fit")) job_.exponential_fit = found->Bool();
    ReadNumber("effort", kPositive, &job_.effort);
    Read("output", &job_.output);
  }

  void ReadSchedule() {
    if (const auto found = root_.Find("schedule")) {
      job_.schedule = CanonicalScheduleName(found->String());
      if (!job_.schedule) {
        found->FailExpected(fmt::format("one of {} (or use schedule_file for a file)",
                                        fmt::join(ScheduleNames(), ", ")));
      }
    }
    Read("schedule_file", &job_.schedule_file);
    if (job_.schedule && job_.schedule_file) {
      root_.Find("schedule_file")->Fail("'schedule' is given too; keep one of them");
    }
  }

  // Seconds as a number, or any text that --at takes.
  void ReadTarget() {
    const auto found = root_.Find("at");
    if (!found) return;
    if (found->IsNumber()) {
      job_.at = PlanTarget{PlanTarget::Kind::kSeconds, found->Number(kPositive)};
    } else if (!found->IsString()) {
      found->FailExpected("seconds, or a string such as \"1.02x\"");
    } else if (const Result<PlanTarget> target = ParsePlanTarget(found->String())) {
      job_.at = *target;
    } else {
      found->Fail(target.error().message);
    }
  }

  // A path, from the directory of the job file.
  void Read(std::string_view key, std::optional<std::string>* path) {
    const auto found = root_.Find(key);
    if (!found) return;
    const std::string text = found->String();
    if (text.empty() || text.find('\0') != std::string::npos) found->FailExpected("a path");
    *path = (directory_ / text).string();
  }

  void ReadCount(std::string_view key, std::optional<int>* count) {
    if (const auto found = root_.Find(key)) *count = found->Integer(1);
  }

  void ReadNumber(std::string_view key, NumberRange range, std::optional<double>* number) {
    if (const auto found = root_.Find(key)) *number = found->Number(range);
  }

  void ReadNumbers(std::string_view key, std::vector<double>* numbers) {
    const auto found = root_.Find(key);
    if (!found) return;
    *numbers = found->Numbers(kNotNegative);
    if (numbers->empty()) found->Fail("the array is empty; remove the key, or give numbers");
  }

  TreeReader reader_;
  TreeCursor root_;
  std::filesystem::path directory_;
  JobFile job_;
};

}  // namespace

Result<TimeMargin> ParseTimeMargin(std::string_view text) {
  const auto malformed = [&] {
    return InvalidInput(
        fmt::format("expected a time margin such as \"2sigma\", \"1%\" or "
                    "\"2sigma,1%\", found {}",
                    Shown(text)));
  };
  TimeMargin margin;
  bool has_sigmas = false;
  bool has_fraction = false;
  std::string_view rest = text;
  while (true) {
    const std::size_t comma = rest.find(',');
    std::string_view part = Trimmed(rest.substr(0, comma));
    const bool is_sigmas = ConsumeSuffix(&part, "sigma");
    if (!is_sigmas && !ConsumeSuffix(&part, "%")) return malformed();
    const std::optional<double> number = ParseNumber(part);
    bool& given = is_sigmas ? has_sigmas : has_fraction;
    if (!number || given) return malformed();
    given = true;
    if (is_sigmas) {
      margin.sigmas = *number;
    } else {
      margin.fraction = *number / 100;
    }
    if (comma == std::string_view::npos) return margin;
    rest.remove_prefix(comma + 1);
  }
}

Result<JobFile> ParseJobFile(std::string_view text, const std::string& name, JobFileFormat format) {
  const Result<TreeNode> tree =
      format == JobFileFormat::kToml ? ParseTomlTree(text, name) : ParseJsonTree(text, name);
  if (!tree) return tl::unexpected(tree.error());
  return JobParser(*tree, name).Parse();
}

bool IsJobFileName(std::string_view path) {
  return HasExtension(path, ".toml") || HasExtension(path, ".json");
}

Result<JobFile> ReadJobFile(const std::string& path) {
  if (!IsJobFileName(path)) {
    return InvalidInput(
        fmt::format("{}: expected a job file with the extension .toml or .json", path));
  }
  const Result<std::string> text = ReadWholeFile(path, kMaxJobFileBytes);
  if (!text) return tl::unexpected(text.error());
  return ParseJobFile(*text, path,
                      HasExtension(path, ".toml") ? JobFileFormat::kToml : JobFileFormat::kJson);
}

}  // namespace perseus
