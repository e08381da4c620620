// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "trace/trace_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <climits>
#include <cstddef>
#include <optional>
#include <string>

#include "common/cells.h"
#include "common/nearest_name.h"
#include "common/numbers.h"

namespace perseus::trace {
namespace {

enum Column : std::size_t {
  kPipelineColumn,
  kStageColumn,
  kRankColumn,
  kStepColumn,
  kKindColumn,
  kStartColumn,
  kDurationColumn,
  kSequenceColumn,
  kChunkColumn,
  kMicrobatchColumn,
  kBlockColumn,
  kNumTraceColumns,
};

constexpr std::array<std::string_view, kNumTraceColumns> kColumnNames = {
    "dp_rank",  "stage",  "rank", "step",  "optype", "start_ts",
    "duration", "seq_id", "mc",   "mb_id", "gmc"};

using Places = std::array<std::size_t, kNumTraceColumns>;

Parsed<Places> ReadTraceHeader(const CsvRecord& header) {
  Places places;
  places.fill(header.cells.size());
  for (std::size_t i = 0; i < header.cells.size(); ++i) {
    const CsvCell& cell = header.cells[i];
    const auto known = std::find(kColumnNames.begin(), kColumnNames.end(), cell.text);
    if (known == kColumnNames.end()) {
      std::string hint = NearestHint(cell.text, {kColumnNames.begin(), kColumnNames.end()});
      if (hint.empty()) hint = fmt::format("; a trace has {}", fmt::join(kColumnNames, ","));
      return ProblemAt(cell.offset, fmt::format("unknown column {}{}", Shown(cell.text), hint));
    }
    std::size_t& place = places[static_cast<std::size_t>(known - kColumnNames.begin())];
    if (place != header.cells.size()) {
      return ProblemAt(cell.offset,
                       fmt::format("column '{}' is there twice; remove one", cell.text));
    }
    place = i;
  }
  for (std::size_t column = 0; column < kNumTraceColumns; ++column) {
    if (places[column] == header.cells.size()) {
      return ProblemAt(header.cells.front().offset,
                       fmt::format("the header has no column '{}'; expected {} in any order",
                                   kColumnNames[column], fmt::join(kColumnNames, ",")));
    }
  }
  return places;
}

Parsed<double> ReadSeconds(const CsvCell& cell, std::string_view name) {
  constexpr double kLongest = 1e10;  // Also seconds since 1970.
  const Number number = ParseNumber(cell.text);
  if (number.kind == NumberKind::kFinite && number.value >= 0 && number.value <= kLongest) {
    return number.value;
  }
  return ProblemAt(cell.offset, fmt::format("{} {} is not valid; expected seconds, 0 to 1e10", name,
                                            cell.text.empty() ? "cell" : Shown(cell.text)));
}

// A number that may mean nothing, which is -1.
Parsed<int> ReadOptionalIndex(const CsvCell& cell, std::string_view name, int highest) {
  if (cell.text == "-1") return -1;
  return ParseIndex(cell, name, highest);
}

class RowReader {
 public:
  RowReader(const CsvRecord& record, const Places& places) : record_(record), places_(places) {}

  Parsed<Operation> Read() {
    Operation operation;
    const CsvCell& kind = Cell(kKindColumn);
    const auto parsed = ParseOperationKind(kind.text);
    if (!parsed) {
      return ProblemAt(kind.offset, fmt::format("unknown optype {}{}", Shown(kind.text),
                                                NearestHint(kind.text, OperationKindNames())));
    }
    operation.kind = *parsed;
    Keep(ParseIndex(Cell(kPipelineColumn), "dp_rank", kHighestPipeline), &operation.pipeline);
    Keep(ParseIndex(Cell(kStageColumn), "stage", kHighestStage), &operation.stage);
    Keep(ParseIndex(Cell(kRankColumn), "rank", INT_MAX), &operation.rank);
    Keep(ParseIndex(Cell(kStepColumn), "step", INT_MAX), &operation.step);
    Keep(ReadSeconds(Cell(kStartColumn), "start_ts"), &operation.start_seconds);
    Keep(ReadSeconds(Cell(kDurationColumn), "duration"), &operation.duration_seconds);
    Keep(ParseIndex(Cell(kSequenceColumn), "seq_id", INT_MAX), &operation.sequence);
    Keep(ReadOptionalIndex(Cell(kChunkColumn), "mc", kHighestStage), &operation.chunk);
    Keep(ReadOptionalIndex(Cell(kMicrobatchColumn), "mb_id", INT_MAX), &operation.microbatch);
    Keep(ReadOptionalIndex(Cell(kBlockColumn), "gmc", INT_MAX), &operation.block);
    if (problem_) return tl::unexpected(*problem_);
    if (IsComputation(operation.kind) && (operation.microbatch < 0 || operation.chunk < 0)) {
      const bool microbatch = operation.microbatch < 0;
      return ProblemAt(Cell(microbatch ? kMicrobatchColumn : kChunkColumn).offset,
                       fmt::format("a computation needs its {}, but it is -1",
                                   microbatch ? "microbatch (mb_id)" : "model chunk (mc)"));
    }
    return operation;
  }

 private:
  const CsvCell& Cell(Column column) const { return record_.cells[places_[column]]; }

  template <typename T>
  void Keep(const Parsed<T>& value, T* target) {
    if (value) {
      *target = *value;
    } else if (!problem_) {
      problem_ = value.error();
    }
  }

  const CsvRecord& record_;
  const Places& places_;
  std::optional<TextProblem> problem_;
};

}  // namespace

Parsed<std::vector<Operation>> ReadTraceRows(std::string_view text) {
  CsvRecords records(text);
  CsvRecord record;
  const Parsed<bool> header = records.Next(&record);
  if (!header) return tl::unexpected(header.error());
  if (!*header) {
    return ProblemAt(0, fmt::format("the trace is empty; expected a header line {}",
                                    fmt::join(kColumnNames, ",")));
  }
  const Parsed<Places> places = ReadTraceHeader(record);
  if (!places) return tl::unexpected(places.error());
  const std::size_t width = record.cells.size();
  std::vector<Operation> operations;
  std::size_t line = PositionOf(text, record.offset).line;
  std::size_t counted = record.offset;
  while (true) {
    const Parsed<bool> more = records.Next(&record);
    if (!more) return tl::unexpected(more.error());
    if (!*more) break;
    if (record.cells.size() != width) {
      return ProblemAt(record.offset, fmt::format("the row has {} cells, the header {}",
                                                  record.cells.size(), width));
    }
    if (operations.size() == kMaxOperations) {
      return ProblemAt(record.offset,
                       fmt::format("more than {} operations; give fewer steps", kMaxOperations));
    }
    Parsed<Operation> operation = RowReader(record, *places).Read();
    if (!operation) return tl::unexpected(operation.error());
    // Counted on, as PositionOf() begins anew with each call.
    const std::size_t length = record.offset - counted;
    line += PositionOf(text.substr(counted, length), length).line - 1;
    counted = record.offset;
    operation->line = line;
    operations.push_back(*operation);
  }
  if (operations.empty()) return ProblemAt(0, "the trace has a header and no rows");
  return operations;
}

}  // namespace perseus::trace
