// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "profile/rows.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "common/csv_records.h"
#include "common/nearest_name.h"
#include "common/numbers.h"
#include "profile/profile_checks.h"

namespace perseus::profile {
namespace {

struct NamedColumn {
  std::string_view name;
  Column column;
};

constexpr std::array<NamedColumn, kNumColumns + 1> kNames = {{
    {"stage", Column::kStage},
    {"instruction", Column::kInstruction},
    {"frequency", Column::kKnob},
    {"knob", Column::kKnob},
    {"time", Column::kTime},
    {"energy", Column::kEnergy},
    {"time_std", Column::kTimeStd},
    {"energy_std", Column::kEnergyStd},
    {"rank", Column::kRank},
    {"dp_rank", Column::kDpRank},
    {"pp_rank", Column::kPpRank},
    {"tp_rank", Column::kTpRank},
    {"error_sources", Column::kErrorSources},
}};

constexpr std::array<Column, 5> kRequired = {Column::kStage, Column::kInstruction, Column::kKnob,
                                             Column::kTime, Column::kEnergy};

// Whether one letter too many, too few, wrong or swapped with the next turns
// `name` into `given`. Ranks of other kinds of parallelism (ep_rank, cp_rank)
// are names of their own.
bool IsMisspelling(std::string_view given, std::string_view name) {
  if (SameName(given, name)) return true;
  if (given.ends_with("_rank")) return false;
  while (!given.empty() && !name.empty() && given.front() == name.front()) {
    given.remove_prefix(1);
    name.remove_prefix(1);
  }
  while (!given.empty() && !name.empty() && given.back() == name.back()) {
    given.remove_suffix(1);
    name.remove_suffix(1);
  }
  if (given.size() <= 1 && name.size() <= 1) return true;
  return given.size() == 2 && name.size() == 2 && given[0] == name[1] && given[1] == name[0];
}

std::string FoundColumns(const CsvRecord& header) {
  constexpr std::size_t kMostListed = 8;
  std::string found;
  for (std::size_t i = 0; i < header.cells.size() && i < kMostListed; ++i) {
    found += (i == 0 ? "" : ", ") + Shown(header.cells[i].text);
  }
  return found + (header.cells.size() > kMostListed ? ", ..." : "");
}

// Why the header may hold none of our columns.
std::string SeparatorHint(const CsvRecord& header) {
  if (header.cells.size() > 1) return "";
  const std::string_view line = header.cells.front().text;
  if (line.find(';') != std::string_view::npos) return "; separate cells by commas, not semicolons";
  if (line.find('\t') != std::string_view::npos) return "; separate cells by commas, not tabs";
  return "";
}

}  // namespace

std::string_view ColumnName(Column column) {
  return std::find_if(kNames.begin(), kNames.end(),
                      [&](const NamedColumn& named) { return named.column == column; })
      ->name;
}

Parsed<Columns> Columns::FromHeader(const CsvRecord& header) {
  Columns columns;
  columns.count_ = header.cells.size();
  for (std::size_t i = 0; i < header.cells.size(); ++i) {
    if (auto added = columns.Add(header, i); !added) return tl::unexpected(added.error());
  }
  if (auto all = columns.RequireAll(header); !all) return tl::unexpected(all.error());
  return columns;
}

Parsed<void> Columns::Add(const CsvRecord& header, std::size_t index) {
  const CsvCell& cell = header.cells[index];
  for (const NamedColumn& known : kNames) {
    if (cell.text != known.name) continue;
    std::size_t& place = index_[static_cast<std::size_t>(known.column)];
    if (place != kAbsent) {
      return ProblemAt(cell.offset,
                       cell.text == header.cells[place].text
                           ? fmt::format("column '{}' is there twice; remove one", cell.text)
                           : fmt::format("columns '{}' and '{}' mean the same; remove one",
                                         header.cells[place].text, cell.text));
    }
    place = index;
    return {};
  }
  for (const NamedColumn& known : kNames) {
    if (!IsMisspelling(cell.text, known.name)) continue;
    return ProblemAt(cell.offset, fmt::format("unknown column {}; did you mean '{}'?",
                                              Shown(cell.text), known.name));
  }
  return {};  // A column of the user's own.
}

Parsed<void> Columns::RequireAll(const CsvRecord& header) const {
  for (const Column column : kRequired) {
    if (Has(column)) continue;
    return ProblemAt(
        header.cells.front().offset,
        fmt::format("the header has no column '{}'{}; expected stage,instruction,frequency,time,"
                    "energy in any order, found {}{}",
                    ColumnName(column), column == Column::kKnob ? " (or 'knob')" : "",
                    FoundColumns(header), SeparatorHint(header)));
  }
  return {};
}

namespace {

Parsed<ComputationType> ParseInstruction(const CsvCell& cell) {
  if (const auto type = ParseComputationType(cell.text)) return *type;
  std::vector<std::string> names(kComputationTypeNames.begin(), kComputationTypeNames.end());
  const std::string list = fmt::format("{} or {}", fmt::join(names, ", "), kBlockingRow);
  names.emplace_back(kBlockingRow);
  return ProblemAt(cell.offset, fmt::format("unknown instruction {}: expected {}{}",
                                            Shown(cell.text), list, NearestHint(cell.text, names)));
}

Parsed<void> CheckCellCount(const CsvRecord& record, const Columns& columns) {
  if (record.cells.size() == columns.count()) return {};
  const bool surplus = record.cells.size() > columns.count();
  return ProblemAt(
      surplus ? record.cells[columns.count()].offset : record.end,
      fmt::format("the row has {} cell{}, expected {} as in the header; {}", record.cells.size(),
                  record.cells.size() == 1 ? "" : "s", columns.count(),
                  surplus ? "put a cell that holds a comma in quotes" : "add what is missing"));
}

// Reads the cells of one row; remembers its first problem, so that a row is
// read by plain assignments.
class RowReader {
 public:
  RowReader(const CsvRecord& record, const Columns& columns) : record_(record), columns_(columns) {}

