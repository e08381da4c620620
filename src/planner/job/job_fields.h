// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_JOB_JOB_FIELDS_H_
#define PERSEUS_JOB_JOB_FIELDS_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "common/tree.h"
#include "job/setting_text.h"
#include "perseus/job_file.h"
#include "perseus/result.h"

// The limits of a job's numbers, in job files and flags (docs/reference/files.md). A larger number
// is more likely a typing error than intended. pipeline/limits.h has the limits of a whole
// schedule, perseus/emulator.h those of an emulation.
namespace perseus::job {

inline constexpr int kMaxStages = 65'536;           // stages, virtual_stages
inline constexpr int kMaxMicrobatches = 1'000'000;  // microbatches, microbatch_group_size
inline constexpr int kMaxGpus = 1'000'000;          // tp, dp
inline constexpr double kMaxWatts = 1e6;            // blocking_power, coarse_watts
inline constexpr double kMaxSeconds = 1e6;          // All times; not `at`
inline constexpr double kMaxJoules = 1e12;          // change_price
inline constexpr int kMaxChanges = 1'000'000'000;   // max_changes
inline constexpr double kMinEffort = 0.001;
inline constexpr double kMaxEffort = 1'000;

}  // namespace perseus::job

// The one list of a job's fields: key, type, limits, flag and help. The reader of job files, the
// flags and their help, the C interface and lists in docs/reference/files.md are made from it.
namespace perseus::job {

// A pointer to the member of JobFile that holds a field. Its type is the type of the value.
using Member =
    std::variant<std::optional<std::string> JobFile::*, std::optional<int> JobFile::*,
                 std::optional<double> JobFile::*, std::vector<double> JobFile::*,
                 std::optional<ValueRange> JobFile::*, std::optional<PlanTarget> JobFile::*,
                 std::optional<Granularity> JobFile::*, std::optional<TimeMargin> JobFile::*,
                 std::optional<CallAhead> JobFile::*, std::optional<bool> JobFile::*,
                 std::optional<WorkSetting> JobFile::*, std::vector<ClockLatency> JobFile::*>;

enum class Unit : std::uint8_t {
  kNone,
  kPath,  // The name of a file. Servers read no files, so they refuse such fields.
  kLabel,
  kText,  // Of several lines: what would be in a file.
  kScheduleName,
  kWatts,
  kJoules,
  kSeconds,
  kShare
};

// The group of flags that a field stands in. Commands take flags by group.
enum class Group : std::uint8_t {
  kNone,  // Each command that has such a flag adds it itself.
  kGeneral,
  kPipeline,
  kCosts,
  kPlan,
  kSolver,
  kConditions,  // What real GPUs do to a plan.
  kHolding      // How well the plan must hold under the conditions.
};

// In the order in which its list is read; some bytes less for each of 42 fields are no gain.
// NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding)
struct Field {
  std::string_view key;  // In a job file.
  Member member;
  Unit unit = Unit::kNone;
  NumberRange range = {};  // Of numbers.
  Group group = Group::kNone;
  bool of_one_plan = false;           // Plans of one job may differ in it.
  std::string_view flag = {};         // On the command line.
  std::string_view placeholder = {};  // For its value, in the help.
  std::string_view help = {};         // What it means. A command may say its own.

  // Whether it is in the table [conditions].
  bool condition() const { return group == Group::kConditions || group == Group::kHolding; }
};
inline constexpr std::string_view kConditionsTable = "conditions";

// In the order of the help.
std::span<const Field> Fields();

// nullptr: there is no such field.
const Field* FindField(std::string_view key);

// Only for numbers. Times and shares have their own parsers.
Quantity QuantityOf(Unit unit);

bool IsSet(const Field& field, const JobFile& settings);

// Whether any noise, or how a clock comes late, is given. Other conditions say only what may be
// given up, and how clocks are called for.
bool GivesConditions(const JobFile& settings);

// Adds the position in the job file to an error about a field's value, if the value came from a
// file.
Error AboutField(const JobFile& settings, std::string_view key, Error error);
// An error of reading the file that a field names. If it cannot be read, the message also points to
// the field, which may be wrong.
Error AboutFile(const JobFile& settings, std::string_view key, Error error);

// Each field that is set in `overrides` replaces that of `settings`.
void Merge(const JobFile& overrides, JobFile* settings);

// The settings in a table that is a part of a larger file: the keys of a job file, and nothing
// else. `name` stands for the path of that file: in messages, and where relative paths begin.
// `place` is the path of the table in it ("job[2]").
Result<JobFile> ReadJobTable(const TreeNode& table, const std::string& name,
                             const std::function<std::string()>& place);

// Whether these settings mean the same pipeline and costs, so that one planner serves both. Where
// plans should be, how many pipelines there are and where files go does not count.
bool SamePipeline(const JobFile& a, const JobFile& b);

}  // namespace perseus::job

#endif  // PERSEUS_JOB_JOB_FIELDS_H_
