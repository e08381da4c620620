// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "profile/assemble.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <string>
#include <tuple>
#include <utility>

#include "common/nearest_name.h"
#include "profile/profile_checks.h"
#include "profile/waiting.h"

namespace perseus::profile {
namespace {

using RowSpan = std::span<const Row>;

auto OptionKey(const Row& row) { return std::tuple(row.stage, row.type, row.knob); }

// The rows at the front of `rows` that have the same key.
template <typename Key>
RowSpan FrontGroup(RowSpan rows, Key key) {
  const auto end = std::find_if(rows.begin(), rows.end(),
                                [&](const Row& row) { return key(row) != key(rows.front()); });
  return rows.first(static_cast<std::size_t>(end - rows.begin()));
}

class Assembler {
 public:
  Assembler(std::string_view text, Rows rows) : text_(text), rows_(std::move(rows)) {
    // Rows of one option become neighbours, its ranks in an order that does
    // not depend on the file's: sums are the same for every order of rows.
    for (std::vector<Row>* const rows : {&rows_.rows, &rows_.unlocked}) {
      std::sort(rows->begin(), rows->end(), [](const Row& a, const Row& b) {
        return std::tuple(OptionKey(a), a.rank, a.offset) <
               std::tuple(OptionKey(b), b.rank, b.offset);
      });
    }
  }

  Parsed<Profile> Run(std::string_view baseline) {
    for (const RowSpan rows : {RowSpan(rows_.rows), RowSpan(rows_.unlocked)}) {
      if (auto checked = CheckDuplicates(rows); !checked) return tl::unexpected(checked.error());
    }
    if (auto found = FindBaseline(baseline); !found) return tl::unexpected(found.error());
    Profile profile;
    const RowSpan all = rows_.rows;
    const RowSpan first_stage = FrontGroup(all, [](const Row& row) { return row.stage; });
    if (rows_.columns.Has(Column::kTpRank)) tp_ranks_ = TpRanks(FrontGroup(first_stage, OptionKey));
    for (RowSpan rest = all; !rest.empty(); ++profile.num_stages) {
      const RowSpan stage = FrontGroup(rest, [](const Row& row) { return row.stage; });
      if (auto added = AddStage(stage, &profile); !added) return tl::unexpected(added.error());
      rest = rest.subspan(stage.size());
    }
    if (auto added = AddUnlocked(&profile); !added) return tl::unexpected(added.error());
    profile.notes = CheckProfile(text_, rows_, profile.tables, baseline_knob_ >= 0);
    auto waiting = AssembleWaiting(text_, rows_, profile.num_stages);
    if (!waiting) return tl::unexpected(waiting.error());
    profile.waiting = *std::move(waiting);
    profile.rows = static_cast<int>(all.size() + rows_.blocking.size() + rows_.unlocked.size());
    profile.tensor_parallel_ranks = static_cast<int>(tp_ranks_.size());
    profile.knobs = std::move(rows_.knobs);
    profile.knob_unit = std::move(rows_.knob_unit);
    profile.knobs_are_numbers = rows_.knobs_are_numbers;
    return profile;
  }

 private:
  std::size_t OffsetOf(const Row& row, Column column) const {
    return CellOffset(text_, rows_.columns, row.offset, column);
  }
  std::size_t LineOf(const Row& row) const { return PositionOf(text_, row.offset).line; }

  std::string OptionName(const Row& row) const { return profile::OptionName(rows_, row); }

  // "tp_rank 1, dp_rank 0": the columns that the profile has.
  std::string RankName(const RankIdentity& id) const {
    std::string name;
    for (const auto& [column, value] :
         {std::pair(Column::kTpRank, id.tp_rank), std::pair(Column::kDpRank, id.dp_rank),
          std::pair(Column::kRank, id.rank), std::pair(Column::kPpRank, id.pp_rank)}) {
      if (value < 0) continue;
      name += fmt::format("{}{} {}", name.empty() ? "" : ", ", ColumnName(column), value);
    }
    return name;
  }

  static std::vector<int> TpRanks(RowSpan option) {
    std::vector<int> ranks;
    for (const Row& row : option) ranks.push_back(row.rank.tp_rank);
    ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
    return ranks;
  }

  bool KnobsAreRanked() const { return rows_.knobs_are_numbers || !rows_.knob_unit.empty(); }