  template <typename T, typename Parse>
  T Read(Column column, T absent, Parse parse) {
    if (problem_.has_value() || !columns_.Has(column)) return absent;
    Parsed<T> value = parse(columns_.CellOf(record_, column));
    if (value) return *value;
    problem_ = std::move(value.error());
    return absent;
  }

  double ReadTime() {
    return Read<double>(Column::kTime, 0.0, [](const CsvCell& cell) {
      return ParseQuantity(cell, "time", Minimum::kAboveZero);
    });
  }

  double ReadEnergy() {
    return Read<double>(Column::kEnergy, 0.0, [](const CsvCell& cell) {
      return ParseQuantity(cell, "energy", Minimum::kZero);
    });
  }

  void ReadRanks(RankIdentity* id) {
    id->rank = ReadRank(Column::kRank);
    id->dp_rank = ReadRank(Column::kDpRank);
    id->pp_rank = ReadRank(Column::kPpRank);
    id->tp_rank = ReadRank(Column::kTpRank);
  }

  double ReadSpread(Column column) {
    return Read<double>(column, 0.0, [&](const CsvCell& cell) -> Parsed<double> {
      if (cell.text.empty()) return 0.0;  // Not measured.
      return ParseQuantity(cell, ColumnName(column), Minimum::kZero);
    });
  }

  const std::optional<TextProblem>& problem() const { return problem_; }

 private:
  static constexpr int kHighestRank = 16'777'215;

  int ReadRank(Column column) {
    return Read<int>(column, -1, [&](const CsvCell& cell) {
      return ParseIndex(cell, ColumnName(column), kHighestRank);
    });
  }

