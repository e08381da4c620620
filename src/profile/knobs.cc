// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "profile/knobs.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <string>

#include "common/cells.h"
#include "common/nearest_name.h"

namespace perseus::profile {
namespace {

Parsed<void> CheckFrequency(const CsvCell& cell, const Number& number) {
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

}  // namespace

Parsed<int> KnobReader::Add(const CsvCell& cell) {
  if (cell.text.empty()) {
    return ProblemAt(cell.offset, "frequency cell is empty; expected a number above 0 or a label");
  }
  const auto [place, is_new] = index_.try_emplace(cell.text, static_cast<int>(labels_.size()));
  if (is_new) labels_.push_back(cell);
  return place->second;
}

Parsed<KnobOrder> KnobReader::Finish() const {
  std::vector<Number> numbers;
  numbers.reserve(labels_.size());
  for (const CsvCell& cell : labels_) numbers.push_back(ParseNumber(cell.text));
  KnobOrder result;
  result.are_numbers = std::none_of(numbers.begin(), numbers.end(), [](const Number& number) {
    return number.kind == NumberKind::kNone;
  });
  result.index_of.resize(labels_.size());
  std::vector<std::size_t> order(labels_.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (result.are_numbers) {
    for (std::size_t i = 0; i < labels_.size(); ++i) {
      if (auto checked = CheckFrequency(labels_[i], numbers[i]); !checked) {
        return tl::unexpected(checked.error());
      }
    }
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return numbers[a].value > numbers[b].value;
    });
  }
  for (const std::size_t i : order) {
    const double value = result.are_numbers ? numbers[i].value : 0.0;
    // Two spellings of one number are one knob, called as it was first spelled.
    if (!result.are_numbers || result.knobs.empty() || result.knobs.back().number != value) {
      result.knobs.push_back({std::string(labels_[i].text), value});
    }
    result.index_of[i] = static_cast<int>(result.knobs.size()) - 1;
  }
  return result;
}

}  // namespace perseus::profile
