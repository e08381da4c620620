// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "pipeline/schedule_csv.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/csv_records.h"
#include "common/file.h"
#include "common/located_error.h"
#include "common/nearest_name.h"
#include "common/numbers.h"
#include "perseus/schedule.h"
#include "pipeline/schedules.h"

namespace perseus::pipeline {
namespace {

using enum ComputationType;

constexpr std::string_view kOverlap = "OVERLAP_F_B";

struct Keyword {
  std::string_view text;
  std::optional<ComputationType> type;  // Empty: communication or memory.
  bool has_microbatch = true;
};
constexpr std::array kKeywords = {
    Keyword{"F", kForward},
    Keyword{"B", kBackward},
    Keyword{"I", kBackwardInput},
    Keyword{"W", kBackwardWeight},
    Keyword{"R", kRecompute},
    Keyword{"SEND_F", std::nullopt},
    Keyword{"RECV_F", std::nullopt},
    Keyword{"SEND_B", std::nullopt},
    Keyword{"RECV_B", std::nullopt},
    Keyword{"UNSHARD", std::nullopt, false},
    Keyword{"RESHARD", std::nullopt, false},
    Keyword{"REDUCE_GRAD", std::nullopt, false},
};

// Reads a cell from left to right.
class CellParser {
 public:
  explicit CellParser(std::string_view text) : text_(text) {}

  tl::expected<ParsedCell, CellError> Parse() {
    if (text_.empty()) return ParsedCell{};
    if (text_.front() == '(') return ParseOverlap();
    auto id = ParseComputation();
    if (!id) return tl::unexpected(id.error());
    if (position_ != text_.size()) {
      return Fail(position_,
                  fmt::format("unexpected {} after the action", Shown(text_.substr(position_))));
    }
    if (!*id) return ParsedCell{};
    return ParsedCell{ScheduleStep{**id, std::nullopt}};
  }

 private:
  using ComputationOrNothing = tl::expected<std::optional<ComputationId>, CellError>;

  static tl::unexpected<CellError> Fail(std::size_t offset, std::string problem) {
    return tl::unexpected(CellError{offset, std::move(problem)});
  }

  bool Skip(std::string_view token) {
    if (text_.substr(position_, token.size()) != token) return false;
    position_ += token.size();
    return true;
  }

  tl::expected<int, CellError> ParseNumber(std::string_view what) {
    const char* const first = text_.data() + position_;
    const char* const last = text_.data() + text_.size();
    int number = 0;
    // from_chars would take a minus sign.
    if (first == last || *first < '0' || *first > '9') {
      return Fail(position_, fmt::format("expected the number of a {} in {}: actions look like "
                                         "0F3 (stage, F B I W or R, microbatch)",
                                         what, Shown(text_)));
    }
    const auto [end, error] = std::from_chars(first, last, number);
    if (error != std::errc()) {
      return Fail(position_,
                  fmt::format("the number of the {} in {} is too large", what, Shown(text_)));
    }
    position_ += static_cast<std::size_t>(end - first);
    return number;
  }

  // A computation; nothing where it is communication.
  ComputationOrNothing ParseComputation() {
    const auto stage = ParseNumber("stage");
    if (!stage) return tl::unexpected(stage.error());
    const std::size_t word_start = position_;
    while (position_ < text_.size() &&
           ((text_[position_] >= 'A' && text_[position_] <= 'Z') || text_[position_] == '_')) {
      ++position_;
    }
    const std::string_view word = text_.substr(word_start, position_ - word_start);
    const auto* const keyword = std::find_if(kKeywords.begin(), kKeywords.end(),
                                             [&](const Keyword& k) { return k.text == word; });
    if (keyword == kKeywords.end()) {
      return Fail(word_start,
                  fmt::format("{} is no action that we know in {}: expected F, B, "
                              "I, W, R, SEND_F, RECV_F, SEND_B, RECV_B, UNSHARD, RESHARD "
                              "or REDUCE_GRAD after the stage",
                              Shown(word), Shown(text_)));
    }
    if (!keyword->has_microbatch) return std::nullopt;
    const auto microbatch = ParseNumber("microbatch");
    if (!microbatch) return tl::unexpected(microbatch.error());
    if (!keyword->type) return std::nullopt;
    return ComputationId{*keyword->type, *stage, *microbatch};
  }