  const CsvRecord& record_;
  const Columns& columns_;
  std::optional<TextProblem> problem_;
};

constexpr int kHighestStage = 65'535;

bool IsBlocking(const CsvRecord& record, const Columns& columns) {
  return columns.CellOf(record, Column::kInstruction).text == kBlockingRow;
}

Parsed<BlockingRow> ReadBlockingRow(const CsvRecord& record, const Columns& columns,
                                    KnobReader* knobs) {
  RowReader reader(record, columns);
  BlockingRow row;
  row.offset = static_cast<std::uint32_t>(record.offset);
  row.stage = reader.Read<int>(Column::kStage, -1, [](const CsvCell& cell) -> Parsed<int> {
    return cell.text.empty() ? -1 : ParseIndex(cell, "stage", kHighestStage);
  });
  row.knob =
      reader.Read<int>(Column::kKnob, 0, [&](const CsvCell& cell) { return knobs->Add(cell); });
  const double seconds = reader.ReadTime();
  row.watts = reader.ReadEnergy() / seconds;
  reader.ReadRanks(&row.rank);
  if (reader.problem()) return tl::unexpected(*reader.problem());
  if (std::isfinite(row.watts)) return row;
  return ProblemAt(columns.CellOf(record, Column::kEnergy).offset,
                   "the energy over the time is a power too large to state; check the units "
                   "(seconds, joules)");
}

Parsed<Row> ReadRow(const CsvRecord& record, const Columns& columns, KnobReader* knobs) {
  RowReader reader(record, columns);
  Row row;
  row.offset = static_cast<std::uint32_t>(record.offset);
  // First of all: only a known one says what its stage may be.
  row.type = reader.Read<ComputationType>(Column::kInstruction, ComputationType::kForward,
                                          ParseInstruction);
  row.stage =
      static_cast<std::uint16_t>(reader.Read<int>(Column::kStage, 0, [](const CsvCell& cell) {
        return ParseIndex(cell, "stage", kHighestStage);
      }));
  row.knob =
      reader.Read<int>(Column::kKnob, 0, [&](const CsvCell& cell) { return knobs->Add(cell); });
  row.time_seconds = reader.ReadTime();
  row.energy_joules = reader.ReadEnergy();
  row.time_std_seconds = reader.ReadSpread(Column::kTimeStd);
  row.energy_std_joules = reader.ReadSpread(Column::kEnergyStd);
  reader.ReadRanks(&row.rank);
  if (reader.problem()) return tl::unexpected(*reader.problem());
  return row;
}

}  // namespace

Parsed<Rows> ReadRows(std::string_view text) {
  CsvRecords records(text);
  CsvRecord record;
  Parsed<bool> more = records.Next(&record);
  if (!more) return tl::unexpected(more.error());
  if (!*more) {
    return ProblemAt(text.size(),
                     "the profile is empty; expected a header "
                     "(stage,instruction,frequency,time,energy) and a row for each "
                     "measurement");
  }
  const auto columns = Columns::FromHeader(record);
  if (!columns) return tl::unexpected(columns.error());

  Rows result{*columns, {}, {}, {}, {}, {}, true, {}};
  KnobReader knobs;
  while (true) {
    more = records.Next(&record);
    if (!more) return tl::unexpected(more.error());
    if (!*more) break;
    if (auto counted = CheckCellCount(record, *columns); !counted) {
      return tl::unexpected(counted.error());
    }
    if (IsBlocking(record, *columns)) {
      const auto row = ReadBlockingRow(record, *columns, &knobs);
      if (!row) return tl::unexpected(row.error());
      result.blocking.push_back(*row);
      continue;
    }
    const auto row = ReadRow(record, *columns, &knobs);
    if (!row) return tl::unexpected(row.error());
    result.rows.push_back(*row);
  }
  if (result.rows.empty()) {
    return ProblemAt(text.size(),
                     result.blocking.empty()
                         ? "the profile has a header but no rows; expected one for each measurement"
                         : "the profile has rows of blocking alone; expected one for each "
                           "measurement of a computation, too");
  }
  auto order = knobs.Finish(text);
  if (!order) return tl::unexpected(order.error());
  for (BlockingRow& row : result.blocking) {
    row.knob = order->index_of[static_cast<std::size_t>(row.knob)];
    if (row.knob != kDefaultClockIndex) continue;
    return ProblemAt(
        CellOffset(text, *columns, row.offset, Column::kKnob),
        fmt::format(
            "a row of '{}' cannot be '{}': at default clocks a GPU is taken to wait as at the "
            "highest clock; remove this row, or write the clock at which the GPU waited",
            kBlockingRow, kDefaultClockCell));
  }
  // Drop knobs at which no computation was measured.
  std::vector<int> kept(order->knobs.size(), -1);
  std::vector<Row> read = std::exchange(result.rows, {});
  result.rows.reserve(read.size());
  for (Row& row : read) {
    row.knob = order->index_of[static_cast<std::size_t>(row.knob)];
    (row.knob == kDefaultClockIndex ? result.default_clocks : result.rows).push_back(row);
    if (row.knob != kDefaultClockIndex) kept[static_cast<std::size_t>(row.knob)] = 0;
  }
  if (result.rows.empty()) {
    return ProblemAt(text.size(),
                     "all computations were measured at default clocks (default); expected rows "
                     "with clocks, too");
  }
  result.knobs.reserve(order->knobs.size());
  for (std::size_t k = 0; k < kept.size(); ++k) {
    if (kept[k] < 0) continue;
    kept[k] = static_cast<int>(result.knobs.size());
    result.knobs.push_back(order->knobs[k]);
  }
  for (Row& row : result.rows) row.knob = kept[static_cast<std::size_t>(row.knob)];
  if (!result.blocking.empty()) result.blocking_knobs = std::move(order->knobs);
  result.knob_unit = std::move(order->knob_unit);
  result.knobs_are_numbers = order->knobs_are_numbers;
  return result;
}

std::size_t CellOffset(std::string_view text, const Columns& columns, std::size_t offset,
                       Column column) {
  CsvRecords records(text, offset);
  CsvRecord record;
  const Parsed<bool> found = records.Next(&record);
  return found && *found && columns.Has(column) ? columns.CellOf(record, column).offset : offset;
}

namespace {

struct Unit {
  std::string_view name;
  double megahertz = 0;  // One of it; 0 where it is no frequency.
};

constexpr Unit kNoUnit = {"", 1};
constexpr std::array<Unit, 4> kUnits = {{{"MHz", 1}, {"GHz", 1000}, {"kW", 0}, {"W", 0}}};

// A label as a number and its unit.
struct KnobNumber {
  Number number;
  std::string_view digits;  // The label without its unit.
  Unit unit = kNoUnit;
};

bool SameLetters(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [&](char x, char y) { return lower(x) == lower(y); });
}

KnobNumber ParseKnob(std::string_view label) {
  KnobNumber plain = {ParseNumber(label), label, kNoUnit};
  if (plain.number.kind != NumberKind::kNone) return plain;
  for (const Unit& unit : kUnits) {
    if (label.size() <= unit.name.size()) continue;
    const std::size_t digits = label.size() - unit.name.size();
    if (!SameLetters(label.substr(digits), unit.name)) continue;
    KnobNumber with_unit = {ParseNumber(label.substr(0, digits)), label.substr(0, digits), unit};
    while (with_unit.digits.ends_with(' ')) with_unit.digits.remove_suffix(1);
    if (with_unit.number.kind == NumberKind::kNone) continue;
    return with_unit;
  }
  return plain;
}

// In which unit a clock that no GPU has probably is.
std::string ClockHint(double number) {
  constexpr double kThousand = 1e3;
  constexpr double kMillion = 1e6;
  if (kClockMegahertz.Has(number * kThousand)) {
    return fmt::format("if the clocks are in GHz, write {:g}GHz", number);
  }
  if (kClockMegahertz.Has(number / kThousand)) {
    return "if the clocks are in kHz, divide them by 1000";
  }
  if (kClockMegahertz.Has(number / kMillion)) {
    return "if the clocks are in Hz, divide them by 1000000";
  }
  return fmt::format("GPUs run at {:g} to {:g} MHz", kClockMegahertz.least, kClockMegahertz.most);
}

Parsed<void> CheckSpeed(const CsvCell& cell, const Number& number) {
  std::string_view what;
  if (number.kind == NumberKind::kNotFinite) {
    what = "is not a finite number";
  } else if (number.value < 0) {
    what = "is negative";
  } else if (number.value == 0) {
    what = "is no speed that a GPU can run at";
  } else {
    return {};
  }
  return ProblemAt(cell.offset, fmt::format("frequency {} {}; expected a number above 0 (or labels "
                                            "that are no numbers)",
                                            Shown(cell.text), what));
}

// The value that knobs are ordered by: MHz, or what the unit counts.
double ValueOf(const KnobNumber& knob) {
  if (knob.unit.megahertz <= 1) return knob.number.value;
  // To the nearest hertz: 1.41 GHz are 1410 MHz, whatever the double says.
  return std::round(knob.number.value * knob.unit.megahertz * 1e6) / 1e6;
}

std::string LabelOf(std::string_view as_spelled, const KnobNumber& knob) {
  if (knob.unit.megahertz == 0) return std::string(as_spelled);
  if (knob.unit.megahertz == 1) return std::string(knob.digits);
  return fmt::format("{}", ValueOf(knob));
}

}  // namespace

