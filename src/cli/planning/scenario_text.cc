// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/planning/scenario_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include "cli/framework/table.h"
#include "report/figures.h"

namespace perseus::cli {
namespace {

std::string Percent(double share) { return fmt::format("{:.3g} %", 100 * share); }

std::string WhatIsWrong(StragglerKind kind, double value) {
  switch (kind) {
    case StragglerKind::kSlow:
      return fmt::format("takes {:g} times as long", value);
    case StragglerKind::kClockCap:
      return fmt::format("runs at {:g} MHz at most", value);
    case StragglerKind::kPowerCap:
      return fmt::format("draws {:g} W a GPU at most", value);
    case StragglerKind::kDataStall:
      break;
  }
  return fmt::format("waits {} for data", SpanOfTime(value));
}

std::string StragglerInWords(const Straggler& straggler) {
  std::string text = fmt::format("pipeline {}", straggler.pipeline);
  if (straggler.rank) text += fmt::format(" rank {}", *straggler.rank);
  text += " " + WhatIsWrong(straggler.kind, straggler.value);
  if (straggler.first_iteration > 0) {
    text += fmt::format(" from iteration {}", straggler.first_iteration);
  }
  if (straggler.iterations) {
    text += fmt::format(" for {}", CountOf(*straggler.iterations, "iteration"));
  }
  return text;
}

std::string PercentOf(double share, const std::optional<ValueRange>& range) {
  return range ? fmt::format("{:.3g} to {}", 100 * range->least, Percent(range->most))
               : Percent(share);
}

void DescribeNoise(const TimeNoise& noise, const ConditionRanges& ranges,
                   std::vector<std::string>* parts) {
  std::vector<std::string> kinds;
  if (noise.per_computation > 0) {
    kinds.push_back(PercentOf(noise.per_computation, ranges.noise) + " a computation");
    if (noise.correlation > 0) {
      kinds.back() += fmt::format(" (correlation {:g})", noise.correlation);
    }
  }
  if (noise.per_stage > 0) kinds.push_back(Percent(noise.per_stage) + " a stage");
  if (noise.per_rank > 0)
    kinds.push_back(PercentOf(noise.per_rank, ranges.rank_noise) + " a rank and iteration");
  if (noise.has_rare()) {
    kinds.push_back(fmt::format("{} more for {} of the computations", Percent(noise.rare_length),
                                Percent(noise.rare_share)));
  }
  if (noise.per_gpu > 0) kinds.push_back(Percent(noise.per_gpu) + " a GPU");
  if (!kinds.empty()) parts->push_back(fmt::format("noise of {}", fmt::join(kinds, ", ")));
}

std::string_view WhenCalled(CallAhead call_ahead) {
  switch (call_ahead) {
    case CallAhead::kNone:
      return "called for when its computation starts";
    case CallAhead::kEnd:
      return "called for when the computation before has ended";
    case CallAhead::kPredicted:
      break;
  }
  return "called for early enough to be there when its computation starts";
}

void DescribeSwitching(const ClockSwitching& switching, const ConditionRanges& ranges,
                       std::vector<std::string>* parts) {
  if (switching.latency_seconds > 0) {
    const std::string spread =
        switching.latency_spread_seconds > 0
            ? fmt::format(" (spread {})", SpanOfTime(switching.latency_spread_seconds))
            : "";
    const std::optional<ValueRange>& range = ranges.switch_latency_seconds;
    const std::string latency =
        range ? fmt::format("{} to {}", SpanOfTime(range->least), SpanOfTime(range->most))
              : SpanOfTime(switching.latency_seconds);
    parts->push_back(fmt::format("a clock takes effect {}{} after the call, and is {}", latency,
                                 spread, WhenCalled(switching.call_ahead)));
    std::vector<std::string> own;
    for (const ClockLatency& each : switching.latency_at) {
      own.push_back(fmt::format("{:g} MHz {}", each.clock, SpanOfTime(each.seconds)));
    }
    if (!own.empty()) {
      parts->push_back(fmt::format("some clocks take another time: {}", fmt::join(own, ", ")));
    }
  }
  if (switching.min_interval_seconds > 0) {
    parts->push_back(
        fmt::format("at least {} between calls", SpanOfTime(switching.min_interval_seconds)));
  }
  if (switching.stall_seconds > 0) {
    parts->push_back(
        fmt::format("a rank pauses {} at a change of clock", SpanOfTime(switching.stall_seconds)));
  }
}

void DescribeStragglers(const EmulationSpec& spec, std::vector<std::string>* parts) {
  constexpr std::size_t kMostNamed = 4;
  for (std::size_t i = 0; i < spec.stragglers.size() && i < kMostNamed; ++i) {
    parts->push_back(StragglerInWords(spec.stragglers[i]));
  }
  if (spec.stragglers.size() > kMostNamed) {
    parts->push_back(fmt::format(
        "{} more",
        CountOf(static_cast<long long>(spec.stragglers.size() - kMostNamed), "straggler")));
  }
  const RandomStragglers& random = spec.random_stragglers;
  if (random.share_of_gpus_per_day > 0) {
    parts->push_back(fmt::format("{} of the GPUs a day become stragglers for {} (its rank {})",
                                 Percent(random.share_of_gpus_per_day),
                                 SpanOfTime(random.duration_seconds),
                                 WhatIsWrong(random.kind, random.value)));
  }
  if (!spec.control.reacts) {
    parts->push_back("nobody reacts to stragglers");
  } else if (spec.control.delay_seconds > 0) {
    parts->push_back(
        fmt::format("new plans {} after a change", SpanOfTime(spec.control.delay_seconds)));
  }
}

}  // namespace

std::string SpanOfTime(double seconds) {
  if (seconds > 0 && seconds < 1e-3) return fmt::format("{:.4g} us", 1e6 * seconds);
  if (seconds > 0 && seconds < 1) return fmt::format("{:.4g} ms", 1e3 * seconds);
  if (seconds >= 86400) return fmt::format("{:.4g} d", seconds / 86400);
  if (seconds >= 3600) return fmt::format("{:.4g} h", seconds / 3600);
  if (seconds >= 120) return fmt::format("{:.4g} min", seconds / 60);
  return fmt::format("{:.4g} s", seconds);
}

bool HasStragglers(const EmulationSpec& spec) {
  return !spec.stragglers.empty() || spec.random_stragglers.share_of_gpus_per_day > 0;
}

std::string ConditionsInWords(const Conditions& conditions) {
  std::vector<std::string> parts;
  DescribeNoise(conditions.noise, conditions.ranges, &parts);
  DescribeSwitching(conditions.switching, conditions.ranges, &parts);
  if (parts.empty()) parts.emplace_back("no noise, no late clocks");
  if (conditions.change_joules > 0) {
    parts.push_back(fmt::format("{:g} J for a change of clock", conditions.change_joules));
  }
  if (conditions.max_changes) {
    parts.push_back(
        fmt::format("at most {} an iteration",
                    CountOf(static_cast<long long>(*conditions.max_changes), "change")));
  }
  return fmt::format("{}; at most {} slower with a confidence of {}.", fmt::join(parts, "; "),
                     Percent(conditions.max_slowdown), Percent(conditions.confidence));
}

std::string ExpectedInWords(const ExpectedFigures& figures) {
  return fmt::format("saving {}, slowdown {}, {:.0f} clock calls an iteration",
                     FormatPercent(figures.saving_percent, 2),
                     FormatSignedPercent(figures.slowdown_percent, 3), figures.clock_calls);
}

std::string PriceOfChangesText(double change_joules, std::string_view name,
                               const CalledRun& baseline, const CalledRun& run,
                               std::string_view of_what) {
  const double before = change_joules * baseline.clock_calls;
  const double after = change_joules * run.clock_calls;
  return fmt::format(
      "{}{} cost {} ({}: {} each). With this price the saving is {}. Other figures leave the price "
      "out, unless they say so.",
      CountOf(std::llround(run.clock_calls), "clock call"), of_what, FormatJoules(after), name,
      FormatJoules(change_joules),
      FormatPercent(report::PercentSaved(run.joules + after, baseline.joules + before), 2));
}

std::string ScenarioInWords(const EmulationSpec& spec) {
  std::vector<std::string> parts;
  DescribeNoise(spec.noise, {}, &parts);
  DescribeSwitching(spec.switching, {}, &parts);
  if (HasStragglers(spec)) DescribeStragglers(spec, &parts);
  if (parts.empty()) return "no noise, no late clocks, no stragglers.";
  return fmt::format("{}; seed {}.", fmt::join(parts, "; "), spec.seed);
}

}  // namespace perseus::cli
