// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "formats/zeus_plan_reader.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "common/located_error.h"
#include "common/nearest_name.h"
#include "perseus/plan_file.h"
#include "pipeline/limits.h"

namespace perseus::formats {
namespace {

constexpr std::size_t kMostClockDigits = 6;
// What can be planned can be read: ('backward', 123456), with its comma.
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

  // What is at the position: a word, what is between quotes, or one byte.
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