std::string ClockProblem(double megahertz) {
  if (kPossibleMegahertz.Has(megahertz)) return "";
  return fmt::format("no GPU runs at {:g} MHz; {}", megahertz, ClockHint(megahertz));
}

Parsed<int> KnobReader::Add(const CsvCell& cell) {
  if (cell.text.empty()) {
    return ProblemAt(cell.offset, "frequency cell is empty; expected a number above 0 or a label");
  }
  const auto [place, is_new] = index_.try_emplace(cell.text, static_cast<int>(labels_.size()));
  if (is_new) labels_.push_back(cell);
  return place->second;
}

Parsed<KnobOrder> KnobReader::Finish(std::string_view text) const {
  std::vector<KnobNumber> numbers;
  numbers.reserve(labels_.size());
  for (const CsvCell& cell : labels_) numbers.push_back(ParseKnob(cell.text));
  const auto is_label = [](const KnobNumber& knob) {
    return knob.number.kind == NumberKind::kNone;
  };
  const bool are_numbers = !std::all_of(numbers.begin(), numbers.end(), is_label);
  const auto is_at_default_clocks = [&](std::size_t i) {
    return are_numbers && labels_[i].text == kDefaultClockCell;
  };
  std::vector<std::size_t> order;
  order.reserve(labels_.size());
  for (std::size_t i = 0; i < labels_.size(); ++i) {
    if (!is_at_default_clocks(i)) order.push_back(i);
  }
  const auto labels = static_cast<std::size_t>(std::count_if(
      order.begin(), order.end(), [&](std::size_t i) { return is_label(numbers[i]); }));
  const auto line_of = [&](std::size_t i) { return PositionOf(text, labels_[i].offset).line; };
  if (labels > 0 && are_numbers) {
    const auto first = [&](bool label) {
      return *std::find_if(order.begin(), order.end(),
                           [&](std::size_t i) { return is_label(numbers[i]) == label; });
    };
    // Whichever is rarer is the mistake.
    const bool odd_is_label = 2 * labels <= order.size();
    const std::size_t odd = first(odd_is_label);
    const std::size_t other = first(!odd_is_label);
    return ProblemAt(
        labels_[odd].offset,
        fmt::format("frequency {} is {} like the other knobs ({}, line {}); correct it, or, if "
                    "labels are meant, write all of them so that none is a number",
                    Shown(labels_[odd].text),
                    odd_is_label ? "not a number" : "a number and no label",
                    Shown(labels_[other].text), line_of(other)));
  }
  KnobOrder result;
  result.index_of.assign(labels_.size(), kDefaultClockIndex);
  const Unit unit = numbers[order.front()].unit;
  if (are_numbers) {
    for (const std::size_t i : order) {
      if (numbers[i].unit.name != unit.name) {
        return ProblemAt(
            labels_[i].offset,
            fmt::format("frequency {} has not the unit of {} (line {}); write one unit "
                        "in the whole file",
                        Shown(labels_[i].text), Shown(labels_[order.front()].text),
                        line_of(order.front())));
      }
      if (auto checked = CheckSpeed(labels_[i], numbers[i].number); !checked) {
        return tl::unexpected(checked.error());
      }
    }
    result.knob_unit = unit.megahertz > 1 ? "MHz" : unit.name;
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return ValueOf(numbers[a]) > ValueOf(numbers[b]);
    });
  }
  result.knobs_are_numbers = are_numbers && unit.megahertz > 0;
  for (const std::size_t i : order) {
    const double value = are_numbers ? ValueOf(numbers[i]) : 0.0;
    // Two spellings of one number are one knob, called as it was first spelled.
    if (!are_numbers || result.knobs.empty() || result.knobs.back().number != value) {
      result.knobs.push_back({LabelOf(labels_[i].text, numbers[i]), value});
    }
    result.index_of[i] = static_cast<int>(result.knobs.size()) - 1;
  }
  return result;
}

