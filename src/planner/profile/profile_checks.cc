// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "profile/profile_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <map>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "common/nearest_name.h"
#include "common/numbers.h"
#include "profile/rows.h"

// Finds cells that are probably wrong: a digit lost, a unit mistaken, another
// program on the GPU.
//
// The time and energy of a computation follow its clock within narrow limits:
// time falls as the clock rises, but never by a larger factor; energy falls by
// no larger factor than that either, and rises by no more than its cube. So two
// neighbours on the curve say of each other in which range they must be, and
// the closer their clocks, the narrower the range. How far a cell is outside, in
// logarithms, is the median over the nearest three on each side: one wrong
// neighbour has no say. It is odd where that is more than the noise of the
// curve explains: six times the median distance of a cell from the line between
// its two neighbours, but at least 6 % and never more than 35 %.
//
// Measured tables (38 to 60 clocks; power-capped cards, on which time rises
// with the clock at every fourth step) stay below 2 %.

namespace perseus::profile {
namespace {

constexpr std::size_t kNeighbours = 3;  // On each side.
constexpr std::size_t kLeastPoints = 3;
constexpr double kNoiseFactor = 6;
constexpr double kLeastThreshold = 0.06;  // In logarithms.
constexpr double kMostThreshold = 0.3;

constexpr Steepness kTimeOverClock = {-1, 0};
constexpr Steepness kEnergyOverClock = {-1, 3};
// Just above what a GPU draws when idle, little power buys much speed.
constexpr Steepness kTimeOverPower = {-3, 0};
constexpr Steepness kEnergyOverPower = {-2, 1};

// One curve in logarithms.
class Curve {
 public:
  Curve(std::span<const CurvePoint> points, const Steepness& steepness)
      : steepness_(steepness), odd_(points.size()) {
    for (const CurvePoint& point : points) {
      x_.push_back(std::log(point.speed));
      y_.push_back(std::log(std::max(point.value, std::numeric_limits<double>::min())));
    }
  }

  std::vector<OddPoint> FindOdd() {
    struct Candidate {
      double excess = 0;
      std::size_t index = 0;
    };
    const double threshold = Threshold();
    std::vector<Candidate> candidates;
    for (std::size_t i = 0; i < x_.size(); ++i) {
      const double excess = std::fabs(Excess(i));
      if (excess > threshold) candidates.push_back({excess, i});
    }
    // The worst first: without it, its neighbours may be in order.
    std::stable_sort(candidates.begin(), candidates.end(),
                     [](const Candidate& a, const Candidate& b) { return a.excess > b.excess; });
    std::vector<OddPoint> found;
    for (const Candidate& candidate : candidates) {
      const double excess = Excess(candidate.index);
      if (!(std::fabs(excess) > threshold)) continue;
      odd_[candidate.index] = true;
      found.push_back({candidate.index, std::exp(excess)});
    }
    std::sort(found.begin(), found.end(),
              [](const OddPoint& a, const OddPoint& b) { return a.index < b.index; });
    return found;
  }

 private:
  double Threshold() const {
    std::vector<double> distances;
    for (std::size_t i = 1; i + 1 < x_.size(); ++i) {
      const double span = x_[i + 1] - x_[i - 1];
      if (!(span > 0)) continue;  // Speeds that differ by their last digit.
      const double share = (x_[i] - x_[i - 1]) / span;
      distances.push_back(std::fabs(y_[i] - (y_[i - 1] + share * (y_[i + 1] - y_[i - 1]))));
    }
    if (distances.empty()) return kLeastThreshold;
    return std::clamp(kNoiseFactor * UpperMedianOf(std::move(distances)), kLeastThreshold,
                      kMostThreshold);
  }

  // How far point i is above (or, negative, below) where point j allows it.
  double ExcessOver(std::size_t i, std::size_t j) const {
    const double dx = x_[i] - x_[j];
    const double dy = y_[i] - y_[j];
    const double low = std::min(steepness_.least * dx, steepness_.most * dx);
    const double high = std::max(steepness_.least * dx, steepness_.most * dx);
    return dy > high ? dy - high : std::min(dy - low, 0.0);
  }