  // "(" (forward | recompute) ";" backward ")" "OVERLAP_F_B".
  tl::expected<ParsedCell, CellError> ParseOverlap() {
    std::array<ComputationId, 2> halves;
    for (std::size_t half = 0; half < halves.size(); ++half) {
      if (!Skip(half == 0 ? "(" : ";")) return FailOverlap(position_);
      const std::size_t start = position_;
      const auto id = ParseComputation();
      if (!id) return tl::unexpected(id.error());
      if (!*id) return FailOverlap(start);
      halves[half] = **id;
      const bool is_right = half == 0 ? halves[0].type == kForward || halves[0].type == kRecompute
                                      : MayRunAsOne(halves[0], halves[1]);
      if (!is_right) return FailOverlap(start);
    }
    if (!Skip(")") || !Skip(kOverlap) || position_ != text_.size()) return FailOverlap(position_);
    return ParsedCell{ScheduleStep{halves[0], halves[1]}};
  }

  tl::unexpected<CellError> FailOverlap(std::size_t offset) const {
    return Fail(offset, fmt::format("{0} is not an overlap of a forward with a backward: expected "
                                    "the form (0F3;1B0){1}, or (0R3;0B3){1} for a recompute with "
                                    "its own backward",
                                    Shown(text_), kOverlap));
  }

  std::string_view text_;
  std::size_t position_ = 0;
};

}  // namespace

std::string ComputationText(const ComputationId& id) {
  return fmt::format("{}{}{}", id.stage, ComputationTypeLetter(id.type), id.microbatch);
}

std::string StepText(const ScheduleStep& step) {
  if (!step.fused) return ComputationText(step.id);
  return fmt::format("({};{}){}", ComputationText(step.id), ComputationText(*step.fused), kOverlap);
}

tl::expected<ParsedCell, CellError> ParseCell(std::string_view text) {
  return CellParser(text).Parse();
}

}  // namespace perseus::pipeline

// PyTorch's CSV text of a schedule, in and out.

