// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "perseus/profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "common/csv_records.h"
#include "common/file.h"
#include "common/located_error.h"
#include "common/nearest_name.h"
#include "common/numbers.h"
#include "profile/profile_checks.h"
#include "profile/rows.h"
#include "profile/sha256.h"

// A profile in memory goes through the reader of profiles, so that there is one set of rules.
namespace perseus {
namespace {

std::string QuotedCell(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) quoted.append(c == '"' ? 2 : 1, c);
  return quoted + '"';
}

}  // namespace

inline namespace v0 {

ProfileBuilder& ProfileBuilder::Add(int stage, ComputationType type, double mhz, double seconds,
                                    double joules) {
  return Add(stage, type, fmt::format("{}", mhz), seconds, joules);
}

ProfileBuilder& ProfileBuilder::Add(int stage, ComputationType type, std::string_view knob,
                                    double seconds, double joules) {
  if (knob.find_first_of("\r\n") != std::string::npos && wrong_.empty()) {
    wrong_ = fmt::format("{}: a knob of {} of stage {} has a line's end in it", name_,
                         ComputationTypeName(type), stage);
  }
  fmt::format_to(std::back_inserter(rows_), "{},{},{},{},{}\n", stage, ComputationTypeName(type),
                 QuotedCell(knob), seconds, joules);
  return *this;
}

ProfileBuilder& ProfileBuilder::AddWaiting(std::optional<int> stage, double mhz, double watts) {
  fmt::format_to(std::back_inserter(rows_), "{},{},{},1,{}\n",
                 stage ? std::to_string(*stage) : std::string(), profile::kBlockingRow, mhz, watts);
  return *this;
}

Result<Profile> ProfileBuilder::Build() const { return Build({}); }

Result<Profile> ProfileBuilder::Build(const ProfileOptions& options) const {
  if (!wrong_.empty()) return InvalidInput(wrong_);
  return ParseProfile("stage,instruction,frequency,time,energy\n" + rows_, name_, options);
}

// A rank's energy is that of its GPUs together, and the checks are about one.
std::vector<Note> Profile::FindNotes() const {
  std::string text = "stage,instruction,frequency,time,energy,time_std,energy_std\n";
  const double gpus = std::max(tensor_parallel_ranks, 1);
  for (const OptionTable& table : tables) {
    for (const Option& option : table.options) {
      const Knob& knob = knobs[static_cast<std::size_t>(option.knob)];
      const std::string label =
          KnobsAreRanked() ? fmt::format("{}{}", knob.number, knobs_are_numbers ? "" : knob_unit)
                           : knob.label;
      fmt::format_to(std::back_inserter(text), "{},{},{},{},{},{},{}\n", table.stage,
                     ComputationTypeName(table.type), QuotedCell(label), option.time_seconds,
                     option.energy_joules / gpus, option.time_std_seconds,
                     option.energy_std_joules / gpus);
    }
  }
  const Result<Profile> read = ParseProfile(text, source);
  if (!read) return {};  // What is no profile is for Validate().
  std::vector<Note> found = read->notes;
  for (Note& note : found) note.line = note.column = 0;
  return found;
}

}  // namespace v0
}  // namespace perseus