  // The median over the neighbours that are not odd; of an even number, the
  // milder of the two in the middle.
  double Excess(std::size_t i) const {
    std::vector<double> excesses;
    for (std::size_t j = i, seen = 0; j > 0 && seen < kNeighbours; --j) {
      if (odd_[j - 1]) continue;
      excesses.push_back(ExcessOver(i, j - 1));
      ++seen;
    }
    for (std::size_t j = i + 1, seen = 0; j < x_.size() && seen < kNeighbours; ++j) {
      if (odd_[j]) continue;
      excesses.push_back(ExcessOver(i, j));
      ++seen;
    }
    if (excesses.size() < 2) return 0;
    std::sort(excesses.begin(), excesses.end());
    const double upper = excesses[excesses.size() / 2];
    if (excesses.size() % 2 == 1) return upper;
    const double lower = excesses[excesses.size() / 2 - 1];
    return std::fabs(lower) < std::fabs(upper) ? lower : upper;
  }

  Steepness steepness_;
  std::vector<double> x_;
  std::vector<double> y_;
  std::vector<bool> odd_;
};

}  // namespace

std::vector<OddPoint> FindOddPoints(std::span<const CurvePoint> curve, const Steepness& steepness) {
  if (curve.size() < kLeastPoints) return {};
  return Curve(curve, steepness).FindOdd();
}

std::vector<OddCell> FindOddCells(const Rows& all) {
  const bool clocks = all.knobs_are_numbers;
  if (!clocks && all.knob_unit.empty()) return {};
  std::vector<const Row*> rows;
  rows.reserve(all.rows.size());
  for (const Row& row : all.rows) rows.push_back(&row);
  const auto curve_of = [](const Row& row) { return std::tie(row.stage, row.type, row.rank); };
  std::sort(rows.begin(), rows.end(), [&](const Row* a, const Row* b) {
    // Knobs descend.
    return std::tuple(curve_of(*a), b->knob) < std::tuple(curve_of(*b), a->knob);
  });
  std::vector<OddCell> cells;
  std::vector<CurvePoint> curve;
  const auto search = [&](std::size_t begin, Column column, double Row::*value,
                          const Steepness& steepness, std::size_t end) {
    curve.clear();
    for (std::size_t i = begin; i < end; ++i) {
      curve.push_back({all.knobs[static_cast<std::size_t>(rows[i]->knob)].number, rows[i]->*value});
    }
    for (const OddPoint& odd : FindOddPoints(curve, steepness)) {
      cells.push_back({rows[begin + odd.index], column, odd.factor});
    }
  };
  for (std::size_t begin = 0, end = 0; begin < rows.size(); begin = end) {
    while (end < rows.size() && curve_of(*rows[end]) == curve_of(*rows[begin])) ++end;
    search(begin, Column::kTime, &Row::time_seconds, clocks ? kTimeOverClock : kTimeOverPower, end);
    search(begin, Column::kEnergy, &Row::energy_joules,
           clocks ? kEnergyOverClock : kEnergyOverPower, end);
  }
  std::sort(cells.begin(), cells.end(), [](const OddCell& a, const OddCell& b) {
    return std::tie(a.row->offset, a.column) < std::tie(b.row->offset, b.column);
  });
  return cells;
}

namespace {

constexpr std::string_view kMilliseconds =
    "are the times in milliseconds (and the energies in millijoules)?";

class Checks {
 public:
  Checks(std::string_view text, const Rows& rows, const std::vector<OptionTable>& tables)
      : text_(text), all_(rows), tables_(tables) {}

  std::vector<Note> Run(bool named_baseline) {
    const std::vector<OddCell> odd = FindOddCells(all_);
    for (const OddCell& cell : odd) odd_.insert(cell.row);
    CheckPower();
    CheckTimes();
    if (all_.knobs_are_numbers) CheckClocks();
    CheckSpreads();
    if (IsRanked()) CheckHighest();
    if (!IsRanked() && !named_baseline) NoteLabels();
    NoteOneOption();
    NoteOddCells(odd);
    return std::move(notes_);
  }

