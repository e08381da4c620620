// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "pipeline/schedule_names.h"

#include <fmt/core.h>
#include <fmt/format.h>

#include <array>
#include <vector>

#include "common/nearest_name.h"
#include "perseus/schedule.h"

namespace perseus {
inline namespace v0 {
namespace {

// Other spellings, folded: PyTorch's class names without "Schedule", and what
// papers say.
struct Alias {
  std::string_view folded;
  std::string_view canonical;
};
constexpr std::array kAliases = {
    Alias{"interleaved", "interleaved-1f1b"},
    Alias{"megatron", "megatron-interleaved"},
    Alias{"megatroninterleaved1f1b", "megatron-interleaved"},
    Alias{"zb1p", "interleaved-zero-bubble"},
    Alias{"zbv", "zbv-zero-bubble"},
};

}  // namespace

const std::vector<std::string>& ScheduleNames() {
  static const std::vector<std::string> kNames = {"gpipe",
                                                  "1f1b",
                                                  "early-recomputation-1f1b",
                                                  "looped-bfs",
                                                  "interleaved-1f1b",
                                                  "megatron-interleaved",
                                                  "interleaved-zero-bubble",
                                                  "zbv-zero-bubble",
                                                  "dualpipev"};
  return kNames;
}

std::optional<std::string> CanonicalScheduleName(std::string_view name) {
  const std::string folded = FoldedName(name);
  for (const std::string& canonical : ScheduleNames()) {
    if (folded == FoldedName(canonical)) return canonical;
  }
  for (const Alias& alias : kAliases) {
    if (folded == alias.folded) return std::string(alias.canonical);
  }
  return std::nullopt;
}

}  // namespace v0
}  // namespace perseus

namespace perseus::pipeline {

std::string UnknownScheduleName(std::string_view name) {
  std::vector<std::string> spellings = ScheduleNames();
  for (const Alias& alias : kAliases) spellings.emplace_back(alias.folded);
  const auto nearest = CanonicalScheduleName(NearestName(name, spellings));
  return fmt::format("unknown schedule {}{}; known are {}", Shown(name),
                     nearest ? fmt::format("; did you mean '{}'?", *nearest) : "",
                     fmt::join(ScheduleNames(), ", "));
}

}  // namespace perseus::pipeline
