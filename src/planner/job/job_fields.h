// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_JOB_JOB_FIELDS_H_
#define PERSEUS_JOB_JOB_FIELDS_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "common/tree_reader.h"
#include "job/quantity_text.h"
#include "perseus/job_file.h"
#include "perseus/result.h"

// The one list of a job's fields. The reader of job files, the merge of flags
// over a file, and the flags themselves (src/cli/planning) go through it.
namespace perseus::job {

// Where a field is in a JobFile; its type is the type of its value.
using Member =
    std::variant<std::optional<std::string> JobFile::*, std::optional<int> JobFile::*,
                 std::optional<double> JobFile::*, std::vector<double> JobFile::*,
                 std::optional<PlanTarget> JobFile::*, std::optional<Granularity> JobFile::*,
                 std::optional<TimeMargin> JobFile::*, std::optional<CallAhead> JobFile::*,
                 std::optional<bool> JobFile::*, std::optional<WorkSetting> JobFile::*>;

enum class Unit : std::uint8_t {
  kNone,
  kPath,  // Of a file. Nothing else is read as one; servers, which read none, refuse it.
  kLabel,
  kScheduleName,
  kWatts,
  kJoules,
  kSeconds,
  kShare
};

struct Field {
  std::string_view key;  // In a job file.
  Member member;
  Unit unit = Unit::kNone;
  NumberRange range;       // Of numbers.
  bool condition = false;  // In the table [conditions].
};
inline constexpr std::string_view kConditionsTable = "conditions";

// In the order of docs/reference/files.md.
std::span<const Field> Fields();

// nullptr: there is none.
const Field* FindField(std::string_view key);

// Of numbers; times and shares have readers of their own.
Quantity QuantityOf(Unit unit);

bool IsSet(const Field& field, const JobFile& settings);

// An error about a field's value, with its place in the job file, where it comes from one.
Error AboutField(const JobFile& settings, std::string_view key, Error error);
// An error of the file that a field names: where it cannot be read, the field may be wrong.
Error AboutFile(const JobFile& settings, std::string_view key, Error error);

// Every field that is set in `overrides` replaces the one of `settings`.
void Merge(const JobFile& overrides, JobFile* settings);

}  // namespace perseus::job

#endif  // PERSEUS_JOB_JOB_FIELDS_H_