  // Sets `baseline_knob_` where a label is named.
  Parsed<void> FindBaseline(std::string_view label) {
    if (label.empty()) return {};
    const auto problem = [&](const std::string& what) {
      const auto first =
          std::min_element(rows_.rows.begin(), rows_.rows.end(),
                           [](const Row& a, const Row& b) { return a.offset < b.offset; });
      return ProblemAt(OffsetOf(*first, Column::kKnob),
                       fmt::format("{} is to be the baseline, but {}", Shown(label), what));
    };
    if (KnobsAreRanked()) {
      return problem("knobs are numbers here, and their highest is the baseline; name none");
    }
    std::vector<std::string> labels;
    for (const Knob& knob : rows_.knobs) {
      if (knob.label == label) {
        baseline_knob_ = static_cast<int>(labels.size());
        return {};
      }
      labels.push_back(knob.label);
    }
    return problem("is no knob of the profile" + NearestHint(label, labels));
  }

  // The index of the option that savings of a table are measured against.
  Parsed<int> Baseline(const std::vector<Option>& options, const Row& first) const {
    const auto before = [&](const Option& a, const Option& b) {
      if (KnobsAreRanked()) return a.knob < b.knob;
      if (baseline_knob_ >= 0) return (a.knob == baseline_knob_) > (b.knob == baseline_knob_);
      return std::tie(a.time_seconds, a.energy_joules) < std::tie(b.time_seconds, b.energy_joules);
    };
    const auto best = std::min_element(options.begin(), options.end(), before);
    if (baseline_knob_ >= 0 && best->knob != baseline_knob_) {
      return ProblemAt(
          OffsetOf(first, Column::kInstruction),
          fmt::format("stage {} {} has no row at {}, which is to be the baseline; expected one for "
                      "every stage and instruction",
                      first.stage, ComputationTypeName(first.type),
                      Shown(rows_.knobs[static_cast<std::size_t>(baseline_knob_)].label)));
    }
    return static_cast<int>(best - options.begin());
  }

  // Reports the first row of the text that repeats another.
  Parsed<void> CheckDuplicates(RowSpan rows) const {
    const Row* first = nullptr;
    const Row* second = nullptr;
    for (std::size_t i = 1; i < rows.size(); ++i) {
      const Row& a = rows[i - 1];
      const Row& b = rows[i];
      if (OptionKey(a) != OptionKey(b) || a.rank != b.rank) continue;
      if (second != nullptr && second->offset < b.offset) continue;
      first = &a;
      second = &b;
    }
    if (second == nullptr) return {};
    const std::string rank = RankName(second->rank);
    return ProblemAt(
        OffsetOf(*second, Column::kStage),
        fmt::format("{}{}{} is on line {} already; keep one row of the two", OptionName(*second),
                    rank.empty() ? "" : ", ", rank, LineOf(*first)));
  }

  Parsed<void> AddStage(RowSpan stage, Profile* profile) const {
    const int number = stage.front().stage;
    if (number != profile->num_stages) {
      return ProblemAt(OffsetOf(stage.front(), Column::kStage),
                       fmt::format("stage {} is missing, but here is stage {} (the last is {}); "
                                   "expected a row for every stage from 0 on",
                                   profile->num_stages, number, rows_.rows.back().stage));
    }
    if (auto checked = CheckPpRank(stage); !checked) return checked;
    const RowSpan reference = FrontGroup(stage, OptionKey);
    if (auto checked = CheckRankGrid(reference); !checked) return checked;
    unsigned types = 0;
    for (RowSpan rest = stage; !rest.empty();) {
      const RowSpan table = FrontGroup(rest, [](const Row& row) { return row.type; });
      rest = rest.subspan(table.size());
      types |= 1U << static_cast<unsigned>(table.front().type);
      if (auto added = AddTable(table, reference, profile); !added) return added;
    }
    return CheckInstructions(stage.front(), types);
  }

