// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "emulate/check_spec.h"

#include <fmt/format.h>

#include <string>
#include <string_view>

#include "common/input_limits.h"
#include "emulate/straggler_text.h"
#include "emulate/stragglers.h"
#include "model/noise.h"

namespace perseus::emulate {
namespace {

Result<void> CheckNumber(std::string_view what, double value, double least, double most) {
  if (value >= least && value <= most) return {};
  return InvalidInput(fmt::format("{} is {}; expected {} to {}", what, value, least, most));
}

Result<void> CheckCount(std::string_view what, std::int64_t value, std::int64_t least,
                        std::int64_t most) {
  if (value >= least && value <= most) return {};
  return InvalidInput(fmt::format("{} is {}; expected {} to {}", what, value, least, most));
}

Result<void> CheckKind(const CostedPipeline& pipeline, StragglerKind kind, double value,
                       const std::string& what) {
  if (StragglerKindName(kind) == "?") {
    return InvalidInput(
        fmt::format("{}: its kind is none; expected slow, clock, power or stall", what));
  }
  if (kind == StragglerKind::kClockCap && !pipeline.knobs_are_numbers) {
    return InvalidInput(
        fmt::format("{}: a limit in MHz needs a profile whose knobs are clocks, but its knobs are "
                    "labels; use slow= or power=",
                    what));
  }
  if (auto r = CheckStragglerValue(kind, value, what); !r) return r;
  return CheckLimit(pipeline, kind, value);
}

Result<void> CheckStraggler(const CostedPipeline& pipeline, const EmulationSpec& spec,
                            const Straggler& straggler) {
  const std::string what =
      fmt::format("straggler '{}'", StragglerText(straggler.kind, straggler.value));
  if (auto r = CheckKind(pipeline, straggler.kind, straggler.value, what); !r) return r;
  if (auto r = CheckCount(what + ": the pipeline", straggler.pipeline, 0, spec.pipelines - 1); !r) {
    return r;
  }
  if (straggler.rank) {
    if (auto r = CheckCount(what + ": the rank", *straggler.rank, 0, pipeline.dag.num_ranks - 1);
        !r) {
      return r;
    }
  }
  if (auto r = CheckCount(what + ": the first iteration", straggler.first_iteration, 0,
                          spec.iterations - 1);
      !r) {
    return r;
  }
  if (straggler.iterations.value_or(1) > 0) return {};
  return InvalidInput(
      fmt::format("{}: the number of iterations is {}; expected at least 1, or none for until the "
                  "end",
                  what, *straggler.iterations));
}

Result<void> CheckSize(const CostedPipeline& pipeline, const EmulationSpec& spec) {
  if (spec.pipelines < 1) {
    return InvalidInput(
        fmt::format("the number of pipelines is {}; expected at least 1", spec.pipelines));
  }
  const std::int64_t ranks = std::int64_t{spec.pipelines} * pipeline.dag.num_ranks;
  if (ranks > kMostRanks) {
    return InvalidInput(fmt::format(
        "{} pipelines of {} ranks are {} ranks; at most {} can be emulated: take fewer pipelines",
        spec.pipelines, pipeline.dag.num_ranks, ranks, kMostRanks));
  }
  if (auto r = CheckCount("the number of iterations", spec.iterations, 1, kMaxIterations); !r) {
    return r;
  }
  if (!(spec.target_seconds > 0 && spec.target_seconds <= kMostSeconds)) {
    return InvalidInput(
        fmt::format("the target time of an iteration is {} s; expected a number "
                    "above 0 and at most {}",
                    spec.target_seconds, kMostSeconds));
  }
  return {};
}

Result<void> CheckRandom(const CostedPipeline& pipeline, const RandomStragglers& random) {
  if (auto r = CheckNumber("the share of GPUs that straggle in a day", random.share_of_gpus_per_day,
                           0, kMostSeconds);
      !r || random.share_of_gpus_per_day == 0) {
    return r;
  }
  if (!(random.duration_seconds > 0 && random.duration_seconds <= kMostSeconds)) {
    return InvalidInput(
        fmt::format("the time that random stragglers last is {} s; expected a "
                    "number above 0 and at most {}",
                    random.duration_seconds, kMostSeconds));
  }
  return CheckKind(pipeline, random.kind, random.value,
                   fmt::format("random stragglers '{}'", StragglerText(random.kind, random.value)));
}

Result<void> CheckShape(const PowerShapeSpec& shape) {
  const auto [low, high] = shape.band;
  if (!(low > 0 && low < high && high <= kMostBandHz)) {
    return InvalidInput(fmt::format(
        "the band of the spectrum is {} to {} Hz; expected two frequencies above 0 and at most {} "
        "Hz, the lower one first",
        low, high, kMostBandHz));
  }
  return CheckNumber("the limit of the ramp in watts per second",
                     shape.ramp_limit_watts_per_second.value_or(0), 0, kMostRampWattsPerSecond);
}

Result<void> CheckOutputs(const EmulationSpec& spec) {
  if (auto r = CheckShape(spec.power_shape); !r) return r;
  if (const auto interval = spec.power_interval_seconds) {
    if (!(*interval > 0 && *interval <= kMostSeconds)) {
      return InvalidInput(fmt::format(
          "the interval of the power trace is {} s; expected a number above 0 and at most {}",
          *interval, kMostSeconds));
    }
    if (static_cast<double>(spec.iterations) * spec.target_seconds / *interval >
        static_cast<double>(kMostPowerValues)) {
      return InvalidInput(fmt::format(
          "the interval of the power trace is {} s: the trace would have more than {} values; give "
          "a longer one",
          *interval, kMostPowerValues));
    }
  }
  if (!spec.timeline_iteration) {
    // The emulator chooses.
  } else if (*spec.timeline_iteration < 0 || *spec.timeline_iteration >= spec.iterations) {
    return InvalidInput(fmt::format(
        "the timeline is asked for of iteration {}, but the last one is {}; expected 0 to {}",
        *spec.timeline_iteration, spec.iterations - 1, spec.iterations - 1));
  }
  return CheckCount("the number of pipelines in the timeline", spec.timeline_pipelines, 0,
                    kMostRanks);
}

}  // namespace

Result<void> CheckSpec(const CostedPipeline& pipeline, const EmulationSpec& spec) {
  if (auto r = CheckSize(pipeline, spec); !r) return r;
  const TimeNoise& noise = spec.noise;
  if (auto r = CheckNumber("the noise per computation", noise.per_computation, 0, kMostNoise); !r) {
    return r;
  }
  if (auto r = CheckNumber("the noise per stage", noise.per_stage, 0, kMostNoise); !r) return r;
  if (auto r = CheckNumber("the noise per GPU", noise.per_gpu, 0, kMostNoise); !r) return r;
  if (auto r = CheckNumber("the noise per rank", noise.per_rank, 0, kMostNoise); !r) return r;
  if (auto r = CheckNumber("the length of rare noise", noise.rare_length, 0, kMostNoise); !r)
    return r;
  if (auto r = CheckNumber("the share of rare noise", noise.rare_share, 0, kMostNoise); !r)
    return r;
  if (model::HasHalfOfRareNoise(noise)) {
    return InvalidInput(fmt::format(
        "the length of rare noise is {} and its share is {}; give both above 0, or neither",
        noise.rare_length, noise.rare_share));
  }
  if (!(noise.correlation >= 0 && noise.correlation < 1)) {
    return InvalidInput(
        fmt::format("the correlation of the noise is {}; expected a number from 0 to below 1",
                    noise.correlation));
  }
  const ClockSwitching& switching = spec.switching;
  if (!ParseCallAhead(CallAheadName(switching.call_ahead))) {
    return InvalidInput("the way to call for clocks is none; expected none, end or predicted");
  }
  if (auto r = CheckNumber("the latency of a clock switch in seconds", switching.latency_seconds, 0,
                           kMostSeconds);
      !r) {
    return r;
  }
  if (auto r = CheckClockLatencies(switching); !r) return r;
  if (auto r = CheckNumber("the stall of a clock switch in seconds", switching.stall_seconds, 0,
                           kMostSeconds);
      !r) {
    return r;
  }
  if (auto r = CheckNumber("the spread of that latency in seconds",
                           switching.latency_spread_seconds, 0, switching.latency_seconds);
      !r) {
    return r;
  }
  if (auto r = CheckNumber("the share of a computation that an early clock may cost",
                           switching.max_early_loss, 0, 1);
      !r) {
    return r;
  }
  if (auto r = CheckNumber("the least time between two calls in seconds",
                           switching.min_interval_seconds, 0, kMostSeconds);
      !r) {
    return r;
  }
  for (const Straggler& straggler : spec.stragglers) {
    if (auto r = CheckStraggler(pipeline, spec, straggler); !r) return r;
  }
  if (auto r = CheckRandom(pipeline, spec.random_stragglers); !r) return r;
  if (auto r =
          CheckNumber("the reaction delay in seconds", spec.control.delay_seconds, 0, kMostSeconds);
      !r) {
    return r;
  }
  return CheckOutputs(spec);
}

}  // namespace perseus::emulate
