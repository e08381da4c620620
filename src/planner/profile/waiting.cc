// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "profile/waiting.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "common/cells.h"
#include "common/nearest_name.h"

namespace perseus::profile {
namespace {

std::string NameOf(const Rows& rows, const BlockingRow& row) {
  return fmt::format("{} at {}{}", kBlockingRow,
                     rows.blocking_knobs[static_cast<std::size_t>(row.knob)].label,
                     row.stage < 0 ? "" : fmt::format(" of stage {}", row.stage));
}

auto KeyOf(const BlockingRow& row) { return std::tuple(row.stage, row.knob); }

// Between labels nothing can be interpolated, so each needs a row.
Parsed<void> CheckLabels(const Rows& rows, const std::vector<BlockingRow>& sorted) {
  if (rows.knobs_are_numbers || !rows.knob_unit.empty()) return {};
  for (std::size_t i = 0; i < sorted.size();) {
    const int stage = sorted[i].stage;
    std::size_t end = i;
    while (end < sorted.size() && sorted[end].stage == stage) ++end;
    for (const Knob& knob : rows.knobs) {
      const bool has = std::any_of(
          sorted.begin() + static_cast<std::ptrdiff_t>(i),
          sorted.begin() + static_cast<std::ptrdiff_t>(end), [&](const BlockingRow& row) {
            return rows.blocking_knobs[static_cast<std::size_t>(row.knob)].label == knob.label;
          });
      if (has) continue;
      return ProblemAt(
          sorted[i].offset,
          fmt::format("knobs are labels, so each needs a row of {}{}, and {} has none",
                      kBlockingRow, stage < 0 ? "" : fmt::format(" of stage {}", stage),
                      Shown(knob.label)));
    }
    i = end;
  }
  return {};
}

}  // namespace

Parsed<std::vector<WaitingPower>> AssembleWaiting(std::string_view text, const Rows& rows,
                                                  int num_stages) {
  std::vector<BlockingRow> sorted = rows.blocking;
  std::sort(sorted.begin(), sorted.end(), [](const BlockingRow& a, const BlockingRow& b) {
    return std::tuple(KeyOf(a), a.rank, a.offset) < std::tuple(KeyOf(b), b.rank, b.offset);
  });
  const auto cell = [&](const BlockingRow& row, Column column) {
    return CellOffset(text, rows.columns, row.offset, column);
  };
  std::vector<WaitingPower> waiting;
  for (std::size_t i = 0; i < sorted.size();) {
    const BlockingRow& first = sorted[i];
    if (first.stage >= num_stages) {
      return ProblemAt(cell(first, Column::kStage),
                       fmt::format("no computation is of stage {}; expected stage 0 to {}, or an "
                                   "empty cell for all",
                                   first.stage, num_stages - 1));
    }
    double watts = 0;
    std::size_t end = i;
    for (; end < sorted.size() && KeyOf(sorted[end]) == KeyOf(first); ++end) {
      const BlockingRow& row = sorted[end];
      if (end > i && row.rank == sorted[end - 1].rank) {
        return ProblemAt(
            cell(row, Column::kInstruction),
            fmt::format("{} is on line {} already; keep one row of the two", NameOf(rows, row),
                        PositionOf(text, sorted[end - 1].offset).line));
      }
      watts += row.watts;
    }
    WaitingPower power;
    if (first.stage >= 0) power.stage = first.stage;
    power.knob = rows.blocking_knobs[static_cast<std::size_t>(first.knob)];
    power.watts = watts / static_cast<double>(end - i);
    waiting.push_back(std::move(power));
    i = end;
  }
  if (auto complete = CheckLabels(rows, sorted); !complete) return tl::unexpected(complete.error());
  return waiting;
}

namespace {

// Rows of the stage, or else those of all stages.
std::pair<std::size_t, std::size_t> RowsOf(const std::vector<WaitingPower>& waiting, int stage) {
  const auto range = [&](std::optional<int> of) {
    const auto is_other = [&](const WaitingPower& row) { return row.stage != of; };
    const auto is_own = [&](const WaitingPower& row) { return row.stage == of; };
    const auto begin = std::find_if(waiting.begin(), waiting.end(), is_own);
    const auto end = std::find_if(begin, waiting.end(), is_other);
    return std::pair(static_cast<std::size_t>(begin - waiting.begin()),
                     static_cast<std::size_t>(end - waiting.begin()));
  };
  const auto own = range(stage);
  return own.first < own.second ? own : range(std::nullopt);
}

}  // namespace
}  // namespace perseus::profile

namespace perseus {
inline namespace v0 {

bool Profile::SaysWaitingOf(int stage) const {
  const auto [begin, end] = profile::RowsOf(waiting, stage);
  return begin < end;
}

bool Profile::SaysWaiting() const {
  for (int stage = 0; stage < num_stages; ++stage) {
    if (!SaysWaitingOf(stage)) return false;
  }
  return !waiting.empty();
}

double Profile::WaitingWattsOf(int stage, int knob) const {
  const auto [begin, end] = profile::RowsOf(waiting, stage);
  const Knob& wanted = knobs[static_cast<std::size_t>(knob)];
  if (!KnobsAreRanked()) {
    std::size_t i = begin;
    while (i + 1 < end && waiting[i].knob.label != wanted.label) ++i;
    return waiting[i].watts;
  }
  std::size_t below = begin;  // The first row at no higher number; numbers descend.
  while (below < end && waiting[below].knob.number > wanted.number) ++below;
  if (below == begin) return waiting[begin].watts;
  if (below == end) return waiting[end - 1].watts;
  const WaitingPower& high = waiting[below - 1];
  const WaitingPower& low = waiting[below];
  const double share = (wanted.number - low.knob.number) / (high.knob.number - low.knob.number);
  return low.watts + share * (high.watts - low.watts);
}

}  // namespace v0
}  // namespace perseus
