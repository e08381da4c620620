// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "profile/knobs.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "common/cells.h"
#include "common/nearest_name.h"
#include "profile/plausible.h"
#include "profile/rows.h"

namespace perseus::profile {
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
  const auto is_unlocked = [&](std::size_t i) {
    return are_numbers && labels_[i].text == kUnlockedCell;
  };
  std::vector<std::size_t> order;
  order.reserve(labels_.size());
  for (std::size_t i = 0; i < labels_.size(); ++i) {
    if (!is_unlocked(i)) order.push_back(i);
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
  result.index_of.assign(labels_.size(), kUnlockedIndex);
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

}  // namespace perseus::profile
