// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "perseus/profile.h"

// Whatever the bytes, a profile or one sentence; and a profile keeps what its
// header promises.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto profile = perseus::ParseProfile(text, "p.csv");
  if (!profile) {
    if (!profile.error().message.starts_with("p.csv:")) std::abort();
    return 0;
  }
  if (profile->tables.empty() || profile->num_stages < 1) std::abort();
  for (const perseus::OptionTable& table : profile->tables) {
    if (profile->Find(table.stage, table.type) != &table) std::abort();
    if (table.options.empty()) std::abort();
    for (const perseus::Option& option : table.options) {
      if (!(option.time_seconds > 0) || !(option.energy_joules >= 0)) std::abort();
    }
  }
  for (const perseus::DefaultClockCost& cost : profile->default_clocks) {
    if (profile->FindDefaultClockCost(cost.stage, cost.type) != &cost) std::abort();
    if (profile->Find(cost.stage, cost.type) == nullptr) std::abort();
    if (!(cost.time_seconds > 0) || !(cost.energy_joules >= 0)) std::abort();
  }
  return 0;
}