 private:
  bool IsRanked() const { return all_.knobs_are_numbers || !all_.knob_unit.empty(); }

  void AddAt(Severity severity, const Row& row, Column column, std::string text) {
    const TextPosition position =
        PositionOf(text_, CellOffset(text_, all_.columns, row.offset, column));
    notes_.push_back({.severity = severity,
                      .text = std::move(text),
                      .source = "",
                      .line = static_cast<int>(position.line),
                      .column = static_cast<int>(position.column)});
  }

  // One note, at the first row of the file that `is_wrong`; how many others are is said too.
  template <typename IsWrong, typename Sentence>
  void AddFirst(Severity severity, Column column, const IsWrong& is_wrong,
                const Sentence& sentence) {
    const Row* first = nullptr;
    std::size_t count = 0;
    for (const Row& row : all_.rows) {
      if (odd_.contains(&row) || !is_wrong(row)) continue;  // An odd cell has its own note.
      ++count;
      if (first == nullptr || row.offset < first->offset) first = &row;
    }
    if (first == nullptr) return;
    const std::string others =
        count == 1 ? "" : fmt::format(" (as in {} other row{})", count - 1, count == 2 ? "" : "s");
    AddAt(severity, *first, column, sentence(*first, others));
  }

  static double Watts(const Row& row) { return row.energy_joules / row.time_seconds; }

  void CheckPower() {
    const auto sentence = [this](std::string_view hint) {
      return [this, hint](const Row& row, const std::string& others) {
        return fmt::format(
            "{} draws {:.3g} W ({:.6g} J in {:.6g} s){}, and a GPU that computes draws {:g} to "
            "{:g} "
            "W; {}",
            OptionName(all_, row), Watts(row), row.energy_joules, row.time_seconds, others,
            kComputingWatts.least, kComputingWatts.most,
            kSwappedWatts.Has(1 / Watts(row)) ? "are the columns of time and energy swapped?"
                                              : hint);
      };
    };
    AddFirst(
        Severity::kImplausible, Column::kTime,
        [](const Row& row) { return Watts(row) < kComputingWatts.least; },
        sentence("are the times in milliseconds, or the energies in kilojoules?"));
    AddFirst(
        Severity::kImplausible, Column::kEnergy,
        [](const Row& row) { return Watts(row) > kComputingWatts.most; },
        sentence("are the energies in millijoules, are they powers in watts, or are they those of "
                 "several GPUs together?"));
  }

  void CheckTimes() {
    std::map<std::pair<int, ComputationType>, double> least;
    for (const Row& row : all_.rows) {
      if (odd_.contains(&row)) continue;
      double& seconds = least.try_emplace({row.stage, row.type}, row.time_seconds).first->second;
      seconds = std::min(seconds, row.time_seconds);
    }
    const auto fastest = [&least](const Row& row) { return least.at({row.stage, row.type}); };
    // A power that no GPU draws has its own note.
    const auto drawn = [](const Row& row) { return kComputingWatts.Has(Watts(row)); };
    const bool too_long = std::any_of(least.begin(), least.end(), [](const auto& each) {
      return each.second > kTaskSeconds.most;
    });
    AddFirst(
        Severity::kImplausible, Column::kTime,
        [&](const Row& row) { return drawn(row) && !kTaskSeconds.Has(fastest(row)); },
        [this](const Row& row, const std::string& others) {
          return fmt::format(
              "{} takes {:.6g} s{}, and computations take {:g} us to {:g} s at the highest clock; "
              "{}",
              OptionName(all_, row), row.time_seconds, others, 1e6 * kTaskSeconds.least,
              kTaskSeconds.most,
              row.time_seconds < kTaskSeconds.least ? "check the unit" : kMilliseconds);
        });
    AddFirst(
        Severity::kOdd, Column::kTime,
        [&](const Row& row) { return drawn(row) && !too_long && fastest(row) > kLongTaskSeconds; },
        [this](const Row& row, const std::string& others) {
          return fmt::format("{} takes {:.6g} s{}; {}", OptionName(all_, row), row.time_seconds,
                             others, kMilliseconds);
        });
  }