namespace perseus {
inline namespace v0 {
namespace {

using pipeline::kMaxComputations;
using pipeline::ParseCell;
using pipeline::StepText;
using pipeline::TooManyComputations;

template <typename Function>
void ForEachComputation(std::vector<std::vector<ScheduleStep>>& ranks, Function function) {
  for (auto& order : ranks) {
    for (ScheduleStep& step : order) {
      function(step.id);
      if (step.fused) function(*step.fused);
    }
  }
}

// Before PyTorch wrote I for the input gradient it wrote B, beside W.
void ReadOldSplitBackwards(Schedule& schedule) {
  std::vector<int> with_input;
  std::vector<int> with_weight;
  ForEachComputation(schedule.ranks, [&](ComputationId& id) {
    if (id.type == ComputationType::kBackwardInput) with_input.push_back(id.stage);
    if (id.type == ComputationType::kBackwardWeight) with_weight.push_back(id.stage);
  });
  const auto sort_unique = [](std::vector<int>& stages) {
    std::sort(stages.begin(), stages.end());
    stages.erase(std::unique(stages.begin(), stages.end()), stages.end());
  };
  sort_unique(with_input);
  sort_unique(with_weight);
  std::vector<int> old;
  std::set_difference(with_weight.begin(), with_weight.end(), with_input.begin(), with_input.end(),
                      std::back_inserter(old));
  if (old.empty()) return;
  ForEachComputation(schedule.ranks, [&](ComputationId& id) {
    if (id.type == ComputationType::kBackward &&
        std::binary_search(old.begin(), old.end(), id.stage)) {
      id.type = ComputationType::kBackwardInput;
    }
  });
}

// The file's name without its folder: what outputs may repeat.
// The step of a cell, if it has one; spaces may be inside its quotes, too.
Parsed<std::optional<ScheduleStep>> ReadStep(std::string_view text, const CsvCell& cell) {
  const std::string_view trimmed = Trimmed(cell.text);
  auto parsed = ParseCell(trimmed);
  if (parsed) return parsed->step;
  const std::size_t quotes = text[cell.offset] == '"' ? 1 : 0;
  const auto spaces = static_cast<std::size_t>(trimmed.data() - cell.text.data());
  return ProblemAt(cell.offset + quotes + spaces + parsed.error().offset,
                   std::move(parsed.error().problem));
}

// Row N is rank N. Empty rows at the end are no ranks.
Parsed<std::vector<std::vector<ScheduleStep>>> ReadRanks(std::string_view text) {
  if (const std::size_t nul = text.find('\0'); nul != std::string_view::npos) {
    return ProblemAt(nul, "found a NUL byte, so this is a binary file; expected a CSV text");
  }
  std::vector<std::vector<ScheduleStep>> ranks;
  CsvRecords records(text, 0, BlankLines::kRecords);
  CsvRecord record;
  std::int64_t computations = 0;
  std::int64_t rows = 0;
  std::optional<std::size_t> empty_row;  // The offset of the first.
  while (true) {
    const Parsed<bool> more = records.Next(&record);
    if (!more) return tl::unexpected(more.error());
    if (!*more) return ranks;
    if (++rows > kMaxComputations) return ProblemAt(record.offset, TooManyComputations());
    std::vector<ScheduleStep> steps;
    for (const CsvCell& cell : record.cells) {
      const auto step = ReadStep(text, cell);
      if (!step) return tl::unexpected(step.error());
      if (!*step) continue;
      computations += (*step)->fused ? 2 : 1;
      if (computations > kMaxComputations) return ProblemAt(cell.offset, TooManyComputations());
      steps.push_back(**step);
    }
    if (steps.empty()) {
      if (!empty_row) empty_row = record.offset;
      continue;
    }
    if (empty_row) {
      return ProblemAt(*empty_row,
                       fmt::format("rank {} has no computations: row N is rank N, and every rank "
                                   "of a pipeline holds at least one stage",
                                   ranks.size()));
    }
    ranks.push_back(std::move(steps));
  }
}

std::string_view BaseName(std::string_view path) { return path.substr(path.find_last_of('/') + 1); }

}  // namespace

Result<Schedule> ParseSchedule(std::string_view text, const std::string& name) {
  auto ranks = ReadRanks(text);
  if (!ranks) {
    const TextPosition position = PositionOf(text, ranks.error().offset);
    return InvalidAt(name, position.line, position.column, ranks.error().message);
  }
  if (ranks->empty()) {
    return InvalidInput(fmt::format(
        "{}: holds no computation: expected PyTorch's schedule CSV, one row per rank with cells "
        "like 0F3",
        name));
  }
  Schedule schedule;
  schedule.name = BaseName(name);
  // Mark a name that readers would take for the schedule that Perseus makes.
  if (CanonicalScheduleName(schedule.name)) schedule.name += " (file)";
  schedule.ranks = std::move(*ranks);
  ReadOldSplitBackwards(schedule);
  schedule.num_ranks = static_cast<int>(schedule.ranks.size());
  int last_stage = 0;
  int last_microbatch = 0;
  std::int64_t computations = 0;
  ForEachComputation(schedule.ranks, [&](const ComputationId& id) {
    last_stage = std::max(last_stage, id.stage);
    last_microbatch = std::max(last_microbatch, id.microbatch);
    ++computations;
  });
  // More than there are computations cannot be complete. The bound also keeps
  // the count, one more than the largest number, within an int.
  for (const auto& [what, last] :
       {std::pair{"stage", last_stage}, std::pair{"microbatch", last_microbatch}}) {
    if (last < computations) continue;
    return InvalidInput(fmt::format(
        "{}: has {} {}, but only {} computations: every stage must run every microbatch", name,
        what, last, computations));
  }
  schedule.num_stages = last_stage + 1;
  schedule.num_microbatches = last_microbatch + 1;
  if (auto ok = ValidateSchedule(schedule); !ok) {
    return MakeError(ok.error().code, fmt::format("{}: {}", name, ok.error().message));
  }
  return schedule;
}

std::string FormatSchedule(const Schedule& schedule) {
  std::string text;
  for (const auto& order : schedule.ranks) {
    for (std::size_t position = 0; position < order.size(); ++position) {
      if (position > 0) text += ',';
      text += StepText(order[position]);
    }
    text += "\r\n";
  }
  return text;
}

Result<Schedule> ReadSchedule(const std::string& path) {
  const Result<std::string> text = ReadWholeFileOrPipe(path, pipeline::kMaxScheduleBytes);
  if (!text) return tl::unexpected(text.error());
  return ParseSchedule(*text, path);
}

}  // namespace v0
}  // namespace perseus
