// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// PyTorch's CSV text of a schedule, in and out.

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <utility>
#include <vector>

#include "perseus/schedule.h"
#include "pipeline/action_text.h"
#include "pipeline/csv_cells.h"
#include "pipeline/limits.h"

namespace perseus {
namespace {

using pipeline::CsvReader;
using pipeline::kMaxComputations;
using pipeline::ParseCell;
using pipeline::StepText;
using pipeline::TooManyComputations;

template <typename Function>
void ForEachAction(std::vector<std::vector<ScheduleStep>>& ranks, Function function) {
  for (auto& order : ranks) {
    for (ScheduleStep& step : order) {
      function(step.action);
      if (step.fused) function(*step.fused);
    }
  }
}

// Before PyTorch wrote I for the input gradient it wrote B, beside W.
void ReadOldSplitBackwards(Schedule& schedule) {
  std::vector<int> with_input;
  std::vector<int> with_weight;
  ForEachAction(schedule.ranks, [&](Action& action) {
    if (action.type == ComputationType::kBackwardInput) with_input.push_back(action.stage);
    if (action.type == ComputationType::kBackwardWeight) with_weight.push_back(action.stage);
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
  ForEachAction(schedule.ranks, [&](Action& action) {
    if (action.type == ComputationType::kBackward &&
        std::binary_search(old.begin(), old.end(), action.stage)) {
      action.type = ComputationType::kBackwardInput;
    }
  });
}

// The file's name without its folder: what outputs may repeat.
std::string_view BaseName(std::string_view path) { return path.substr(path.find_last_of('/') + 1); }

}  // namespace

Result<Schedule> ParseSchedule(std::string_view text, const std::string& name) {
  const auto error_at = [&](int line, std::size_t column, std::string_view problem) {
    return InvalidInput(fmt::format("{}:{}:{}: {}", name, line, column, problem));
  };
  Schedule schedule;
  schedule.name = BaseName(name);
  CsvReader reader(text, name);
  std::int64_t actions = 0;
  bool new_rank = true;
  int last_line = 0;  // With a computation.
  while (true) {
    const auto cell = reader.Next();
    if (!cell) return tl::unexpected(cell.error());
    if (!*cell) break;
    if (new_rank) schedule.ranks.emplace_back();
    new_rank = (*cell)->last_of_line;
    if (schedule.ranks.size() > static_cast<std::size_t>(kMaxComputations)) {
      return error_at((*cell)->line, 1, TooManyComputations());
    }
    const auto parsed = ParseCell((*cell)->text);
    if (!parsed) {
      return error_at((*cell)->line, (*cell)->column + parsed.error().offset,
                      parsed.error().problem);
    }
    if (!parsed->step) continue;
    actions += parsed->step->fused ? 2 : 1;
    if (actions > kMaxComputations) {
      return error_at((*cell)->line, (*cell)->column, TooManyComputations());
    }
    schedule.ranks.back().push_back(*parsed->step);
    last_line = (*cell)->line;
  }
  if (last_line == 0) {
    return InvalidInput(fmt::format(
        "{}: holds no computation: expected PyTorch's schedule CSV, one row per rank with cells "
        "like 0F3",
        name));
  }
  // Empty lines at the end are no ranks; one row is one line.
  schedule.ranks.resize(static_cast<std::size_t>(last_line));
  for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
    if (!schedule.ranks[rank].empty()) continue;
    return error_at(static_cast<int>(rank) + 1, 1,
                    fmt::format("rank {} has no computations: row N is rank N, and every rank of a "
                                "pipeline holds at least one stage",
                                rank));
  }
  ReadOldSplitBackwards(schedule);
  schedule.num_ranks = static_cast<int>(schedule.ranks.size());
  int last_stage = 0;
  int last_microbatch = 0;
  ForEachAction(schedule.ranks, [&](const Action& action) {
    last_stage = std::max(last_stage, action.stage);
    last_microbatch = std::max(last_microbatch, action.microbatch);
  });
  // More than there are computations cannot be complete. The bound also keeps
  // the count, one more than the largest number, within an int.
  for (const auto& [what, last] :
       {std::pair{"stage", last_stage}, std::pair{"microbatch", last_microbatch}}) {
    if (last < actions) continue;
    return InvalidInput(fmt::format(
        "{}: has {} {}, but only {} computations: every stage must run every microbatch", name,
        what, last, actions));
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

}  // namespace perseus