  void CheckClocks() {
    const auto number = [this](const Row& row) {
      return all_.knobs[static_cast<std::size_t>(row.knob)].number;
    };
    AddFirst(
        Severity::kImpossible, Column::kKnob,
        [&](const Row& row) { return !kPossibleMegahertz.Has(number(row)); },
        [&](const Row& row, const std::string& others) {
          return fmt::format("{}{}: {}", OptionName(all_, row), others, ClockProblem(number(row)));
        });
    AddFirst(
        Severity::kImplausible, Column::kKnob,
        [&](const Row& row) {
          return kPossibleMegahertz.Has(number(row)) && !kClockMegahertz.Has(number(row));
        },
        [&](const Row& row, const std::string& others) {
          return fmt::format(
              "the clock of {} is {:g} MHz{}, and GPUs run at {:g} to {:g} MHz; check it",
              OptionName(all_, row), number(row), others, kClockMegahertz.least,
              kClockMegahertz.most);
        });
  }

  void CheckSpreads() {
    const auto check = [this](Column column, std::string_view what, std::string_view unit,
                              double Row::*spread, double Row::*mean) {
      AddFirst(
          Severity::kImplausible, column,
          [=](const Row& row) { return row.*spread > kMostSpread * row.*mean; },
          [=, this](const Row& row, const std::string& others) {
            return fmt::format(
                "the spread of the {0} of {1}, {2:.6g} {4}, is more than the {0} "
                "itself, {3:.6g} {4}{5}; are both in one unit?",
                what, OptionName(all_, row), row.*spread, row.*mean, unit, others);
          });
    };
    check(Column::kTimeStd, "time", "s", &Row::time_std_seconds, &Row::time_seconds);
    check(Column::kEnergyStd, "energy", "J", &Row::energy_std_joules, &Row::energy_joules);
  }

  // Savings count from the highest knob: where it is slow, they are too large.
  void CheckHighest() {
    const OptionTable* worst = nullptr;
    const Option* faster = nullptr;
    double slowness = kOddSlowness;
    for (const OptionTable& table : tables_) {
      const Option& highest = table.options[static_cast<std::size_t>(table.baseline)];
      if (IsOdd(table, highest)) continue;
      for (const Option& option : table.options) {
        if (!(highest.time_seconds > slowness * option.time_seconds)) continue;
        if (IsOdd(table, option)) continue;
        worst = &table;
        faster = &option;
        slowness = highest.time_seconds / option.time_seconds;
      }
    }
    if (worst == nullptr) return;
    const Option& highest = worst->options[static_cast<std::size_t>(worst->baseline)];
    const Row& row = SlowestRow(*worst, highest);
    AddAt(slowness > kImplausibleSlowness ? Severity::kImplausible : Severity::kOdd, row,
          Column::kTime,
          fmt::format("{} takes {:.6g} s, {:.3g} times as long as at {} ({:.6g} s): the highest "
                      "{} is slower than a lower one, and savings count from there; measure it "
                      "again",
                      OptionName(all_, row), highest.time_seconds, slowness,
                      all_.knobs[static_cast<std::size_t>(faster->knob)].label,
                      faster->time_seconds, all_.knobs_are_numbers ? "clock" : "knob"));
  }

  // Whether a row is of the highest knob, and far slower than a lower one.
  bool IsSlowHighest(const Row& row) const {
    for (const OptionTable& table : tables_) {
      if (table.stage != row.stage || table.type != row.type) continue;
      if (table.options[static_cast<std::size_t>(table.baseline)].knob != row.knob) return false;
      return std::any_of(table.options.begin(), table.options.end(), [&](const Option& option) {
        return !IsOdd(table, option) &&
               row.time_seconds > kImplausibleSlowness * option.time_seconds;
      });
    }
    return false;
  }

