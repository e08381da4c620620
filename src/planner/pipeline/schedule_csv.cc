// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// PyTorch's CSV text of a schedule, in and out.

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include "common/csv_records.h"
#include "common/located_error.h"
#include "common/numbers.h"
#include "perseus/schedule.h"
#include "pipeline/computation_text.h"
#include "pipeline/limits.h"

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
  // Who reads the name must not take the file for the schedule that we make.
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

}  // namespace v0
}  // namespace perseus
