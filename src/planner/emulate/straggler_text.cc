// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "emulate/straggler_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/numbers.h"
#include "perseus/emulator.h"

namespace perseus {
inline namespace v0 {
namespace {

constexpr std::array<StragglerKind, 4> kKinds = {StragglerKind::kSlow, StragglerKind::kClockCap,
                                                 StragglerKind::kPowerCap,
                                                 StragglerKind::kDataStall};

std::optional<StragglerKind> KindNamed(std::string_view name) {
  for (const StragglerKind kind : kKinds) {
    if (StragglerKindName(kind) == name) return kind;
  }
  return std::nullopt;
}

// How the value of a kind is written: in the units that may follow it.
struct ValueText {
  std::span<const UnitScale> units;
  std::string_view in_words;
};

constexpr UnitScale kClockUnits[] = {{"MHz", 1}, {"GHz", 1e3}};

const ValueText& TextOf(StragglerKind kind) {
  static constexpr std::array<ValueText, kKinds.size()> kTexts = {
      {{kFactorUnits, "how many times as long, as in slow=1.2"},
       {kClockUnits, "MHz, as in clock=1100 or clock=1100MHz"},
       {kPowerUnits, "watts of a GPU, as in power=250 or power=250W"},
       {kTimeUnits, "seconds, as in stall=0.5 or stall=500ms"}}};
  return kTexts[static_cast<std::size_t>(kind)];
}

Result<void> ReadWhere(std::string_view key, std::string_view value, const std::string& what,
                       Straggler* straggler) {
  const auto number = ParseInteger<std::int64_t>(value);
  const std::int64_t least = key == "for" ? 1 : 0;
  const std::int64_t most = key == "pipeline" || key == "rank"
                                ? std::numeric_limits<int>::max()
                                : std::numeric_limits<std::int64_t>::max();
  if (!number || *number < least || *number > most) {
    return InvalidInput(fmt::format("{}: {} is '{}'; expected a whole number, at least {}", what,
                                    key, value, least));
  }
  if (key == "pipeline") straggler->pipeline = static_cast<int>(*number);
  if (key == "rank") straggler->rank = static_cast<int>(*number);
  if (key == "from") straggler->first_iteration = *number;
  if (key == "for") straggler->iterations = *number;
  return {};
}

}  // namespace

std::string_view StragglerKindName(StragglerKind kind) {
  constexpr std::array<std::string_view, kKinds.size()> kNames = {"slow", "clock", "power",
                                                                  "stall"};
  const auto index = static_cast<std::size_t>(kind);
  return index < kNames.size() ? kNames[index] : "?";
}

}  // namespace v0
}  // namespace perseus