  // Whether an option has a cell that does not fit its curve.
  bool IsOdd(const OptionTable& table, const Option& option) const {
    return std::any_of(odd_.begin(), odd_.end(), [&](const Row* row) {
      return row->stage == table.stage && row->type == table.type && row->knob == option.knob;
    });
  }

  const Row& SlowestRow(const OptionTable& table, const Option& option) const {
    const Row* found = nullptr;
    for (const Row& row : all_.rows) {
      if (row.stage != table.stage || row.type != table.type || row.knob != option.knob) continue;
      if (found == nullptr || row.time_seconds > found->time_seconds) found = &row;
    }
    return *found;
  }

  void NoteLabels() {
    const OptionTable& table = tables_.front();
    const int knob = table.options[static_cast<std::size_t>(table.baseline)].knob;
    Add(fmt::format(
        "knobs are labels, which have no highest: savings are measured against the "
        "fastest option of each stage and instruction ({} for stage 0 {}), unless a "
        "baseline is named",
        Shown(all_.knobs[static_cast<std::size_t>(knob)].label), ComputationTypeName(table.type)));
  }

  void NoteOneOption() {
    const bool has_choice =
        std::any_of(tables_.begin(), tables_.end(),
                    [](const OptionTable& table) { return table.options.size() > 1; });
    if (has_choice) return;
    Add(
        fmt::format("each kind of computation has one {0} only, so there is nothing to choose, and "
                    "no plan saves energy; measure other {0}s, too",
                    all_.knobs_are_numbers ? "clock" : "knob"));
  }

  void NoteOddCells(const std::vector<OddCell>& cells) {
    constexpr std::size_t kMostCells = 20;  // Each costs a look at the text.
    for (std::size_t i = 0; i < std::min(cells.size(), kMostCells); ++i) {
      const Row& row = *cells[i].row;
      const bool is_time = cells[i].column == Column::kTime;
      const double factor = cells[i].factor;
      const bool implausible = factor > kFactorOfNeighbours || factor < 1 / kFactorOfNeighbours ||
                               (is_time && IsSlowHighest(row));
      AddAt(implausible ? Severity::kImplausible : Severity::kOdd, row, cells[i].column,
            fmt::format("the {} of {}, {:.6g} {}, is {:.3g} times the {} that its neighbours on "
                        "the curve allow; measure it again, or remove the row",
                        ColumnName(cells[i].column), OptionName(all_, row),
                        is_time ? row.time_seconds : row.energy_joules, is_time ? "s" : "J", factor,
                        factor > 1 ? "most" : "least"));
    }
    if (cells.size() > kMostCells) {
      Add(
          fmt::format("{} more cells do not fit their neighbours on the curve; is each row a mean "
                      "over many runs, on a GPU that did nothing else?",
                      cells.size() - kMostCells));
    }
  }

  // Of the profile as a whole.
  void Add(std::string text) {
    notes_.push_back({.severity = Severity::kOdd, .text = std::move(text), .source = ""});
  }

  std::string_view text_;
  const Rows& all_;
  const std::vector<OptionTable>& tables_;
  std::set<const Row*> odd_;  // Rows with a cell that does not fit its curve.
  std::vector<Note> notes_;
};

}  // namespace

std::string OptionName(const Rows& rows, const Row& row) {
  const std::string label = row.knob == kDefaultClockIndex
                                ? Shown(kDefaultClockCell)
                                : Shown(rows.knobs[static_cast<std::size_t>(row.knob)].label);
  return fmt::format("stage {} {} at {}", row.stage, ComputationTypeName(row.type),
                     std::string_view(label).substr(1, label.size() - 2));
}

std::vector<Note> CheckProfile(std::string_view text, const Rows& rows,
                               const std::vector<OptionTable>& tables, bool named_baseline) {
  return Checks(text, rows, tables).Run(named_baseline);
}

}  // namespace perseus::profile
