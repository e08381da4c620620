// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/questions/shape_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/framework/table.h"
#include "cli/planning/summary.h"
#include "cli/questions/policy_runs.h"
#include "report/power_shape.h"

namespace perseus::cli {
namespace {

// Two windows of the ramp over a second.
constexpr double kRampSeconds = 2;
// Of the power's shape (docs/explanation/emulation.md): its values, and the longest job that has
// one.
constexpr double kLongestInterval = 0.02;
constexpr double kLongestShapeSeconds = 41943;

struct PowerUnitOfText {
  std::string_view name;
  double factor = 1;
  int decimals = 1;

  std::string operator()(double watts) const { return WithThousands(watts * factor, decimals); }
  std::string operator()(const std::optional<PowerRamp>& ramp) const {
    if (!ramp) return "-";
    const std::string fall = (*this)(ramp->fall_watts_per_second);
    const bool falls = fall.find_first_not_of("0.") != std::string::npos;
    return fmt::format("+{} {}{}", (*this)(ramp->rise_watts_per_second), falls ? "-" : "", fall);
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
  const Emulation& before = *summary.baseline;
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

void NoteUnresolved(const EmulationSummary& summary, std::vector<std::string>* notes) {
  const PowerShape& shape = summary.emulation->power_shape;
  const double seconds = std::min(summary.emulation->time_seconds, summary.baseline->time_seconds);
  const auto enough = [&](double needed_seconds) {
    // A value of less than an interval is left out.
    return CountOf(static_cast<std::int64_t>(std::ceil((needed_seconds + kLongestInterval) /
                                                       seconds * summary.spec.iterations)),
                   "iteration");
  };
  const bool too_long = !shape.stated() && seconds > kRampSeconds;
  if (summary.power_limits.ramp_watts_per_second && !shape.ramp_1s && !too_long) {
    notes->push_back(fmt::format(
        "--ramp-limit is on the change from one second to the next, and this run takes {}: whether "
        "it is kept is not resolved; emulate at least {} (--iterations).",
        SpanOfTime(seconds), enough(kRampSeconds)));
  }
  if (!shape.stated() || shape.band_resolved) return;
  const PowerBand& band = shape.band;
  const double needed = 1 / (band.high_hz - band.low_hz);
  notes->push_back(fmt::format(
      "--power-band {:g}-{:g} is narrower than a run of {} tells apart ({:.3g} Hz), so what swings "
      "in it is not stated; {}.",
      band.low_hz, band.high_hz, SpanOfTime(seconds), 1 / seconds,
      needed < kLongestShapeSeconds
          ? fmt::format("emulate at least {} (--iterations), or give a wider band", enough(needed))
          : "give a wider band"));
}

std::string LimitSentence(const EmulationSummary& summary) {
  const std::string limits = LimitsInWords(summary);
  std::vector<std::string> keep;
  std::vector<std::string> unresolved;
  for (const PolicyRow& row : summary.policies) {
    if (!row.why_not.empty()) continue;
    const LimitVerdict verdict = summary.power_limits.Verdict(row.shape);
    if (verdict == LimitVerdict::kKept) keep.push_back(row.policy);
    if (verdict == LimitVerdict::kNotResolved) unresolved.push_back(row.policy);
  }
  std::string text = keep.empty() ? fmt::format("{} kept by none of these", limits)
                                  : fmt::format("{} kept by {}", limits, fmt::join(keep, ", "));
  if (keep.empty() && !unresolved.empty()) text = limits;
  if (!unresolved.empty()) {
    text += fmt::format("{} not resolved for {}: the run is too short or too long to say",
                        keep.empty() ? ":" : ";", fmt::join(unresolved, ", "));
  }
  text += '.';
  const SlowerRun& last = summary.slower.back();
  const LimitVerdict verdict = summary.power_limits.Verdict(last.shape);
  if (verdict == LimitVerdict::kNotResolved) return text;
  if (verdict == LimitVerdict::kKept && summary.slower.size() > 1) {
    text +=
        fmt::format(" {} keeps it slowed down: {}.", summary.label, SlowedInWords(summary, last));
  } else if (verdict == LimitVerdict::kBroken && summary.slower.size() > 1) {
    text += fmt::format(" {} does not keep it with up to {} an iteration, the longest tried.",
                        summary.label, FormatSeconds(last.target_seconds));
  } else if (verdict == LimitVerdict::kBroken) {
    text += fmt::format(" {} is one plan, which is not made slower; {}.", summary.label,
                        summary.policy == kPerseus
                            ? "try --at 1.02x and more"
                            : "to see which slower plan keeps it: --policy perseus");
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
  if (!summary.shows_shape && !summary.power_limits.any()) return "";
  double ramp = 0;
  double swing = 0;
  bool stated = false;
  for (const PolicyRow& row : summary.policies) {
    stated = stated || (row.why_not.empty() && row.shape.stated());
    ramp = std::max(ramp, MostRampOf(row.shape));
    swing = std::max(swing, row.shape.rms_watts);
  }
  if (!stated) {
    return summary.power_limits.any() ? "\n" + Fact("Limits", LimitSentence(summary), style) : "";
  }
  const PowerUnitOfText ramps = UnitFor(ramp);
  const PowerUnitOfText swings = UnitFor(swing);
  std::vector<std::string> header = {
      "power of the job",
      fmt::format("ramp 1 s {}/s", ramps.name),
      fmt::format("ramp 100 ms {}/s", ramps.name),
      fmt::format("swing {}", swings.name),
      fmt::format("in {}", BandInWords(summary.spec.power_shape.band)),
      "strongest Hz"};
  const bool limited = summary.power_limits.any();
  if (limited) header.emplace_back("keeps");
  Table table(std::move(header), {Align::kLeft});
  for (const PolicyRow& row : summary.policies) {
    const PowerShape& shape = row.shape;
    if (!row.why_not.empty() || !shape.stated()) continue;
    std::vector<std::string> cells = {
        row.policy,
        ramps(shape.ramp_1s),
        ramps(shape.ramp_100ms),
        swings(shape.rms_watts),
        shape.band_resolved ? swings(shape.band_rms_watts) : "-",
        shape.band_resolved ? fmt::format("{:.3g}", shape.strongest_hz) : "-"};
    if (limited) {
      cells.emplace_back(report::VerdictText(summary.power_limits.Verdict(shape)));
    }
    table.AddRow(std::move(cells));
  }
  std::string out =
      "\n" + table.Format(style.rule()) + "\n" +
      Wrap(fmt::format("Ramps: fastest rise and fall of the job's mean power from one second, or "
                       "100 ms, to the next. Swing: standard deviation of the power (means of {}), "
                       "and the part of it at {}. Strongest: the frequency that swings most.",
                       SpanOfTime(summary.emulation->power_shape.interval_seconds),
                       BandInWords(summary.spec.power_shape.band)),
           style.columns, 0) +
      "\n";
  if (limited) out += "\n" + Fact("Limits", LimitSentence(summary), style);
  return out;
}

}  // namespace perseus::cli
