// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "formats/zeus_plan.h"

#include <fmt/format.h>

#include <cmath>
#include <cstddef>
#include <iterator>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "common/located_error.h"
#include "common/nearest_name.h"
#include "perseus/computation.h"
#include "perseus/plan_document.h"
#include "perseus/plan_file.h"
#include "perseus/result.h"
#include "pipeline/schedules.h"

namespace perseus {
inline namespace v0 {
namespace {

// Why Zeus' format cannot hold a computation.
std::optional<std::string> WhyNot(const PlannedComputation& computation) {
  if (computation.fused) {
    return "the schedule runs two computations as one, and Zeus knows them only one by one";
  }
  if (computation.id.type != ComputationType::kForward &&
      computation.id.type != ComputationType::kBackward) {
    return fmt::format("the schedule has {} computations, and Zeus knows only forward and backward",
                       ComputationTypeName(computation.id.type));
  }
  const double clock = computation.knob.number;
  if (!(clock > 0 && clock <= std::numeric_limits<int>::max()) || std::trunc(clock) != clock) {
    return fmt::format("the clock {} is not a whole number of MHz, and Zeus knows no other",
                       computation.knob.label);
  }
  return std::nullopt;
}

}  // namespace

Result<std::string> FormatZeusPlan(const PlanDocument& plan) {
  const auto cannot = [](std::string_view reason) {
    return MakeError(ErrorCode::kInfeasible,
                     fmt::format("no Zeus plan file is written: {}; use plan.json", reason));
  };
  if (plan.virtual_stages != 1) {
    return cannot(fmt::format("each rank holds {} stages, and Zeus knows one stage a rank",
                              plan.virtual_stages));
  }
  if (!plan.knobs_are_numbers) {
    return cannot("the profile's knobs are labels, and Zeus knows only SM clocks in MHz");
  }
  // Counts and figures only: nothing of the user's text can end the comment.
  std::string text = fmt::format(
      "# Frequency plan by {} {}: {} stages, {} microbatches.\n"
      "# Iteration {} s, energy {} J of one pipeline, {:.2f} % less than at maximum clocks.\n"
      "# One list a pipeline rank, for zeus.optimizer.pipeline_frequency.server.scheduler:\n"
      "# PointSolution, or PointSolution3D with data or tensor parallelism.\n"
      "[\n",
      plan.generator_name, plan.generator_version, plan.stages, plan.microbatches,
      plan.iteration_time_seconds, plan.energy_joules, plan.saving_percent);
  for (const PlannedRank& rank : plan.ranks) {
    text += "    [";
    for (std::size_t i = 0; i < rank.computations.size(); ++i) {
      const PlannedComputation& computation = rank.computations[i];
      if (const std::optional<std::string> reason = WhyNot(computation)) return cannot(*reason);
      fmt::format_to(std::back_inserter(text), "{}('{}', {})", i == 0 ? "" : ", ",
                     ComputationTypeName(computation.id.type),
                     static_cast<int>(computation.knob.number));
    }
    text += "],\n";
  }
  text += "]\n";
  return text;
}

}  // namespace v0
}  // namespace perseus

namespace perseus::formats {
namespace {

constexpr std::size_t kMostClockDigits = 6;
// Plans of every possible size can be read: ('backward', 123456), with its comma.
static_assert(kMaxZeusPlanFileBytes >= pipeline::kMaxComputations * 32);

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsWordCharacter(char c) {
  return IsDigit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '.';
}

// Keeps the first error; after it, every step does nothing and says no.
class Reader {
 public:
  Reader(std::string_view text, const std::string& name) : text_(text), name_(name) {}

  Result<ZeusPlan> Read() {
    ZeusPlan plan;
    if (text_.size() > kMaxZeusPlanFileBytes) {
      return InvalidInput(fmt::format("{}: the file has {} bytes; a plan for Zeus has at most {}",
                                      name_, text_.size(), kMaxZeusPlanFileBytes));
    }
    ReadList("the plan: a list with one list a rank", [&]() {
      std::vector<ZeusInstruction> rank;
      ReadList("the list of a rank", [&]() { rank.push_back(ReadInstruction()); });
      plan.push_back(std::move(rank));
    });
    SkipSpace();
    if (position_ < text_.size()) Fail("nothing after the plan");
    if (error_) return tl::unexpected(*std::move(error_));
    return plan;
  }

