// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "trace/recording.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>

#include "common/csv_records.h"
#include "common/file.h"
#include "trace/gunzip.h"
#include "trace/trace_rows.h"

namespace perseus::trace {
namespace {

auto OperationKey(const Operation& operation) {
  return std::tuple(operation.step, operation.pipeline, operation.stage, operation.kind,
                    operation.sequence);
}

Error AtLine(const Recording& recording, std::size_t line, const std::string& message) {
  return {ErrorCode::kInvalidInput, fmt::format("{}:{}: {}", recording.source, line, message)};
}

std::string WhereText(const Operation& operation) {
  return fmt::format("step {}, dp_rank {}, stage {}", operation.step, operation.pipeline,
                     operation.stage);
}

// Every step has every stage of every pipeline, in order.
Result<void> IndexCells(Recording* recording) {
  const std::vector<Operation>& operations = recording->operations;
  // So that what is made has the size of what was read, whatever the numbers.
  const std::size_t cells = recording->steps.size() * static_cast<std::size_t>(recording->places());
  const auto missing = [&](int step, int pipeline, int stage) {
    return InvalidInput(
        fmt::format("{}: step {} has no row of dp_rank {}, stage {}; a trace has every stage of "
                    "every pipeline in every step",
                    recording->source, step, pipeline, stage));
  };
  int step_index = -1;
  std::vector<int>& first = recording->first_of;
  for (std::size_t i = 0; i < operations.size(); ++i) {
    const Operation& operation = operations[i];
    if (i > 0 && operation.step == operations[i - 1].step &&
        operation.pipeline == operations[i - 1].pipeline &&
        operation.stage == operations[i - 1].stage) {
      continue;
    }
    if (i == 0 || operation.step != operations[i - 1].step) ++step_index;
    const int cell = static_cast<int>(first.size());
    if (cell != recording->Cell(step_index, operation.pipeline, operation.stage)) {
      const int place = cell % recording->places();
      return missing(recording->steps[static_cast<std::size_t>(cell / recording->places())],
                     place / recording->stages, place % recording->stages);
    }
    first.push_back(static_cast<int>(i));
  }
  if (first.size() != cells) {
    const int place = static_cast<int>(first.size()) % recording->places();
    return missing(recording->steps.back(), place / recording->stages, place % recording->stages);
  }
  first.push_back(static_cast<int>(operations.size()));
  return {};
}

Result<void> CheckRanks(Recording* recording) {
  for (int place = 0; place < recording->places(); ++place) {
    recording->rank_of.push_back(recording->operations[recording->first_of[place]].rank);
  }
  for (const Operation& operation : recording->operations) {
    const int rank = recording->rank_of[recording->Place(operation.pipeline, operation.stage)];
    if (operation.rank != rank) {
      return tl::unexpected(AtLine(
          *recording, operation.line,
          fmt::format("rank {} of dp_rank {}, stage {}, which is rank {} elsewhere; one rank of a "
                      "tensor-parallel group is recorded, always the same",
                      operation.rank, operation.pipeline, operation.stage, rank)));
    }
  }
  std::vector<int> ranks = recording->rank_of;
  std::sort(ranks.begin(), ranks.end());
  if (std::adjacent_find(ranks.begin(), ranks.end()) != ranks.end()) {
    return InvalidInput(fmt::format("{}: rank {} is at two places (dp_rank, stage)",
                                    recording->source,
                                    *std::adjacent_find(ranks.begin(), ranks.end())));
  }
  int common = 0;
  for (const int rank : ranks) common = std::gcd(common, rank - ranks.front());
  recording->gpus_per_rank = std::max(common, 1);
  return {};
}

Result<void> CheckSequences(Recording* recording) {
  const std::vector<Operation>& operations = recording->operations;
  for (std::size_t i = 0; i < operations.size(); ++i) {
    const Operation& operation = operations[i];
    const bool first = i == 0 || operation.kind != operations[i - 1].kind ||
                       operation.stage != operations[i - 1].stage ||
                       operation.pipeline != operations[i - 1].pipeline ||
                       operation.step != operations[i - 1].step;
    const int expected = first ? 0 : operations[i - 1].sequence + 1;
    if (operation.sequence == expected) continue;
    const bool twice = operation.sequence < expected;
    return tl::unexpected(AtLine(
        *recording, operation.line,
        fmt::format("seq_id {} of {} in {} {}; seq_id counts from 0", operation.sequence,
                    OperationKindName(operation.kind), WhereText(operation),
                    twice ? "is there twice" : fmt::format("follows none of {}", expected))));
  }
  return {};
}

Result<void> CountComputations(Recording* recording) {
  int blocks = 0;
  for (std::size_t cell = 0; cell + 1 < recording->first_of.size(); ++cell) {
    int forwards = 0;
    int backwards = 0;
    const Operation& any = recording->operations[recording->first_of[cell]];
    std::vector<int> of_chunk;
    for (int i = recording->first_of[cell]; i < recording->first_of[cell + 1]; ++i) {
      const Operation& operation = recording->operations[i];
      if (!IsComputation(operation.kind)) continue;
      const bool forward = operation.kind == OperationKind::kForward;
      ++(forward ? forwards : backwards);
      if (operation.block != operation.chunk * recording->stages + operation.stage) {
        return tl::unexpected(
            AtLine(*recording, operation.line,
                   fmt::format("gmc {} is not mc x stages + stage, which is {}", operation.block,
                               operation.chunk * recording->stages + operation.stage)));
      }
      blocks = std::max(blocks, operation.chunk + 1);
      if (!forward) continue;
      of_chunk.resize(std::max<std::size_t>(of_chunk.size(), operation.chunk + 1));
      recording->microbatches =
          std::max(recording->microbatches, ++of_chunk[static_cast<std::size_t>(operation.chunk)]);
    }
    if (forwards == 0 || forwards != backwards) {
      return tl::unexpected(
          AtLine(*recording, any.line,
                 fmt::format("{} has {} forward-compute and {} backward-compute; expected as many, "
                             "and at least one",
                             WhereText(any), forwards, backwards)));
    }
  }
  recording->virtual_stages = blocks;
  return {};
}

Result<Recording> AssembleRecording(std::vector<Operation> operations, const std::string& source) {
  Recording recording;
  recording.source = source;
  std::stable_sort(
      operations.begin(), operations.end(),
      [](const Operation& a, const Operation& b) { return OperationKey(a) < OperationKey(b); });
  for (const Operation& operation : operations) {
    recording.pipelines = std::max(recording.pipelines, operation.pipeline + 1);
    recording.stages = std::max(recording.stages, operation.stage + 1);
    if (recording.steps.empty() || recording.steps.back() != operation.step) {
      recording.steps.push_back(operation.step);
    }
  }
  recording.operations = std::move(operations);
  for (auto* check : {IndexCells, CheckRanks, CheckSequences, CountComputations}) {
    if (auto good = check(&recording); !good) return tl::unexpected(good.error());
  }
  return recording;
}

}  // namespace

Result<Recording> ParseRecording(std::string_view text, const std::string& source) {
  const auto fail = [&](const TextProblem& problem) {
    const TextPosition position = PositionOf(text, problem.offset);
    return InvalidInput(
        fmt::format("{}:{}:{}: {}", source, position.line, position.column, problem.message));
  };
  if (const std::size_t nul = text.find('\0'); nul != std::string_view::npos) {
    return fail({nul, "found a NUL byte, so this is a binary file; expected CSV or gzip"});
  }
  Parsed<std::vector<Operation>> operations = ReadTraceRows(text);
  if (!operations) return fail(operations.error());
  return AssembleRecording(*std::move(operations), source);
}

Result<Recording> ReadRecording(const std::string& path) {
  Result<std::string> bytes = ReadWholeFileOrPipe(path, kMaxTraceBytes);
  if (!bytes) return tl::unexpected(bytes.error());
  if (IsGzip(*bytes)) {
    bytes = Gunzip(*bytes, path, kMaxTraceBytes);
    if (!bytes) return tl::unexpected(bytes.error());
  }
  return ParseRecording(*bytes, path);
}

}  // namespace perseus::trace