  Parsed<void> AddTable(RowSpan table, RowSpan reference, Profile* profile) const {
    struct Ordered {
      Option option;
      std::uint32_t offset;
    };
    std::vector<Ordered> options;
    for (RowSpan rest = table; !rest.empty();) {
      const RowSpan rows = FrontGroup(rest, OptionKey);
      rest = rest.subspan(rows.size());
      if (auto checked = CheckSameRanks(rows, reference); !checked) return checked;
      std::uint32_t offset = rows.front().offset;
      for (const Row& row : rows) offset = std::min(offset, row.offset);
      options.push_back({Aggregate(rows), offset});
    }
    std::sort(options.begin(), options.end(),
              [](const Ordered& a, const Ordered& b) { return a.offset < b.offset; });
    OptionTable result{table.front().stage, table.front().type, {}, 0};
    for (const Ordered& each : options) result.options.push_back(each.option);
    const Parsed<int> baseline = Baseline(result.options, table.front());
    if (!baseline) return tl::unexpected(baseline.error());
    result.baseline = *baseline;
    profile->tables.push_back(std::move(result));
    return {};
  }

  // What was measured with no clock set, on the same ranks as the options.
  Parsed<void> AddUnlocked(Profile* profile) const {
    for (RowSpan rest = rows_.unlocked; !rest.empty();) {
      const RowSpan rows = FrontGroup(rest, OptionKey);
      rest = rest.subspan(rows.size());
      const Row& first = rows.front();
      const RowSpan all = rows_.rows;
      const auto locked = std::find_if(all.begin(), all.end(), [&](const Row& row) {
        return row.stage == first.stage && row.type == first.type;
      });
      if (locked == all.end()) {
        return ProblemAt(
            OffsetOf(first, Column::kInstruction),
            fmt::format("{} has no row at a clock; expected some, as plans need clocks",
                        OptionName(first)));
      }
      const RowSpan reference =
          FrontGroup(all.subspan(static_cast<std::size_t>(locked - all.begin())), OptionKey);
      if (auto checked = CheckSameRanks(rows, reference); !checked) return checked;
      const Option cost = Aggregate(rows);
      profile->unlocked.push_back({.stage = first.stage,
                                   .type = first.type,
                                   .time_seconds = cost.time_seconds,
                                   .energy_joules = cost.energy_joules,
                                   .time_std_seconds = cost.time_std_seconds,
                                   .energy_std_joules = cost.energy_std_joules});
    }
    return {};
  }

  // Tensor-parallel ranks run together: their energies add up. All others are
  // replicas of one another: the mean. Whoever is slowest is waited for.
  Option Aggregate(RowSpan rows) const {
    Option option;
    option.knob = rows.front().knob;
    double variance = 0;
    for (const Row& row : rows) {
      if (std::tie(row.time_seconds, row.time_std_seconds) >
          std::tie(option.time_seconds, option.time_std_seconds)) {
        option.time_seconds = row.time_seconds;
        option.time_std_seconds = row.time_std_seconds;
      }
      option.energy_joules += row.energy_joules;
      variance += row.energy_std_joules * row.energy_std_joules;
    }
    if (rows.size() == 1) {  // Not through a square and its root.
      option.energy_std_joules = rows.front().energy_std_joules;
      return option;
    }
    const std::size_t tp = std::max<std::size_t>(tp_ranks_.size(), 1);
    const std::size_t replica_count = rows.size() / tp;
    const auto replicas = static_cast<double>(replica_count);
    option.energy_joules /= replicas;
    option.energy_std_joules = std::sqrt(variance) / replicas;
    return option;
  }

  Parsed<void> CheckPpRank(RowSpan stage) const {
    for (const Row& row : stage) {
      if (row.rank.pp_rank == stage.front().rank.pp_rank) continue;
      return ProblemAt(OffsetOf(row, Column::kPpRank),
                       fmt::format("stage {} has pp_rank {} here and {} on line {}; expected one "
                                   "pipeline rank for each stage",
                                   row.stage, row.rank.pp_rank, stage.front().rank.pp_rank,
                                   LineOf(stage.front())));
    }
    return {};
  }