namespace perseus::emulate {
namespace {

// The least and the most that one GPU draws, waiting or computing at any knob.
std::pair<double, double> PowersOfGpu(const CostedPipeline& pipeline) {
  std::vector<double> watts = pipeline.rank_blocking_power_watts;
  for (const CostTable& table : pipeline.tables) {
    for (const CostOption& option : table.all_options) {
      watts.push_back(option.energy_joules / option.time_seconds);
    }
  }
  const auto [least, most] = std::minmax_element(watts.begin(), watts.end());
  return {*least / pipeline.tensor_parallel, *most / pipeline.tensor_parallel};
}

}  // namespace

Result<Straggler> ParseStraggler(std::string_view text) {
  constexpr std::string_view kExample = "such as slow=1.2,pipeline=3,rank=2,from=100,for=50";
  const std::string what = fmt::format("straggler '{}'", text);
  Straggler straggler;
  std::set<std::string_view> seen;
  for (std::string_view rest = text;;) {
    const std::size_t comma = rest.find(',');
    const std::string_view part = Trimmed(rest.substr(0, comma));
    const std::size_t equals = part.find('=');
    const std::string_view key = part.substr(0, equals);
    if (equals == std::string_view::npos) {
      return InvalidInput(
          fmt::format("{}: '{}' has no '='; expected KEY=VALUE pairs, {}", what, part, kExample));
    }
    const std::string_view value = part.substr(equals + 1);
    if (seen.empty()) {
      const auto kind = KindNamed(key);
      if (!kind) {
        return InvalidInput(fmt::format(
            "{}: it begins with '{}'; expected what goes wrong first: slow=FACTOR, clock=MHZ, "
            "power=WATTS or stall=SECONDS, {}",
            what, key, kExample));
      }
      const ValueText& expected = TextOf(*kind);
      const auto number = ParseWithUnit(value, expected.units);
      if (!number) {
        return InvalidInput(
            fmt::format("{}: {} is '{}'; expected {}", what, key, value, expected.in_words));
      }
      straggler.kind = *kind;
      straggler.value = *number;
      if (auto checked = CheckStragglerValue(*kind, straggler.value, what); !checked) {
        return tl::unexpected(checked.error());
      }
    } else if (key == "pipeline" || key == "rank" || key == "from" || key == "for") {
      if (auto read = ReadWhere(key, value, what, &straggler); !read) {
        return tl::unexpected(read.error());
      }
    } else {
      return InvalidInput(fmt::format(
          "{}: '{}' is not known here; after what goes wrong come pipeline=, rank=, from= and "
          "for= (iterations), {}",
          what, key, kExample));
    }
    if (!seen.insert(key).second) {
      return InvalidInput(fmt::format("{}: {} is given twice", what, key));
    }
    if (comma == std::string_view::npos) return straggler;
    rest.remove_prefix(comma + 1);
  }
}

std::string StragglerText(StragglerKind kind, double value) {
  return fmt::format("{}={}", StragglerKindName(kind), value);
}

Result<void> CheckLimit(const CostedPipeline& pipeline, StragglerKind kind, double value) {
  if (kind == StragglerKind::kPowerCap) {
    const auto [least, most] = PowersOfGpu(pipeline);
    if (value >= least && value <= most) return {};
    return InvalidInput(fmt::format(
        "a straggler's power={} is {} all that a GPU of this job draws, {:.1f} to {:.1f} W; give a "
        "limit between them",
        value, value > most ? "above" : "below", least, most));
  }
  if (kind != StragglerKind::kClockCap || !pipeline.knobs_are_numbers) return {};
  const Knob& highest = pipeline.knobs.front();
  const Knob& lowest = pipeline.knobs.back();
  if (value >= lowest.number && value <= highest.number) return {};
  return InvalidInput(fmt::format(
      "a straggler's clock={} is {} all clocks of the profile; it has clocks from {} to {} MHz",
      value, value > highest.number ? "above" : "below", lowest.label, highest.label));
}

Result<void> CheckStragglerValue(StragglerKind kind, double value, const std::string& what) {
  constexpr double kMostSlow = 1000;
  constexpr double kMost = 1e6;
  const auto fail = [&](std::string_view name, std::string_view expected) -> Result<void> {
    return InvalidInput(fmt::format("{}: {} is {}; expected {}", what, name, value, expected));
  };
  switch (kind) {
    case StragglerKind::kSlow:
      if (value >= 1 && value <= kMostSlow) return {};
      return fail("the factor of slow=", "a number from 1 (not slower) to 1000");
    case StragglerKind::kClockCap:
      if (value > 0 && value <= kMost) return {};
      return fail("the limit of clock=", "MHz, a number above 0 and at most 1000000");
    case StragglerKind::kPowerCap:
      if (value > 0 && value <= kMost) return {};
      return fail("the limit of power=", "watts per GPU, a number above 0 and at most 1000000");
    case StragglerKind::kDataStall:
      if (value >= 0 && value <= kMost) return {};
      return fail("the time of stall=", "seconds, a number from 0 to 1000000");
  }
  return {};
}

}  // namespace perseus::emulate