namespace {

constexpr std::size_t kMostNumbers = 65;

// "0.001 0.0008 -0.0002"
std::optional<std::vector<double>> Numbers(std::string_view text) {
  std::vector<double> numbers;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    const std::optional<double> number = ParseFinite(text.substr(0, end));
    if (!number || numbers.size() == kMostNumbers) return std::nullopt;
    numbers.push_back(*number);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  if (numbers.empty() || !(numbers.front() >= 0)) return std::nullopt;
  return numbers;
}

std::optional<std::array<std::vector<double>, 3>> Lists(std::string_view text) {
  std::array<std::vector<double>, 3> lists;
  for (std::size_t i = 0; i < lists.size(); ++i) {
    const std::size_t end = std::min(text.find('|'), text.size());
    auto numbers = Numbers(text.substr(0, end));
    if (!numbers || (end == text.size()) != (i + 1 == lists.size())) return std::nullopt;
    lists[i] = *std::move(numbers);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lists;
}

}  // namespace

std::string FormatErrorSources(const OptionErrors& errors) {
  const auto list = [](double std, const std::vector<double>& sources) {
    std::string text = fmt::format("{:.3g}", std);
    for (const double source : sources) text += fmt::format(" {:.3g}", source);
    return text;
  };
  return fmt::format("{}|{}|{:.3g}", list(errors.time_std, errors.time_sources),
                     list(errors.power_std, errors.power_sources), errors.blocking_std);
}

Parsed<std::vector<OptionErrors>> ReadErrorSources(std::string_view text, const Rows& rows) {
  std::vector<OptionErrors> errors;
  if (!rows.columns.Has(Column::kErrorSources)) return errors;
  for (const Row& row : rows.rows) {
    CsvRecords records(text, row.offset);
    CsvRecord record;
    const Parsed<bool> found = records.Next(&record);
    if (!found || !*found || row.rank != RankIdentity{}) return std::vector<OptionErrors>();
    const CsvCell& cell = rows.columns.CellOf(record, Column::kErrorSources);
    if (cell.text.empty()) return std::vector<OptionErrors>();
    auto lists = Lists(cell.text);
    if (!lists) {
      return ProblemAt(cell.offset,
                       "the cell of error_sources is not one that Perseus wrote; expected numbers "
                       "such as 0.001 0.0008|0.004 0.003|0.0005; remove the column if you do not "
                       "know it");
    }
    auto& [time, power, blocking] = *lists;
    errors.push_back({.stage = row.stage,
                      .type = row.type,
                      .knob = row.knob,
                      .time_std = time.front(),
                      .power_std = power.front(),
                      .blocking_std = blocking.front(),
                      .time_sources = {time.begin() + 1, time.end()},
                      .power_sources = {power.begin() + 1, power.end()}});
  }
  std::sort(errors.begin(), errors.end(), [](const OptionErrors& a, const OptionErrors& b) {
    return std::tie(a.stage, a.type, a.knob) < std::tie(b.stage, b.type, b.knob);
  });
  return errors;
}

}  // namespace perseus::profile