  // Whether every tp_rank of the profile is there, each with as many replicas
  // and the same dp_ranks.
  Parsed<void> CheckRankGrid(RowSpan option) const {
    if (tp_ranks_.empty()) return {};
    const auto missing = [&](const std::string& what) {
      return ProblemAt(option.front().offset,
                       fmt::format("{} has no row for {}, which others have; expected every "
                                   "tensor-parallel rank of every replica",
                                   OptionName(option.front()), what));
    };
    std::vector<int> dp_ranks;
    for (const Row& row : option) dp_ranks.push_back(row.rank.dp_rank);
    std::sort(dp_ranks.begin(), dp_ranks.end());
    dp_ranks.erase(std::unique(dp_ranks.begin(), dp_ranks.end()), dp_ranks.end());
    std::vector<int> here = TpRanks(option);
    for (const int tp_rank : tp_ranks_) {
      if (!std::binary_search(here.begin(), here.end(), tp_rank)) {
        return missing(fmt::format("tp_rank {}", tp_rank));
      }
    }
    for (const int tp_rank : here) {
      if (std::binary_search(tp_ranks_.begin(), tp_ranks_.end(), tp_rank)) continue;
      return ProblemAt(option.front().offset,
                       fmt::format("{} has tp_rank {}, which stage 0 has not; expected the same "
                                   "tensor-parallel ranks at every stage",
                                   OptionName(option.front()), tp_rank));
    }
    const std::size_t replicas =
        FrontGroup(option, [](const Row& row) { return row.rank.tp_rank; }).size();
    for (RowSpan rest = option; !rest.empty();) {
      const RowSpan rows = FrontGroup(rest, [](const Row& row) { return row.rank.tp_rank; });
      rest = rest.subspan(rows.size());
      // Both ascend; a replica of several `rank`s is in `rows` more than once.
      auto row = rows.begin();
      for (const int dp_rank : dp_ranks) {
        row = std::find_if(row, rows.end(),
                           [&](const Row& each) { return each.rank.dp_rank >= dp_rank; });
        if (row != rows.end() && row->rank.dp_rank == dp_rank) continue;
        return missing(fmt::format("tp_rank {}, dp_rank {}", rows.front().rank.tp_rank, dp_rank));
      }
      if (rows.size() != replicas) {
        return ProblemAt(
            rows.front().offset,
            fmt::format("{} has {} rows for tp_rank {} and {} for tp_rank {}; "
                        "expected as many for each",
                        OptionName(option.front()), rows.size(), rows.front().rank.tp_rank,
                        replicas, option.front().rank.tp_rank));
      }
    }
    return {};
  }

  // Whether an option was measured on the same ranks as its stage's first.
  Parsed<void> CheckSameRanks(RowSpan rows, RowSpan reference) const {
    for (std::size_t i = 0; i < std::max(rows.size(), reference.size()); ++i) {
      if (i < rows.size() && i < reference.size() && rows[i].rank == reference[i].rank) continue;
      const bool surplus =
          i >= reference.size() || (i < rows.size() && rows[i].rank < reference[i].rank);
      const Row& has = surplus ? rows[i] : reference[i];
      const Row& lacks = surplus ? reference.front() : rows.front();
      return ProblemAt(
          lacks.offset,
          fmt::format("{} has no row for {}, but {} has (line {}); expected every "
                      "option of a stage measured on the same ranks",
                      OptionName(lacks), RankName(has.rank), OptionName(has), LineOf(has)));
    }
    return {};
  }

  // Every schedule needs forwards, and backwards whole or in both parts.
  Parsed<void> CheckInstructions(const Row& first, unsigned types) const {
    const auto has = [&](ComputationType type) {
      return (types >> static_cast<unsigned>(type) & 1U) != 0;
    };
    std::string_view lacks;
    if (!has(ComputationType::kForward)) {
      lacks = "forward";
    } else if (has(ComputationType::kBackward)) {
      return {};
    } else if (!has(ComputationType::kBackwardInput) && !has(ComputationType::kBackwardWeight)) {
      lacks = "backward";
    } else if (!has(ComputationType::kBackwardInput)) {
      lacks = "backward_input";
    } else if (!has(ComputationType::kBackwardWeight)) {
      lacks = "backward_weight";
    } else {
      return {};
    }
    return ProblemAt(OffsetOf(first, Column::kInstruction),
                     fmt::format("stage {} has no row for {}; expected forward, and backward or "
                                 "both backward_input and backward_weight",
                                 first.stage, lacks));
  }

  std::string_view text_;
  Rows rows_;
  std::vector<int> tp_ranks_;  // Of the profile; empty without the column.
  int baseline_knob_ = -1;     // Where a label is named.
};

}  // namespace

Parsed<Profile> AssembleProfile(std::string_view text, Rows rows, std::string_view baseline) {
  return Assembler(text, std::move(rows)).Run(baseline);
}

}  // namespace perseus::profile
