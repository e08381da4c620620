// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "perseus/job_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstddef>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "common/file.h"
#include "common/nearest_name.h"
#include "common/numbers.h"
#include "common/tree.h"
#include "job/job_fields.h"
#include "job/setting_text.h"
#include "perseus/schedule.h"

namespace perseus {
inline namespace v0 {
namespace {

constexpr std::size_t kMaxJobFileBytes = std::size_t{1} << 20;

bool HasExtension(std::string_view path, std::string_view extension) {
  return std::filesystem::path(path).extension() == extension;
}

class JobParser {
 public:
  JobParser(const TreeNode& root, const std::string& name,
            const std::function<std::string()>* place = nullptr)
      : reader_(root, name, place),
        root_(reader_.Root()),
        name_(name),
        directory_(std::filesystem::path(name).parent_path()) {}

  Result<JobFile> Parse() {
    if (root_.Find("schema_version") && root_.Find("ranks")) {
      root_.Fail("this is a plan; give the profile or the job file that it was made of");
    }
    ReadTable(root_, false);
    if (const auto conditions = root_.Find(job::kConditionsTable)) {
      ReadTable(*conditions, true);
      job_.measures_conditions = !job::GivesConditions(job_);
    }
    // After a fault Find() finds nothing more.
    const char* const text = job_.schedule_csv ? "schedule_csv" : "schedule_file";
    const bool has_two = job_.schedule_csv ? job_.schedule || job_.schedule_file
                                           : job_.schedule && job_.schedule_file;
    if (!reader_.failed() && has_two) {
      root_.Find(text)->Fail(fmt::format("'{}' is given too; keep one of them",
                                         job_.schedule ? "schedule" : "schedule_file"));
    }
    if (reader_.failed()) return tl::unexpected(*reader_.error());
    return std::move(job_);
  }

 private:
  void ReadTable(const TreeCursor& table, bool conditions) {
    std::vector<std::string_view> keys;
    for (const job::Field& field : job::Fields()) {
      if (field.condition() == conditions) keys.push_back(field.key);
    }
    if (!conditions) keys.push_back(job::kConditionsTable);
    FailIfMisplaced(table, conditions);
    table.AllowOnly(keys);
    for (const job::Field& field : job::Fields()) {
      if (field.condition() != conditions) continue;
      if (const auto found = table.Find(field.key)) Read(field, *found);
    }
  }

  // Fails if the first key that does not belong here is one of the other table.
  void FailIfMisplaced(const TreeCursor& table, bool conditions) {
    const auto* members = std::get_if<TreeNode::Table>(&table.node().value);
    if (members == nullptr) return;
    const TreeMember* first = nullptr;
    for (const TreeMember& member : *members) {
      const job::Field* const field = job::FindField(member.key);
      const bool here = field != nullptr ? field->condition() == conditions
                                         : !conditions && member.key == job::kConditionsTable;
      const auto place = [](const TreeMember& m) {
        return std::pair(m.key_position.line, m.key_position.column);
      };
      if (!here && (first == nullptr || place(member) < place(*first))) first = &member;
    }
    if (first == nullptr || job::FindField(first->key) == nullptr) return;
    reader_.FailAt(
        first->key_position,
        conditions
            ? fmt::format("unknown key '{0}' in [{1}]: it is none of the conditions; put it above "
                          "the line [{1}], which holds for all that follows",
                          first->key, job::kConditionsTable)
            : fmt::format("unknown key '{}' outside of [{}]: it is one of the conditions; put it "
                          "below a line [{}]",
                          first->key, job::kConditionsTable, job::kConditionsTable));
  }

  void Read(const job::Field& field, const TreeCursor& found) {
    const Position position = found.node().position;
    job_.places[std::string(field.key)] = {name_, position.line, position.column};
    std::visit([&](auto member) { Read(field, found, &(job_.*member)); }, field.member);
  }

  // A path, from the directory of the job file, a label or the name of a schedule.
  void Read(const job::Field& field, const TreeCursor& found,
            std::optional<std::string>* value) const {
    const std::string text = found.String();
    if (field.unit == job::Unit::kPath) {
      if (text.empty() || text.find('\0') != std::string::npos) found.FailExpected("a path");
      *value = (directory_ / text).string();
      return;
    }
    if (field.unit == job::Unit::kText) {
      if (text.empty()) found.FailExpected("the text of a file");
      *value = text;
      return;
    }
    if (field.unit == job::Unit::kLabel) {
      if (text.empty()) found.FailExpected("a knob of the profile");
      *value = text;
      return;
    }
    *value = CanonicalScheduleName(text);
    if (!*value) {
      found.FailExpected(fmt::format("one of {} (or use schedule_file for a file)",
                                     fmt::join(ScheduleNames(), ", ")));
    }
  }

  static void Read(const job::Field& field, const TreeCursor& found, std::optional<int>* value) {
    *value = found.Integer(static_cast<int>(field.range.least), static_cast<int>(field.range.most));
  }

  // A number, one with its unit ("20ms", "75W"), or a percentage ("1%").
  static double ReadNumber(const job::Field& field, const TreeCursor& found) {
    if (field.unit == job::Unit::kShare && found.IsString()) {
      const Result<double> share = job::ParseShare(found.String(), field.range);
      if (!share) found.Fail(share.error().message);
      return share.value_or(0);
    }
    if (field.unit == job::Unit::kShare && found.IsNumber()) {
      const Result<double> share =
          job::CheckShare(std::get<double>(found.node().value), field.range);
      if (!share) found.Fail(share.error().message);
      return share.value_or(0);
    }
    if (!found.IsString()) return found.Number(field.range);
    const std::string text = found.String();
    if (field.unit == job::Unit::kSeconds) {
      const Result<double> seconds = job::ParseDuration(text);
      if (!seconds) found.Fail(seconds.error().message);
      return seconds.value_or(0);
    }
    const job::Quantity quantity = job::QuantityOf(field.unit);
    // A bare number needs no quotes.
    if (quantity.units.empty() || ParseFinite(text)) return found.Number(field.range);
    const Result<double> value = job::ParseQuantity(text, field.range, quantity);
    if (!value) found.Fail(value.error().message);
    return value.value_or(0);
  }

  static void Read(const job::Field& field, const TreeCursor& found, std::optional<double>* value) {
    *value = ReadNumber(field, found);
  }

  // A number, or text with one or two of them.
  static void Read(const job::Field& field, const TreeCursor& found,
                   std::optional<ValueRange>* value) {
    if (!found.IsString()) {
      *value = ReadNumber(field, found);
      return;
    }
    const Result<ValueRange> range =
        job::ParseValueRange(found.String(), [&field](std::string_view text) {
          return field.unit == job::Unit::kSeconds ? job::ParseDuration(text)
                                                   : job::ParseShare(text, field.range);
        });
    if (!range) found.Fail(range.error().message);
    *value = range.value_or(ValueRange());
  }

  static void Read(const job::Field& field, const TreeCursor& found, std::vector<double>* value) {
    if (found.IsString()) {
      *value = {ReadNumber(field, found)};
    } else if (found.IsList()) {
      for (std::size_t i = 0; i < found.Size(); ++i) {
        value->push_back(ReadNumber(field, found.At(i)));
      }
    } else {
      *value = found.Numbers(field.range);
    }
    if (value->empty()) found.Fail("the array is empty; remove the key, or give numbers");
  }

  static void Read(const job::Field& /*field*/, const TreeCursor& found,
                   std::vector<ClockLatency>* value) {
    const Result<std::vector<ClockLatency>> latencies = job::ParseClockLatencies(found.String());
    if (!latencies) found.Fail(latencies.error().message);
    *value = latencies.value_or(std::vector<ClockLatency>());
  }

  // The path of a work table, or a factor for each microbatch.
  void Read(const job::Field& field, const TreeCursor& found,
            std::optional<WorkSetting>* value) const {
    if (found.IsList()) {
      *value = WorkSetting{.file = "", .factors = found.Numbers(field.range)};
      if ((*value)->factors.empty())
        found.Fail("the array is empty; remove the key, or give numbers");
      return;
    }
    if (!found.IsString()) {
      found.FailExpected("the path of a work table, or an array with a factor for each microbatch");
      return;
    }
    std::optional<std::string> path;
    Read(field, found, &path);
    *value = WorkSetting{.file = path.value_or(""), .factors = {}};
  }

  static void Read(const job::Field& /*field*/, const TreeCursor& found,
                   std::optional<bool>* value) {
    *value = found.Bool();
  }

  static void Read(const job::Field& /*field*/, const TreeCursor& found,
                   std::optional<Granularity>* value) {
    *value = ParseGranularity(found.String());
    if (!*value) found.FailExpected("computation, phase, stage-type or stage");
  }

  static void Read(const job::Field& /*field*/, const TreeCursor& found,
                   std::optional<TimeMargin>* value) {
    if (const Result<TimeMargin> margin = job::ParseTimeMargin(found.String())) {
      *value = *margin;
    } else {
      found.Fail(margin.error().message);
    }
  }

  static void Read(const job::Field& /*field*/, const TreeCursor& found,
                   std::optional<CallAhead>* value) {
    *value = ParseCallAhead(found.String());
    if (!*value) found.FailExpected("none, end or predicted");
  }

  // A target's text. A number is read as text, too: which says how else to write it.
  static void Read(const job::Field& /*field*/, const TreeCursor& found,
                   std::optional<PlanTarget>* value) {
    if (!found.IsNumber() && !found.IsString()) {
      found.FailExpected("a string such as \"1.02x\" or \"5.3s\"");
      return;
    }
    const std::string text =
        found.IsNumber() ? fmt::format("{}", found.Number(kPositive)) : found.String();
    if (const Result<PlanTarget> target = ParsePlanTarget(text)) {
      *value = *target;
    } else {
      found.Fail(target.error().message);
    }
  }

  TreeReader reader_;
  TreeCursor root_;
  const std::string& name_;
  std::filesystem::path directory_;
  JobFile job_;
};

}  // namespace

}  // namespace v0
}  // namespace perseus

namespace perseus::job {

Result<JobFile> ReadJobTable(const TreeNode& table, const std::string& name,
                             const std::function<std::string()>& place) {
  return JobParser(table, name, &place).Parse();
}

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
    const bool is_sigmas = TakeUnit(&part, "sigma");
    if (!is_sigmas && !TakeUnit(&part, "%")) return malformed();
    const std::optional<double> number = ParseFinite(part);
    bool& given = is_sigmas ? has_sigmas : has_fraction;
    if (!number || *number < 0 || given) return malformed();
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

}  // namespace perseus::job

namespace perseus {
inline namespace v0 {

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

}  // namespace v0
}  // namespace perseus
