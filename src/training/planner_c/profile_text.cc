// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "planner_c/profile_text.h"

#include <fmt/format.h>

#include <cstddef>
#include <iterator>
#include <string_view>

#include "planner_c/boundary.h"

namespace perseus::planner_c {
namespace {

// A cell of CSV, quoted where it must be.
Result<std::string> Cell(const char* text, std::string_view column, std::size_t row) {
  if (text == nullptr) {
    return InvalidInput(fmt::format("row {} of the profile has no {}", row, column));
  }
  const std::string_view cell = text;
  if (cell.find_first_of("\r\n") != std::string_view::npos) {
    return InvalidInput(
        fmt::format("row {} of the profile has a {} with a line's end in it", row, column));
  }
  if (cell.find_first_of(",\"") == std::string_view::npos) return std::string(cell);
  std::string quoted = "\"";
  for (const char c : cell) quoted.append(c == '"' ? 2 : 1, c);
  return quoted + '"';
}

}  // namespace

Result<std::string> ProfileText(const perseus_profile_arrays& arrays) {
  if (arrays.stage == nullptr || arrays.instruction == nullptr || arrays.time_seconds == nullptr ||
      arrays.energy_joules == nullptr ||
      (arrays.clock_mhz == nullptr) == (arrays.knob == nullptr)) {
    return InvalidInput(
        "the arrays of a profile are stage, instruction, time, energy, and either clocks or knobs");
  }
  std::string text = "stage,instruction,frequency,time,energy";
  if (arrays.time_std_seconds != nullptr) text += ",time_std";
  if (arrays.energy_std_joules != nullptr) text += ",energy_std";
  text += '\n';
  const auto out = std::back_inserter(text);
  for (std::size_t row = 0; row < arrays.rows; ++row) {
    Result<std::string> instruction = Cell(arrays.instruction[row], "instruction", row);
    if (!instruction) return instruction;
    fmt::format_to(out, "{},{},", arrays.stage[row], *instruction);
    if (arrays.clock_mhz != nullptr) {
      fmt::format_to(out, "{}", arrays.clock_mhz[row]);
    } else {
      Result<std::string> knob = Cell(arrays.knob[row], "knob", row);
      if (!knob) return knob;
      text += *knob;
    }
    fmt::format_to(out, ",{},{}", arrays.time_seconds[row], arrays.energy_joules[row]);
    if (arrays.time_std_seconds != nullptr) {
      fmt::format_to(out, ",{}", arrays.time_std_seconds[row]);
    }
    if (arrays.energy_std_joules != nullptr) {
      fmt::format_to(out, ",{}", arrays.energy_std_joules[row]);
    }
    text += '\n';
  }
  return text;
}

}  // namespace perseus::planner_c