// Checks that refuse an impossible profile, whoever filled it in. Merely odd values pass.
namespace perseus {
inline namespace v0 {
namespace {

bool IsNumber(double value, double least) { return value >= least && std::isfinite(value); }

class Check {
 public:
  explicit Check(const Profile& profile) : profile_(profile) {}

  Result<void> Run() const {
    if (auto good = Knobs(); !good) return good;
    if (profile_.num_stages < 1) return Wrong("num_stages", "there is no stage");
    if (profile_.tensor_parallel_ranks < 0) {
      return Wrong("tensor_parallel_ranks",
                   fmt::format("it has {} tensor-parallel ranks; expected 0 or more",
                               profile_.tensor_parallel_ranks));
    }
    if (auto good = Tables(); !good) return good;
    if (auto good = Waiting(); !good) return good;
    return DefaultClocks();
  }

 private:
  tl::unexpected<Error> Wrong(const char* field, std::string message) const {
    return tl::unexpected<Error>(
        {.code = ErrorCode::kInvalidInput,
         .message = fmt::format("the profile {}: {}",
                                profile_.source.empty() ? "in memory" : profile_.source, message),
         .file = profile_.source,
         .field = field});
  }

  Result<void> Knobs() const {
    if (profile_.knobs.empty()) return Wrong("knobs", "it has no knob");
    std::set<std::string> labels;
    for (std::size_t k = 0; k < profile_.knobs.size(); ++k) {
      const Knob& knob = profile_.knobs[k];
      if (knob.label.empty() || !labels.insert(knob.label).second) {
        return Wrong("knobs", fmt::format("knob {} has {}; give each a label of its own", k,
                                          knob.label.empty() ? "no label" : "another one's label"));
      }
      if (!profile_.KnobsAreRanked()) continue;
      const bool falls = k == 0 || knob.number < profile_.knobs[k - 1].number;
      if (IsNumber(knob.number, 0) && knob.number > 0 && falls) {
        const std::string wrong =
            profile_.knobs_are_numbers ? profile::ClockProblem(knob.number) : std::string();
        if (wrong.empty()) continue;
        return Wrong("knobs", fmt::format("knob {}, '{}': {}", k, knob.label, wrong));
      }
      return Wrong("knobs",
                   fmt::format("knob {}, '{}', is {}; expected numbers above 0, descending", k,
                               knob.label, knob.number));
    }
    return {};
  }

  Result<void> Tables() const {
    int next_stage = 0;
    for (std::size_t t = 0; t < profile_.tables.size(); ++t) {
      const OptionTable& table = profile_.tables[t];
      if (static_cast<int>(table.type) >= kNumComputationTypes) {
        return Wrong("tables", fmt::format("table {} is of no type of computation", t));
      }
      if (t > 0 && std::tie(profile_.tables[t - 1].stage, profile_.tables[t - 1].type) >=
                       std::tie(table.stage, table.type)) {
        return Wrong("tables",
                     fmt::format("{} comes after a table that it should be before, or is there "
                                 "twice; sort tables by stage and type",
                                 Name(table)));
      }
      if (table.stage > next_stage) {
        return Wrong("tables",
                     fmt::format("it has {}, but no table of stage {}", Name(table), next_stage));
      }
      next_stage = table.stage + 1;
      if (auto good = Options(table); !good) return good;
    }
    if (next_stage == profile_.num_stages) return {};
    return Wrong("tables", fmt::format("it says that it has {} stages, and has tables of {}",
                                       profile_.num_stages, next_stage));
  }

  Result<void> Waiting() const {
    const WaitingPower* before = nullptr;
    for (const WaitingPower& row : profile_.waiting) {
      const int stage = row.stage.value_or(-1);
      if (row.stage && (stage < 0 || stage >= profile_.num_stages)) {
        return Wrong("waiting", fmt::format("it says what GPUs of stage {} draw while they wait; "
                                            "it has {} stages, counted from 0",
                                            stage, profile_.num_stages));
      }
      if (!IsNumber(row.watts, 0)) {
        return Wrong("waiting", fmt::format("a GPU that waits at '{}' draws {} W; expected a "
                                            "number >= 0",
                                            row.knob.label, row.watts));
      }
      const bool sorted = before == nullptr || before->stage.value_or(-1) < stage ||
                          (before->stage == row.stage &&
                           (!profile_.KnobsAreRanked() || before->knob.number > row.knob.number));
      if (!sorted) {
        return Wrong("waiting",
                     fmt::format("the power of waiting at '{}' is listed after '{}'; sort rows by "
                                 "stage, and knobs from high to low",
                                 row.knob.label, before->knob.label));
      }
      before = &row;
    }
    return {};
  }

  Result<void> DefaultClocks() const {
    const DefaultClockCost* before = nullptr;
    for (const DefaultClockCost& cost : profile_.default_clocks) {
      if (profile_.Find(cost.stage, cost.type) == nullptr) {
        return Wrong("default_clocks",
                     fmt::format("it says what {} of stage {} costs at default clocks, "
                                 "but has no table of it",
                                 ComputationTypeName(cost.type), cost.stage));
      }
      if (before != nullptr &&
          std::tie(before->stage, before->type) >= std::tie(cost.stage, cost.type)) {
        return Wrong("default_clocks",
                     "costs at default clocks are not in order; sort them by stage and type, each "
                     "once");
      }
      before = &cost;
      const bool good = IsNumber(cost.time_seconds, 0) && cost.time_seconds > 0 &&
                        IsNumber(cost.energy_joules, 0) && IsNumber(cost.time_std_seconds, 0) &&
                        IsNumber(cost.energy_std_joules, 0);
      if (good) continue;
      return Wrong("default_clocks",
                   fmt::format("{} of stage {} takes {} s and {} J at default clocks (errors {} s, "
                               "{} J); expected a time above 0, and else numbers >= 0",
                               ComputationTypeName(cost.type), cost.stage, cost.time_seconds,
                               cost.energy_joules, cost.time_std_seconds, cost.energy_std_joules));
    }
    return {};
  }

  static std::string Name(const OptionTable& table) {
    return fmt::format("{} of stage {}", ComputationTypeName(table.type), table.stage);
  }

  Result<void> Options(const OptionTable& table) const {
    if (table.stage < 0) return Wrong("stage", Name(table) + ": stages count from 0");
    if (table.options.empty()) return Wrong("options", Name(table) + " has no option");
    const auto count = static_cast<int>(table.options.size());
    if (table.baseline < 0 || table.baseline >= count) {
      return Wrong("baseline", fmt::format("{} has option {} as its baseline, of {}", Name(table),
                                           table.baseline, count));
    }
    std::vector<bool> used(profile_.knobs.size());
    for (std::size_t i = 0; i < table.options.size(); ++i) {
      const Option& option = table.options[i];
      const auto wrong = [&](const char* field, const std::string& what) {
        return Wrong(field, fmt::format("option {} of {} {}", i, Name(table), what));
      };
      if (option.knob < 0 || static_cast<std::size_t>(option.knob) >= profile_.knobs.size()) {
        return wrong("knob", fmt::format("has knob {}, but there are {}, counted from 0",
                                         option.knob, profile_.knobs.size()));
      }
      if (used[static_cast<std::size_t>(option.knob)]) {
        return wrong("knob", fmt::format("has the knob of another one, {}", option.knob));
      }
      used[static_cast<std::size_t>(option.knob)] = true;
      if (!IsNumber(option.time_seconds, 0) || option.time_seconds == 0) {
        return wrong("time_seconds",
                     fmt::format("takes {} s; expected a number above 0", option.time_seconds));
      }
      if (!IsNumber(option.energy_joules, 0)) {
        return wrong("energy_joules",
                     fmt::format("uses {} J; expected a number >= 0", option.energy_joules));
      }
      if (!IsNumber(option.time_std_seconds, 0) || !IsNumber(option.energy_std_joules, 0)) {
        return wrong("time_std_seconds",
                     fmt::format("varies by {} s and {} J; expected numbers >= 0",
                                 option.time_std_seconds, option.energy_std_joules));
      }
    }
    return {};
  }

  const Profile& profile_;
};

}  // namespace

Result<void> Profile::Validate() const { return Check(*this).Run(); }

}  // namespace v0
}  // namespace perseus

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