 private:
  // '[' items with commas between and perhaps after them ']'.
  template <typename ReadItem>
  void ReadList(std::string_view what, ReadItem&& read_item) {
    if (!Take('[')) return Fail(fmt::format("'[', the start of {}", what));
    while (!error_ && !Take(']')) {
      read_item();
      if (error_ || Take(',')) continue;
      if (!Take(']')) Fail(fmt::format("',' or ']' in {}", what));
      return;
    }
  }

  ZeusInstruction ReadInstruction() {
    SkipSpace();
    ZeusInstruction instruction;
    instruction.line = line_;
    instruction.column = Column();
    if (!Take('(')) Fail("('forward', MHz) or ('backward', MHz)");
    instruction.type = ReadType();
    if (!error_ && !Take(',')) Fail("',' and a clock");
    instruction.clock_mhz = ReadClock();
    if (!error_) Take(',');
    if (!error_ && !Take(')')) Fail("')' after the clock");
    return instruction;
  }

  ComputationType ReadType() {
    using enum ComputationType;
    if (error_) return kForward;
    SkipSpace();
    for (const ComputationType type : {kForward, kBackward}) {
      for (const char quote : {'\'', '"'}) {
        const std::string literal = fmt::format("{}{}{}", quote, ComputationTypeName(type), quote);
        if (!text_.substr(position_).starts_with(literal)) continue;
        position_ += literal.size();
        return type;
      }
    }
    Fail("'forward' or 'backward'");
    return kForward;
  }

  int ReadClock() {
    if (error_) return 0;
    SkipSpace();
    std::size_t end = position_;
    while (end < text_.size() && IsWordCharacter(text_[end])) ++end;
    const std::string_view word = text_.substr(position_, end - position_);
    bool is_clock = !word.empty() && word.size() <= kMostClockDigits && word[0] != '0';
    int clock_mhz = 0;
    for (std::size_t i = 0; i < word.size() && is_clock; ++i) {
      is_clock = IsDigit(word[i]);
      clock_mhz = 10 * clock_mhz + (word[i] - '0');
    }
    if (!is_clock) {
      Fail("a clock, a whole number of MHz");
      return 0;
    }
    position_ = end;
    return clock_mhz;
  }

  // Skips white space and comments, then takes `c` if it is there.
  bool Take(char c) {
    if (error_) return false;
    SkipSpace();
    if (position_ == text_.size() || text_[position_] != c) return false;
    ++position_;
    return true;
  }

  void SkipSpace() {
    for (; position_ < text_.size(); ++position_) {
      const char c = text_[position_];
      if (c == '\n') {
        ++line_;
        line_start_ = position_ + 1;
      } else if (c == '#') {
        while (position_ + 1 < text_.size() && text_[position_ + 1] != '\n') ++position_;
      } else if (c != ' ' && c != '\t' && c != '\r' && c != '\f') {
        return;
      }
    }
  }

  int Column() const { return static_cast<int>(position_ - line_start_) + 1; }

  void Fail(std::string_view expected) {
    if (error_) return;
    SkipSpace();
    error_ =
        ErrorAt(name_, line_, Column(), fmt::format("expected {}, found {}", expected, Found()));
  }

  // The text at the position: a word, a quoted string, or one byte.
  std::string Found() const {
    if (position_ == text_.size()) return "the end of the file";
    const char first = text_[position_];
    if (first == '\'' || first == '"') {
      const std::size_t end = text_.find_first_of("'\"\n", position_ + 1);
      return fmt::format("the string {}", Shown(text_.substr(position_ + 1, end - position_ - 1)));
    }
    std::size_t end = position_ + 1;
    while (IsWordCharacter(first) && end < text_.size() && IsWordCharacter(text_[end])) ++end;
    return Shown(text_.substr(position_, end - position_));
  }

  std::string_view text_;
  const std::string& name_;
  std::size_t position_ = 0;
  std::size_t line_start_ = 0;
  int line_ = 1;
  std::optional<Error> error_;
};

}  // namespace

Result<ZeusPlan> ParseZeusPlan(std::string_view text, const std::string& name) {
  return Reader(text, name).Read();
}

}  // namespace perseus::formats
