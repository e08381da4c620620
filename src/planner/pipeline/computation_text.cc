// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "pipeline/computation_text.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "common/nearest_name.h"

namespace perseus::pipeline {
namespace {

using enum ComputationType;

constexpr std::string_view kOverlap = "OVERLAP_F_B";

struct Keyword {
  std::string_view text;
  std::optional<ComputationType> type;  // Empty: communication or memory.
  bool has_microbatch = true;
};
constexpr std::array kKeywords = {
    Keyword{"F", kForward},
    Keyword{"B", kBackward},
    Keyword{"I", kBackwardInput},
    Keyword{"W", kBackwardWeight},
    Keyword{"R", kRecompute},
    Keyword{"SEND_F", std::nullopt},
    Keyword{"RECV_F", std::nullopt},
    Keyword{"SEND_B", std::nullopt},
    Keyword{"RECV_B", std::nullopt},
    Keyword{"UNSHARD", std::nullopt, false},
    Keyword{"RESHARD", std::nullopt, false},
    Keyword{"REDUCE_GRAD", std::nullopt, false},
};

// Reads a cell from left to right.
class CellParser {
 public:
  explicit CellParser(std::string_view text) : text_(text) {}

  tl::expected<ParsedCell, CellError> Parse() {
    if (text_.empty()) return ParsedCell{};
    if (text_.front() == '(') return ParseOverlap();
    auto id = ParseComputation();
    if (!id) return tl::unexpected(id.error());
    if (position_ != text_.size()) {
      return Fail(position_,
                  fmt::format("unexpected {} after the action", Shown(text_.substr(position_))));
    }
    if (!*id) return ParsedCell{};
    return ParsedCell{ScheduleStep{**id, std::nullopt}};
  }

 private:
  using ComputationOrNothing = tl::expected<std::optional<ComputationId>, CellError>;

  static tl::unexpected<CellError> Fail(std::size_t offset, std::string problem) {
    return tl::unexpected(CellError{offset, std::move(problem)});
  }

  bool Skip(std::string_view token) {
    if (text_.substr(position_, token.size()) != token) return false;
    position_ += token.size();
    return true;
  }

  tl::expected<int, CellError> ParseNumber(std::string_view what) {
    const char* const first = text_.data() + position_;
    const char* const last = text_.data() + text_.size();
    int number = 0;
    // from_chars would take a minus sign.
    if (first == last || *first < '0' || *first > '9') {
      return Fail(position_, fmt::format("expected the number of a {} in {}: actions look like "
                                         "0F3 (stage, F B I W or R, microbatch)",
                                         what, Shown(text_)));
    }
    const auto [end, error] = std::from_chars(first, last, number);
    if (error != std::errc()) {
      return Fail(position_,
                  fmt::format("the number of the {} in {} is too large", what, Shown(text_)));
    }
    position_ += static_cast<std::size_t>(end - first);
    return number;
  }

  // A computation; nothing where it is communication.
  ComputationOrNothing ParseComputation() {
    const auto stage = ParseNumber("stage");
    if (!stage) return tl::unexpected(stage.error());
    const std::size_t word_start = position_;
    while (position_ < text_.size() &&
           ((text_[position_] >= 'A' && text_[position_] <= 'Z') || text_[position_] == '_')) {
      ++position_;
    }
    const std::string_view word = text_.substr(word_start, position_ - word_start);
    const auto* const keyword = std::find_if(kKeywords.begin(), kKeywords.end(),
                                             [&](const Keyword& k) { return k.text == word; });
    if (keyword == kKeywords.end()) {
      return Fail(word_start,
                  fmt::format("{} is no action that we know in {}: expected F, B, "
                              "I, W, R, SEND_F, RECV_F, SEND_B, RECV_B, UNSHARD, RESHARD "
                              "or REDUCE_GRAD after the stage",
                              Shown(word), Shown(text_)));
    }
    if (!keyword->has_microbatch) return std::nullopt;
    const auto microbatch = ParseNumber("microbatch");
    if (!microbatch) return tl::unexpected(microbatch.error());
    if (!keyword->type) return std::nullopt;
    return ComputationId{*keyword->type, *stage, *microbatch};
  }

  // "(" (forward | recompute) ";" backward ")" "OVERLAP_F_B".
  tl::expected<ParsedCell, CellError> ParseOverlap() {
    std::array<ComputationId, 2> halves;
    for (std::size_t half = 0; half < halves.size(); ++half) {
      if (!Skip(half == 0 ? "(" : ";")) return FailOverlap(position_);
      const std::size_t start = position_;
      const auto id = ParseComputation();
      if (!id) return tl::unexpected(id.error());
      if (!*id) return FailOverlap(start);
      halves[half] = **id;
      const bool is_right = half == 0 ? halves[0].type == kForward || halves[0].type == kRecompute
                                      : MayRunAsOne(halves[0], halves[1]);
      if (!is_right) return FailOverlap(start);
    }
    if (!Skip(")") || !Skip(kOverlap) || position_ != text_.size()) return FailOverlap(position_);
    return ParsedCell{ScheduleStep{halves[0], halves[1]}};
  }

  tl::unexpected<CellError> FailOverlap(std::size_t offset) const {
    return Fail(offset, fmt::format("{0} is not an overlap of a forward with a backward: expected "
                                    "the form (0F3;1B0){1}, or (0R3;0B3){1} for a recompute with "
                                    "its own backward",
                                    Shown(text_), kOverlap));
  }

  std::string_view text_;
  std::size_t position_ = 0;
};

}  // namespace

std::string ComputationText(const ComputationId& id) {
  return fmt::format("{}{}{}", id.stage, ComputationTypeLetter(id.type), id.microbatch);
}

std::string StepText(const ScheduleStep& step) {
  if (!step.fused) return ComputationText(step.id);
  return fmt::format("({};{}){}", ComputationText(step.id), ComputationText(*step.fused), kOverlap);
}

tl::expected<ParsedCell, CellError> ParseCell(std::string_view text) {
  return CellParser(text).Parse();
}

}  // namespace perseus::pipeline