// Profile::waiting from the rows `blocking` of a text. Errors: a row twice, a stage without a
// computation, a label that only some rows have.
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
    for (std::vector<Row>* const rows : {&rows_.rows, &rows_.default_clocks}) {
      std::sort(rows->begin(), rows->end(), [](const Row& a, const Row& b) {
        return std::tuple(OptionKey(a), a.rank, a.offset) <
               std::tuple(OptionKey(b), b.rank, b.offset);
      });
    }
  }

  Parsed<Profile> Run(std::string_view baseline) {
    for (const RowSpan rows : {RowSpan(rows_.rows), RowSpan(rows_.default_clocks)}) {
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
    if (auto added = AddDefaultClockCosts(&profile); !added) return tl::unexpected(added.error());
    profile.notes = CheckProfile(text_, rows_, profile.tables, baseline_knob_ >= 0);
    auto waiting = AssembleWaiting(text_, rows_, profile.num_stages);
    if (!waiting) return tl::unexpected(waiting.error());
    profile.waiting = *std::move(waiting);
    profile.rows =
        static_cast<int>(all.size() + rows_.blocking.size() + rows_.default_clocks.size());
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

  // Adds the costs that were measured at default clocks, on the same ranks as the options.
  Parsed<void> AddDefaultClockCosts(Profile* profile) const {
    for (RowSpan rest = rows_.default_clocks; !rest.empty();) {
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
      profile->default_clocks.push_back({.stage = first.stage,
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

// Fills the tables of a profile from its rows: checks what concerns several
// rows (duplicates, ranks, stages, instructions) and aggregates ranks. `text`
// is that of the rows, for positions; `baseline` as in ProfileOptions.
Parsed<Profile> AssembleProfile(std::string_view text, Rows rows, std::string_view baseline) {
  return Assembler(text, std::move(rows)).Run(baseline);
}

}  // namespace perseus::profile

namespace perseus {
inline namespace v0 {
namespace {

using profile::AssembleProfile;
using profile::ReadRows;

constexpr std::size_t kMaxProfileBytes = std::size_t{256} << 20;

// The text of the first comment above the header that says that the profile is
// a model's; its first word is MODELLED.
std::string ModelledComment(std::string_view text) {
  constexpr std::string_view kWord = "MODELLED";
  constexpr std::size_t kLongest = 300;
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  while (!text.empty()) {
    const std::size_t end = std::min(text.find_first_of("\r\n"), text.size());
    std::string_view line = Trimmed(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty()) continue;
    if (!line.starts_with('#')) break;
    line = Trimmed(line.substr(1));
    if (!line.starts_with(kWord)) continue;
    const auto is_printable = [](char c) { return c >= ' ' && c <= '~'; };
    const bool can_be_shown =
        line.size() <= kLongest && std::all_of(line.begin(), line.end(), is_printable);
    return std::string(can_be_shown ? line : kWord);
  }
  return "";
}

Parsed<Profile> Parse(std::string_view text, const ProfileOptions& options) {
  if (text.size() > kMaxProfileBytes) {
    return ProblemAt(0, "the profile is larger than 256 MiB; is it the right file?");
  }
  if (text.starts_with("\xFF\xFE") || text.starts_with("\xFE\xFF")) {
    return ProblemAt(0, "the profile is in UTF-16; save it as UTF-8");
  }
  if (const std::size_t nul = text.find('\0'); nul != std::string_view::npos) {
    return ProblemAt(nul, "found a NUL byte, so this is a binary file; expected a CSV text");
  }
  auto rows = ReadRows(text);
  if (!rows) return tl::unexpected(std::move(rows.error()));
  auto errors = profile::ReadErrorSources(text, *rows);
  if (!errors) return tl::unexpected(std::move(errors.error()));
  Parsed<Profile> profile = AssembleProfile(text, std::move(*rows), options.baseline);
  if (profile) profile->errors = *std::move(errors);
  if (profile) profile->modelled = ModelledComment(text);
  return profile;
}

}  // namespace

const OptionTable* Profile::Find(int stage, ComputationType type) const {
  const auto table =
      std::lower_bound(tables.begin(), tables.end(), std::tuple(stage, type),
                       [](const OptionTable& a, const std::tuple<int, ComputationType>& key) {
                         return std::tuple(a.stage, a.type) < key;
                       });
  if (table == tables.end() || table->stage != stage || table->type != type) return nullptr;
  return &*table;
}

const DefaultClockCost* Profile::FindDefaultClockCost(int stage, ComputationType type) const {
  const auto cost = std::find_if(
      default_clocks.begin(), default_clocks.end(),
      [&](const DefaultClockCost& each) { return each.stage == stage && each.type == type; });
  return cost == default_clocks.end() ? nullptr : &*cost;
}

Result<Profile> ReadProfile(const std::string& path, const ProfileOptions& options) {
  const auto text = ReadWholeFileOrPipe(path, kMaxProfileBytes);
  if (!text) return tl::unexpected(text.error());
  return ParseProfile(*text, path, options);
}

Result<Profile> ParseProfile(std::string_view text, const std::string& name,
                             const ProfileOptions& options) {
  auto profile = Parse(text, options);
  if (!profile) {
    const TextPosition position = PositionOf(text, profile.error().offset);
    return InvalidAt(name, position.line, position.column, profile.error().message);
  }
  profile->source = name;
  for (Note& note : profile->notes) note.source = name;
  if (auto good = RefuseNotes(profile->notes, options.strict); !good) {
    return tl::unexpected(good.error());
  }
  profile->sha256 = Sha256Hex(text);
  return std::move(*profile);
}

}  // namespace v0
}  // namespace perseus
