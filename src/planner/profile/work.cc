// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "perseus/work.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "common/csv_records.h"
#include "common/file.h"
#include "common/input_limits.h"
#include "common/located_error.h"
#include "common/nearest_name.h"
#include "common/numbers.h"

namespace perseus {
inline namespace v0 {
namespace {

using Kind = std::pair<int, ComputationType>;

// The type whose rows hold for this one, too, where it has none of its own.
std::optional<ComputationType> StandInOf(ComputationType type) {
  using enum ComputationType;
  switch (type) {
    case kBackwardInput:
    case kBackwardWeight:
      return kBackward;
    case kRecompute:
      return kForward;
    case kForward:
    case kBackward:
      break;
  }
  return std::nullopt;
}

tl::unexpected<Error> WrongRow(const WorkTable& table, const WorkRow& row,
                               std::string_view message) {
  return InvalidAt(table.source, row.line, row.column, message);
}

// Whether a row of this stage and type says something of what is run.
bool IsRun(const std::vector<Kind>& kinds, int stage, ComputationType type) {
  return std::any_of(kinds.begin(), kinds.end(), [&](const Kind& kind) {
    return kind.first == stage && (kind.second == type || StandInOf(kind.second) == type);
  });
}

Result<void> CheckRows(const WorkTable& table, int num_microbatches,
                       const std::vector<Kind>& kinds) {
  for (const WorkRow& row : table.rows) {
    if (row.microbatch < 0 || row.microbatch >= num_microbatches) {
      return WrongRow(table, row,
                      fmt::format("microbatch {} is not there: the pipeline has {}, counted from 0",
                                  row.microbatch, num_microbatches));
    }
    if (!row.type || IsRun(kinds, row.stage, *row.type)) continue;
    return WrongRow(table, row,
                    fmt::format("the schedule runs no {} of stage {}; remove the row, or correct "
                                "its stage or type",
                                ComputationTypeName(*row.type), row.stage));
  }
  return {};
}

Work OfFactors(const WorkTable& table, int num_microbatches, const std::vector<Kind>& kinds) {
  const bool by_kind = std::any_of(table.rows.begin(), table.rows.end(),
                                   [](const WorkRow& row) { return row.type.has_value(); });
  if (!by_kind) {
    std::vector<double> factors(static_cast<std::size_t>(num_microbatches), 1.0);
    for (const WorkRow& row : table.rows) factors[row.microbatch] = row.value;
    return Work(std::move(factors));
  }
  Work work;
  // Those that stand in for others first: rows of these win over them.
  for (const WorkRow& row : table.rows) {
    for (const auto& [stage, type] : kinds) {
      if (stage == row.stage && StandInOf(type) == row.type) {
        work.Set({type, stage, row.microbatch}, row.value);
      }
    }
  }
  for (const WorkRow& row : table.rows) {
    work.Set({*row.type, row.stage, row.microbatch}, row.value);
  }
  return work;
}

Result<std::vector<double>> TokensOf(const WorkTable& table, int num_microbatches) {
  std::vector<double> tokens(static_cast<std::size_t>(num_microbatches), 0.0);
  for (const WorkRow& row : table.rows) tokens[row.microbatch] = row.value;
  const auto missing = std::find(tokens.begin(), tokens.end(), 0.0);
  if (missing == tokens.end()) return tokens;
  return InvalidInput(fmt::format(
      "{}: microbatch {} has no row; a table in tokens needs one for each of the {} microbatches",
      table.source, missing - tokens.begin(), num_microbatches));
}

double BaselineSeconds(const OptionTable& table) {
  return table.options[table.baseline].time_seconds;
}

// Seconds of the fit and of the profile, at the highest clock.
struct FittedKind {
  double seconds = 0;
  double seconds_per_token = 0;
  double profiled_seconds = 0;
};

// By the rows of the kind itself, else of what stands in for it, else of the
// halves that it is made of.
Result<FittedKind> FittedOf(const WorkFit& fit, const Profile& profile, const Kind& kind) {
  const auto add = [&](ComputationType type, FittedKind* sum) {
    const WorkFitRow* row = fit.Find(kind.first, type);
    const OptionTable* table = profile.Find(kind.first, type);
    if (row == nullptr || table == nullptr) return false;
    sum->seconds += row->seconds;
    sum->seconds_per_token += row->seconds_per_token;
    sum->profiled_seconds += BaselineSeconds(*table);
    return true;
  };
  FittedKind fitted;
  if (add(kind.second, &fitted)) return fitted;
  const auto stand_in = StandInOf(kind.second);
  if (stand_in && add(*stand_in, &fitted)) return fitted;
  if (kind.second == ComputationType::kBackward && add(ComputationType::kBackwardInput, &fitted) &&
      add(ComputationType::kBackwardWeight, &fitted)) {
    return fitted;
  }
  return InvalidInput(fmt::format(
      "{}: there is no row for {} of stage {}, which the schedule runs (the profile must have such "
      "rows, too)",
      fit.source, ComputationTypeName(kind.second), kind.first));
}

Result<double> CheckedFactor(const WorkTable& table, const ComputationId& id, double factor) {
  if (factor >= kLeastWork && factor <= kMostWork) return factor;
  return InvalidInput(fmt::format(
      "{}: {} of stage {}, microbatch {} would be {:.3g} times the profile's work; expected {:g} "
      "to {:g}",
      table.source, ComputationTypeName(id.type), id.stage, id.microbatch, factor, kLeastWork,
      kMostWork));
}

Result<Work> OfTokens(const WorkTable& table, const TokenRule& rule, const Profile& profile,
                      int num_microbatches, const std::vector<Kind>& kinds) {
  const Result<std::vector<double>> tokens = TokensOf(table, num_microbatches);
  if (!tokens) return tl::unexpected(tokens.error());
  if (!rule.fit) {
    double reference = rule.profiled_tokens.value_or(0);
    if (!rule.profiled_tokens) {
      for (const double each : *tokens) reference += each;
      reference /= static_cast<double>(tokens->size());
    }
    std::vector<double> factors;
    for (const double each : *tokens) {
      const ComputationId id = {.microbatch = static_cast<int>(factors.size())};
      const Result<double> factor = CheckedFactor(table, id, each / reference);
      if (!factor) return tl::unexpected(factor.error());
      factors.push_back(*factor);
    }
    return Work(std::move(factors));
  }
  Work work;
  for (const Kind& kind : kinds) {
    const Result<FittedKind> fitted = FittedOf(*rule.fit, profile, kind);
    if (!fitted) return tl::unexpected(fitted.error());
    for (int m = 0; m < num_microbatches; ++m) {
      const ComputationId id = {kind.second, kind.first, m};
      const double seconds = fitted->seconds + fitted->seconds_per_token * (*tokens)[m];
      const Result<double> factor = CheckedFactor(table, id, seconds / fitted->profiled_seconds);
      if (!factor) return tl::unexpected(factor.error());
      work.Set(id, *factor);
    }
  }
  return work;
}

// More cells than any pipeline has: no index leads to more memory than this.
constexpr std::size_t kMostCells = std::size_t{1} << 27;

}  // namespace

void Work::Set(const ComputationId& id, double factor) {
  const auto place = [](const ComputationId& a, int stages) {
    return (static_cast<std::size_t>(a.microbatch) * stages + a.stage) * kNumComputationTypes +
           static_cast<std::size_t>(a.type);
  };
  const bool is_placed =
      id.stage >= 0 && id.microbatch >= 0 && static_cast<int>(id.type) < kNumComputationTypes;
  // Twice as many stages as are asked for may be made room for.
  constexpr std::size_t kMostRows = kMostCells / (2 * kNumComputationTypes);
  if (!is_placed || static_cast<std::size_t>(std::max(id.stage + 1.0, 1.0 * stages_)) >
                        kMostRows / (static_cast<std::size_t>(num_microbatches()) + 1 +
                                     static_cast<std::size_t>(std::max(id.microbatch, 0)))) {
    if (misplaced_.empty()) misplaced_.emplace_back(id, factor);
    return;
  }
  if (id.stage >= stages_) {
    // Doubling, so that stages may come one by one.
    const int stages = std::max(id.stage + 1, 2 * stages_);
    std::vector<double> wider;
    const std::size_t old_row = static_cast<std::size_t>(stages_) * kNumComputationTypes;
    const std::size_t row = static_cast<std::size_t>(stages) * kNumComputationTypes;
    if (old_row > 0) wider.resize(of_computation_.size() / old_row * row, 0.0);
    for (std::size_t k = 0; k < of_computation_.size(); ++k) {
      wider[k / old_row * row + k % old_row] = of_computation_[k];
    }
    of_computation_ = std::move(wider);
    stages_ = stages;
  }
  const std::size_t row = static_cast<std::size_t>(stages_) * kNumComputationTypes;
  const std::size_t needed = (static_cast<std::size_t>(id.microbatch) + 1) * row;
  if (needed > of_computation_.size()) of_computation_.resize(needed, 0.0);
  // 0 stands for "not given"; given, it is as wrong as any other number that is none.
  of_computation_[place(id, stages_)] =
      factor == 0 ? std::numeric_limits<double>::quiet_NaN() : factor;
}

std::vector<std::pair<ComputationId, double>> Work::Given() const {
  std::vector<std::pair<ComputationId, double>> given = misplaced_;
  const std::size_t row = static_cast<std::size_t>(stages_) * kNumComputationTypes;
  for (std::size_t k = 0; k < of_computation_.size(); ++k) {
    if (of_computation_[k] == 0) continue;
    const auto type = static_cast<ComputationType>(k % kNumComputationTypes);
    given.push_back(
        {{type, static_cast<int>(k % row / kNumComputationTypes), static_cast<int>(k / row)},
         of_computation_[k]});
  }
  return given;
}

double Work::FactorOf(const ComputationId& id) const {
  if (id.stage < 0 || id.microbatch < 0) return 1.0;
  if (id.stage < stages_) {
    const std::size_t k =
        (static_cast<std::size_t>(id.microbatch) * stages_ + id.stage) * kNumComputationTypes +
        static_cast<std::size_t>(id.type);
    if (k < of_computation_.size() && of_computation_[k] != 0) return of_computation_[k];
  }
  const auto microbatch = static_cast<std::size_t>(id.microbatch);
  return microbatch < of_microbatch_.size() ? of_microbatch_[microbatch] : 1.0;
}

int Work::num_microbatches() const {
  const std::size_t row = static_cast<std::size_t>(stages_) * kNumComputationTypes;
  const std::size_t by_computation = row > 0 ? of_computation_.size() / row : 0;
  return static_cast<int>(std::max(of_microbatch_.size(), by_computation));
}

const WorkFitRow* WorkFit::Find(int stage, ComputationType type) const {
  const auto found = std::find_if(rows.begin(), rows.end(), [&](const WorkFitRow& row) {
    return row.stage == stage && row.type == type;
  });
  return found == rows.end() ? nullptr : &*found;
}

Result<Work> MakeWork(const WorkTable& table, const TokenRule& tokens, const Profile& profile,
                      int num_microbatches,
                      const std::vector<std::pair<int, ComputationType>>& kinds) {
  if (auto good = profile.Validate(); !good) return tl::unexpected(good.error());
  if (auto good = CheckRows(table, num_microbatches, kinds); !good) {
    return tl::unexpected(good.error());
  }
  if (!table.in_tokens) return OfFactors(table, num_microbatches, kinds);
  return OfTokens(table, tokens, profile, num_microbatches, kinds);
}

namespace {

constexpr std::size_t kMaxWorkBytes = std::size_t{64} << 20;
constexpr int kMaxIndex = 1'000'000;  // No pipeline that can be planned has more.
constexpr double kMostTokens = 1e12;
constexpr double kMostFitSeconds = 1e6;

constexpr std::string_view kWorkHeaders =
    "microbatch,factor or microbatch,stage,type,factor or microbatch,tokens";
constexpr std::string_view kFitHeader = "stage,type,time,time_per_token";

// A CSV with a header of known columns, each once, and rows as long.
class WorkCsv {
 public:
  // `names`: the columns that there may be. `expected` is for messages.
  WorkCsv(std::string_view text, std::span<const std::string_view> names, std::string_view expected)
      : text_(text), records_(text), names_(names), expected_(expected) {}

  Parsed<void> ReadHeader() {
    const auto found = records_.Next(&record_);
    if (!found) return tl::unexpected(found.error());
    if (!*found) {
      return ProblemAt(text_.size(), fmt::format("the file is empty; expected {}", expected_));
    }
    column_.assign(names_.size(), kAbsent);
    for (std::size_t c = 0; c < record_.cells.size(); ++c) {
      const CsvCell& cell = record_.cells[c];
      const auto name = std::find(names_.begin(), names_.end(), cell.text);
      if (name == names_.end()) {
        const std::vector<std::string> known(names_.begin(), names_.end());
        return ProblemAt(cell.offset,
                         fmt::format("the header has no use for {}{}; expected {}",
                                     Shown(cell.text), NearestHint(cell.text, known), expected_));
      }
      std::size_t& column = column_[static_cast<std::size_t>(name - names_.begin())];
      if (column != kAbsent) {
        return ProblemAt(cell.offset, fmt::format("the column {} is there twice", cell.text));
      }
      column = c;
    }
    columns_ = record_.cells.size();
    header_offset_ = record_.offset;
    return {};
  }

  bool Has(std::size_t name) const { return column_[name] != kAbsent; }
  std::size_t columns() const { return columns_; }
  tl::unexpected<TextProblem> WrongHeader() const {
    return ProblemAt(
        header_offset_,
        fmt::format("the header's columns do not go together; expected {}", expected_));
  }

  Parsed<bool> NextRow() {
    auto found = records_.Next(&record_);
    if (!found || !*found) return found;
    if (record_.cells.size() == columns_) return true;
    return ProblemAt(record_.offset, fmt::format("the row has {} cells, the header {}",
                                                 record_.cells.size(), columns_));
  }

  const CsvCell& Cell(std::size_t name) const { return record_.cells[column_[name]]; }
  Parsed<int> Index(std::size_t name) const {
    return ParseIndex(Cell(name), names_[name], kMaxIndex);
  }

  Parsed<ComputationType> Type(std::size_t name) const {
    const auto type = ParseComputationType(Cell(name).text);
    if (type) return *type;
    return ProblemAt(Cell(name).offset, fmt::format("unknown type {}; expected {}",
                                                    Shown(Cell(name).text), kComputationTypeList));
  }

  // A number from `least` to `most`.
  Parsed<double> Value(std::size_t name, double least, double most) const {
    const CsvCell& cell = Cell(name);
    const Number number = ParseNumber(cell.text);
    if (number.kind == NumberKind::kFinite && number.value >= least && number.value <= most) {
      return number.value;
    }
    return ProblemAt(
        cell.offset,
        fmt::format("{} {}; expected a number from {:g} to {:g}", names_[name],
                    cell.text.empty() ? "is empty" : "is " + Shown(cell.text), least, most));
  }

  std::size_t offset() const { return record_.offset; }

 private:
  static constexpr std::size_t kAbsent = std::numeric_limits<std::size_t>::max();

  std::string_view text_;
  CsvRecords records_;
  std::span<const std::string_view> names_;
  std::string_view expected_;
  std::vector<std::size_t> column_;  // [name]
  std::size_t columns_ = 0;
  std::size_t header_offset_ = 0;
  CsvRecord record_;
};

// Lines of offsets that ascend, without looking at the text twice.
class Lines {
 public:
  explicit Lines(std::string_view text) : text_(text) {}

  TextPosition At(std::size_t row, std::size_t cell) {
    for (; at_ < row; ++at_) {
      const bool ends = text_[at_] == '\n' ||
                        (text_[at_] == '\r' && (at_ + 1 == text_.size() || text_[at_ + 1] != '\n'));
      if (!ends) continue;
      ++line_;
      start_ = at_ + 1;
    }
    const TextPosition here = PositionOf(text_.substr(start_), cell - start_);
    return {line_ + here.line - 1, here.column};
  }

 private:
  std::string_view text_;
  std::size_t at_ = 0;
  std::size_t line_ = 1;
  std::size_t start_ = 0;
};

Parsed<void> CheckText(std::string_view text) {
  if (text.size() > kMaxWorkBytes) {
    return ProblemAt(0, "the file is larger than 64 MiB; is it the right one?");
  }
  if (const std::size_t nul = text.find('\0'); nul != std::string_view::npos) {
    return ProblemAt(nul, "found a NUL byte, so this is a binary file; expected a CSV text");
  }
  return {};
}

enum WorkColumn : std::size_t { kMicrobatch, kStage, kType, kFactor, kTokens };
constexpr std::array<std::string_view, 5> kWorkColumns = {"microbatch", "stage", "type", "factor",
                                                          "tokens"};

Parsed<WorkTable> ParseWorkTable(std::string_view text) {
  if (auto good = CheckText(text); !good) return tl::unexpected(good.error());
  WorkCsv csv(text, kWorkColumns, kWorkHeaders);
  if (auto good = csv.ReadHeader(); !good) return tl::unexpected(good.error());
  WorkTable table;
  table.in_tokens = csv.Has(kTokens);
  const bool by_kind = csv.Has(kStage) && csv.Has(kType);
  const std::size_t expected = by_kind ? 4 : 2;
  if (!csv.Has(kMicrobatch) || csv.Has(kTokens) == csv.Has(kFactor) ||
      (by_kind && table.in_tokens) || csv.columns() != expected) {
    return csv.WrongHeader();
  }
  const std::size_t value_column = table.in_tokens ? kTokens : kFactor;
  std::set<std::tuple<int, int, int>> seen;
  Lines lines(text);
  for (;;) {
    const auto more = csv.NextRow();
    if (!more) return tl::unexpected(more.error());
    if (!*more) break;
    WorkRow row;
    const auto microbatch = csv.Index(kMicrobatch);
    if (!microbatch) return tl::unexpected(microbatch.error());
    row.microbatch = *microbatch;
    if (by_kind) {
      const auto stage = csv.Index(kStage);
      if (!stage) return tl::unexpected(stage.error());
      const auto type = csv.Type(kType);
      if (!type) return tl::unexpected(type.error());
      row.stage = *stage;
      row.type = *type;
    }
    const auto value = table.in_tokens ? csv.Value(kTokens, kLeastWork, kMostTokens)
                                       : csv.Value(kFactor, kLeastWork, kMostWork);
    if (!value) return tl::unexpected(value.error());
    row.value = *value;
    const int type = row.type ? static_cast<int>(*row.type) : -1;
    if (!seen.emplace(row.microbatch, row.stage, type).second) {
      return ProblemAt(csv.offset(),
                       by_kind
                           ? fmt::format("{} of stage {}, microbatch {} has a row already",
                                         ComputationTypeName(*row.type), row.stage, row.microbatch)
                           : fmt::format("microbatch {} has a row already", row.microbatch));
    }
    const TextPosition position = lines.At(csv.offset(), csv.Cell(value_column).offset);
    row.line = static_cast<int>(position.line);
    row.column = static_cast<int>(position.column);
    table.rows.push_back(row);
  }
  if (table.rows.empty()) return ProblemAt(text.size(), "the file has no row below its header");
  return table;
}

enum FitColumn : std::size_t { kFitStage, kFitType, kFitTime, kFitTimePerToken };
constexpr std::array<std::string_view, 4> kFitColumns = {"stage", "type", "time", "time_per_token"};

Parsed<WorkFit> ParseFit(std::string_view text) {
  if (auto good = CheckText(text); !good) return tl::unexpected(good.error());
  WorkCsv csv(text, kFitColumns, kFitHeader);
  if (auto good = csv.ReadHeader(); !good) return tl::unexpected(good.error());
  if (csv.columns() != kFitColumns.size()) return csv.WrongHeader();
  WorkFit fit;
  std::set<std::pair<int, ComputationType>> seen;
  for (;;) {
    const auto more = csv.NextRow();
    if (!more) return tl::unexpected(more.error());
    if (!*more) break;
    const auto stage = csv.Index(kFitStage);
    if (!stage) return tl::unexpected(stage.error());
    const auto type = csv.Type(kFitType);
    if (!type) return tl::unexpected(type.error());
    const auto seconds = csv.Value(kFitTime, 0, kMostFitSeconds);
    if (!seconds) return tl::unexpected(seconds.error());
    const auto per_token = csv.Value(kFitTimePerToken, 0, kMostFitSeconds);
    if (!per_token) return tl::unexpected(per_token.error());
    if (*seconds == 0 && *per_token == 0) {
      return ProblemAt(csv.Cell(kFitTime).offset, "time and time_per_token are both 0");
    }
    if (!seen.emplace(*stage, *type).second) {
      return ProblemAt(csv.offset(), fmt::format("{} of stage {} has a row already",
                                                 ComputationTypeName(*type), *stage));
    }
    fit.rows.push_back({*stage, *type, *seconds, *per_token});
  }
  if (fit.rows.empty()) return ProblemAt(text.size(), "the file has no row below its header");
  return fit;
}

template <typename T>
Result<T> Named(Parsed<T> parsed, std::string_view text, const std::string& name) {
  if (parsed) {
    parsed->source = name;
    return *std::move(parsed);
  }
  const TextPosition position = PositionOf(text, parsed.error().offset);
  return InvalidAt(name, position.line, position.column, parsed.error().message);
}

}  // namespace

Result<WorkTable> ParseWork(std::string_view text, const std::string& name) {
  return Named(ParseWorkTable(text), text, name);
}

Result<WorkTable> ReadWork(const std::string& path) {
  const Result<std::string> text = ReadWholeFileOrPipe(path, kMaxWorkBytes);
  if (!text) return tl::unexpected(text.error());
  return ParseWork(*text, path);
}

Result<WorkFit> ParseWorkFit(std::string_view text, const std::string& name) {
  return Named(ParseFit(text), text, name);
}

Result<WorkFit> ReadWorkFit(const std::string& path) {
  const Result<std::string> text = ReadWholeFileOrPipe(path, kMaxWorkBytes);
  if (!text) return tl::unexpected(text.error());
  return ParseWorkFit(*text, path);
}

}  // namespace v0
}  // namespace perseus
