// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// Any bytes as a work table and as its fit: an error that names a place, or
// factors that can be used, never a crash.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <utility>
#include <vector>

#include "common/input_limits.h"
#include "perseus/profile.h"
#include "perseus/work.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using enum perseus::ComputationType;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  perseus::TokenRule rule;
  if (auto fit = perseus::ParseWorkFit(text, "fuzz.csv")) rule.fit = *std::move(fit);
  const auto table = perseus::ParseWork(text, "fuzz.csv");
  if (!table) {
    if (table.error().code != perseus::ErrorCode::kInvalidInput) std::abort();
    if (!table.error().message.starts_with("fuzz.csv:")) std::abort();
    return 0;
  }
  for (const perseus::WorkRow& row : table->rows) {
    if (row.line < 2 || row.column < 1 || !(row.value > 0)) std::abort();
  }
  static const auto profile = perseus::ParseProfile(
      "stage,instruction,frequency,time,energy\n0,forward,1400,1,100\n0,backward,1400,2,200\n",
      "profile.csv");
  const std::vector<std::pair<int, perseus::ComputationType>> kinds = {
      {0, kForward}, {0, kBackwardInput}, {0, kBackwardWeight}, {0, kRecompute}};
  constexpr int kMicrobatches = 8;
  const auto work = perseus::MakeWork(*table, rule, *profile, kMicrobatches, kinds);
  if (!work) {
    if (work.error().code != perseus::ErrorCode::kInvalidInput) std::abort();
    return 0;
  }
  if (work->num_microbatches() > kMicrobatches) std::abort();
  for (int m = 0; m < kMicrobatches; ++m) {
    for (const auto& [stage, type] : kinds) {
      const double factor = work->FactorOf({type, stage, m});
      if (!(factor >= perseus::kLeastWork && factor <= perseus::kMostWork)) std::abort();
    }
  }
  return 0;
}
