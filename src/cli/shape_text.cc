// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/shape_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/plan_summary.h"
#include "cli/scenario_text.h"
#include "cli/table.h"

namespace perseus::cli {
namespace {

struct PowerUnitOfText {
  std::string_view name;
  double factor = 1;
  int decimals = 1;

  std::string operator()(double watts) const { return WithThousands(watts * factor, decimals); }
  std::string operator()(const std::optional<PowerRamp>& ramp) const {
    if (!ramp) return "-";
    return fmt::format("+{} -{}", (*this)(ramp->rise_watts_per_second),
                       (*this)(ramp->fall_watts_per_second));
  }
};

PowerUnitOfText UnitFor(double most_watts) {
  if (most_watts < 1e4) return {"W", 1, 1};
  if (most_watts < 1e7) return {"kW", 1e-3, 2};
  return {"MW", 1e-6, 3};
}

double MostRampOf(const PowerShape& shape) {
  return std::max(shape.ramp_1s ? shape.ramp_1s->most() : 0,
                  shape.ramp_100ms ? shape.ramp_100ms->most() : 0);
}

std::string BandInWords(const PowerBand& band) {
  return fmt::format("{:g}-{:g} Hz", band.low_hz, band.high_hz);
}

std::string LimitsInWords(const EmulationSummary& summary) {
  const PowerLimits& limits = summary.power_limits;
  std::vector<std::string> parts;
  if (limits.ramp_watts_per_second) {
    parts.push_back(fmt::format("{} per second", FormatWatts(*limits.ramp_watts_per_second)));
  }
  if (limits.band_rms_watts) {
    parts.push_back(fmt::format("{} of swing in {}", FormatWatts(*limits.band_rms_watts),
                                BandInWords(summary.spec.power_shape.band)));
  }
  return fmt::format("{}", fmt::join(parts, " and "));
}

// What slowing down to the last run takes, against the first.
std::string SlowedInWords(const EmulationSummary& summary, const SlowerRun& run) {
  const Emulation& before = *summary.max_clocks;
  return fmt::format(
      "planned for {} an iteration, it saves {} of the energy for {} of the time, against {} and "
      "{} at its own target",
      FormatSeconds(run.target_seconds),
      FormatPercent(PercentSaved(run.energy_joules, before.energy.total_joules()), 2),
      FormatSignedPercent(PercentOver(run.time_seconds, before.time_seconds), 2),
      FormatPercent(
          PercentSaved(summary.slower.front().energy_joules, before.energy.total_joules()), 2),
      FormatSignedPercent(PercentOver(summary.slower.front().time_seconds, before.time_seconds),
                          2));
}

}  // namespace

std::string LimitSentence(const EmulationSummary& summary) {
  const std::string limits = LimitsInWords(summary);
  std::vector<std::string> keep;
  for (const PolicyRow& row : summary.policies) {
    if (row.why_not.empty() && summary.power_limits.KeptBy(row.shape)) keep.push_back(row.policy);
  }
  std::string text = keep.empty() ? fmt::format("none of these keeps {}.", limits)
                                  : fmt::format("{} kept by {}.", limits, fmt::join(keep, ", "));
  const SlowerRun& last = summary.slower.back();
  if (!last.shape.stated()) return text + " The job is too short or too long to say more.";
  if (!last.keeps) {
    text += fmt::format(" {} does not keep it with up to {} an iteration, the longest tried.",
                        summary.label, FormatSeconds(last.target_seconds));
  } else if (summary.slower.size() > 1) {
    text +=
        fmt::format(" {} keeps it slowed down: {}.", summary.label, SlowedInWords(summary, last));
  }
  const double ballast = summary.slower.front().shape.ballast_joules;
  if (!summary.slower.front().keeps && ballast > 0) {
    text += fmt::format(
        " Ballast that holds power up, so that it changes no faster at any moment, takes {} at "
        "the target ({} of the energy).",
        FormatJoules(ballast),
        FormatPercent(100 * ballast / summary.slower.front().energy_joules, 2));
  }
  return text;
}

std::string FormatShapes(const EmulationSummary& summary, const Style& style) {
  double ramp = 0;
  double swing = 0;
  bool stated = false;
  for (const PolicyRow& row : summary.policies) {
    stated = stated || (row.why_not.empty() && row.shape.stated());
    ramp = std::max(ramp, MostRampOf(row.shape));
    swing = std::max(swing, row.shape.rms_watts);
  }
  if (!stated) return "";
  const PowerUnitOfText ramps = UnitFor(ramp);
  const PowerUnitOfText swings = UnitFor(swing);
  std::vector<std::string> header = {
      "power of the job",
      fmt::format("ramp 1 s {}/s", ramps.name),
      fmt::format("ramp 100 ms {}/s", ramps.name),
      fmt::format("swing {}", swings.name),
      fmt::format("in {}", BandInWords(summary.spec.power_shape.band)),
      "share",
      "strongest Hz"};
  const bool limited = summary.power_limits.any();
  if (limited) header.emplace_back("keeps");
  Table table(std::move(header), {Align::kLeft});
  for (const PolicyRow& row : summary.policies) {
    const PowerShape& shape = row.shape;
    if (!row.why_not.empty() || !shape.stated()) continue;
    std::vector<std::string> cells = {row.policy,
                                      ramps(shape.ramp_1s),
                                      ramps(shape.ramp_100ms),
                                      swings(shape.rms_watts),
                                      swings(shape.band_rms_watts),
                                      FormatPercent(100 * shape.band_share, 2),
                                      fmt::format("{:.3g}", shape.strongest_hz)};
    if (limited) cells.emplace_back(summary.power_limits.KeptBy(shape) ? "yes" : "no");
    table.AddRow(std::move(cells));
  }
  std::string out =
      "\n" + table.Format(style.rule()) + "\n" +
      Wrap(fmt::format("Ramps: fastest rise and fall of mean power from one window to the next. "
                       "Swing: root mean square around the mean, from means over {}.",
                       SpanOfTime(summary.emulation->power_shape.interval_seconds)),
           style.columns, 0) +
      "\n";
  if (limited) out += "\n" + Fact("Limits", LimitSentence(summary), style);
  return out;
}

}  // namespace perseus::cli
