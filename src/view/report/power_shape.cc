// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "report/power_shape.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "report/chart.h"
#include "report/figures.h"
#include "report/text.h"

namespace perseus::report {
namespace {

using Json = nlohmann::ordered_json;

Json RampToJson(const std::optional<PowerRamp>& ramp) {
  if (!ramp) return nullptr;
  return {{"rise_w_per_s", ramp->rise_watts_per_second},
          {"fall_w_per_s", ramp->fall_watts_per_second}};
}

Json IfResolved(const PowerShape& shape, double value) {
  return shape.band_resolved ? Json(value) : Json();
}

Json NumberOrNull(const std::optional<double>& value) { return value ? Json(*value) : Json(); }

std::string Ramp(const DisplayUnit& unit, const std::optional<PowerRamp>& ramp) {
  if (!ramp) return "\u2013";
  const std::string fall = unit.Number(ramp->fall_watts_per_second);
  const bool falls = fall.find_first_not_of("0.") != std::string::npos;
  return fmt::format("+{} / {}{}", unit.Number(ramp->rise_watts_per_second), falls ? "\u2212" : "",
                     fall);
}

// null: the job is too short to say.
Json VerdictToJson(LimitVerdict verdict) {
  if (verdict == LimitVerdict::kNotResolved) return nullptr;
  return verdict == LimitVerdict::kKept;
}

double MostRamp(const PowerShape& shape) {
  return std::max(shape.ramp_1s ? shape.ramp_1s->most() : 0,
                  shape.ramp_100ms ? shape.ramp_100ms->most() : 0);
}

// What the job is too short to tell is a dash.
std::string Swing(const DisplayUnit& unit, const PowerShape& shape) {
  return shape.band_resolved ? unit.Number(shape.band_rms_watts) : "\u2013";
}

std::string Percent(double share) { return fmt::format("{:.2f}\u00a0%", 100 * share); }

ChartSeries SpectrumLine(std::string name, std::string css, const PowerShape& shape,
                         const DisplayUnit& unit) {
  ChartSeries line{std::move(name), std::move(css), {}};
  for (const SpectrumColumn& column : shape.spectrum) {
    line.points.push_back({column.low_hz, column.rms_watts / unit.factor});
    line.points.push_back({column.high_hz, column.rms_watts / unit.factor});
  }
  return line;
}

double MostOf(const PowerShape& shape) {
  double most = 0;
  for (const SpectrumColumn& column : shape.spectrum) most = std::max(most, column.rms_watts);
  return most;
}

}  // namespace

Json ShapeToJson(const PowerShape& shape) {
  if (!shape.stated()) return nullptr;
  Json spectrum = Json::array();
  for (const SpectrumColumn& column : shape.spectrum) {
    spectrum.push_back(
        {{"from_hz", column.low_hz}, {"to_hz", column.high_hz}, {"rms_w", column.rms_watts}});
  }
  return {{"interval_s", shape.interval_seconds},
          {"values", shape.values},
          {"ramp_1s", RampToJson(shape.ramp_1s)},
          {"ramp_100ms", RampToJson(shape.ramp_100ms)},
          {"rms_w", shape.rms_watts},
          {"band",
           {{"from_hz", shape.band.low_hz},
            {"to_hz", shape.band.high_hz},
            {"rms_w", IfResolved(shape, shape.band_rms_watts)},
            {"share", IfResolved(shape, shape.band_share)},
            {"strongest_hz", IfResolved(shape, shape.strongest_hz)}}},
          {"ballast_j", shape.ballast_joules},
          {"spectrum", std::move(spectrum)}};
}

Json LimitsToJson(const EmulationReportInput& input) {
  if (!input.power_limits.any()) return nullptr;
  Json rows = Json::array();
  for (const SlowerRun& run : input.slower) {
    rows.push_back({{"target_s", run.target_seconds},
                    {"time_s", run.time_seconds},
                    {"energy_j", run.energy_joules},
                    {"keeps", VerdictToJson(input.power_limits.Verdict(run.shape))},
                    {"ramp_1s", RampToJson(run.shape.ramp_1s)},
                    {"band_rms_w", IfResolved(run.shape, run.shape.band_rms_watts)},
                    {"ballast_j", run.shape.ballast_joules}});
  }
  return {{"ramp_w_per_s", NumberOrNull(input.power_limits.ramp_watts_per_second)},
          {"band_rms_w", NumberOrNull(input.power_limits.band_rms_watts)},
          {"slower", std::move(rows)}};
}

std::string_view VerdictText(LimitVerdict verdict) {
  switch (verdict) {
    case LimitVerdict::kKept:
      return "yes";
    case LimitVerdict::kBroken:
      return "no";
    case LimitVerdict::kNotResolved:
      break;
  }
  return "not resolved";
}

std::string BandText(const PowerBand& band) {
  return fmt::format("{:g} to {:g} Hz", band.low_hz, band.high_hz);
}

Table ShapeTable(const EmulationReportInput& input) {
  double ramp = 0, rms = 0;
  for (const PolicyRow& row : input.policies) {
    ramp = std::max(ramp, MostRamp(row.shape));
    rms = std::max(rms, row.shape.rms_watts);
  }
  const DisplayUnit ramp_unit = PowerUnit(ramp), rms_unit = PowerUnit(rms);
  const bool limited = input.power_limits.any();
  const bool ballast = input.power_limits.ramp_watts_per_second.has_value();
  Table table;
  table.caption =
      "Ramps: the fastest rise and fall of mean power from one window to the next. Swing: how far "
      "the power is from its mean (root mean square). Share: how much of the variance lies in the "
      "band; the variance is the square of the swing. Less is better in every column.";
  table.columns = {
      "Policy",
      fmt::format("Ramp over 1 s ({}/s)", ramp_unit.name),
      fmt::format("Ramp over 100 ms ({}/s)", ramp_unit.name),
      fmt::format("Swing ({})", rms_unit.name),
      fmt::format("Swing in {} ({})", BandText(input.spec->power_shape.band), rms_unit.name),
      "Share of the variance",
      "Strongest at (Hz)"};
  if (limited) table.columns.emplace_back("Keeps the limits");
  if (ballast) table.columns.emplace_back("Ballast, of its energy");
  for (const PolicyRow& row : input.policies) {
    const PowerShape& shape = row.shape;
    if (!row.why_not.empty() || !shape.stated()) continue;
    std::vector<Cell> cells = {
        {row.policy, "", row.summary},
        {Ramp(ramp_unit, shape.ramp_1s)},
        {Ramp(ramp_unit, shape.ramp_100ms)},
        {rms_unit.Number(shape.rms_watts)},
        {Swing(rms_unit, shape)},
        {shape.band_resolved ? Percent(shape.band_share) : "\u2013"},
        {shape.band_resolved ? fmt::format("{:.3g}", shape.strongest_hz) : "\u2013"}};
    if (limited) cells.push_back({std::string(VerdictText(input.power_limits.Verdict(shape)))});
    if (ballast) cells.push_back({Percent(shape.ballast_joules / row.energy.total_joules())});
    table.Add(std::move(cells), row.policy == input.label ? "chosen" : "");
  }
  return table;
}

Table LimitTable(const EmulationReportInput& input) {
  double seconds = 0, joules = 0, ramp = 0, rms = 0;
  for (const SlowerRun& run : input.slower) {
    seconds = std::max(seconds, run.time_seconds);
    joules = std::max(joules, run.energy_joules);
    ramp = std::max(ramp, MostRamp(run.shape));
    rms = std::max(rms, run.shape.band_rms_watts);
  }
  const DisplayUnit time = TimeUnit(seconds), energy = EnergyUnit(joules);
  const DisplayUnit ramp_unit = PowerUnit(ramp), rms_unit = PowerUnit(rms);
  const Emulation& baseline = *input.baseline;
  Table table;
  table.caption =
      "The policy of this report, planned for longer iterations until the limits are kept; time "
      "and energy against maximum clocks in the same scenario.";
  table.columns = {
      "Planned for",
      fmt::format("Time ({})", time.name),
      "Slowdown",
      fmt::format("Energy ({})", energy.name),
      "Saving",
      fmt::format("Ramp over 1 s ({}/s)", ramp_unit.name),
      fmt::format("Swing in {} ({})", BandText(input.spec->power_shape.band), rms_unit.name),
      "Keeps the limits"};
  const DisplayUnit target = TimeUnit(input.spec->target_seconds);
  for (const SlowerRun& run : input.slower) {
    table.Add({{target.Text(run.target_seconds)},
               {time.Number(run.time_seconds)},
               {ChangePercent(PercentOver(run.time_seconds, baseline.time_seconds), 2)},
               {energy.Number(run.energy_joules)},
               {SavingPercent(PercentSaved(run.energy_joules, baseline.energy.total_joules()), 2)},
               {Ramp(ramp_unit, run.shape.ramp_1s)},
               {Swing(rms_unit, run.shape)},
               {std::string(VerdictText(input.power_limits.Verdict(run.shape)))}},
              run.keeps ? "chosen" : "");
  }
  return table;
}

std::string DrawSpectrum(const EmulationReportInput& input) {
  const PowerShape& before = input.baseline->power_shape;
  const PowerShape& after = input.emulation->power_shape;
  if (!after.stated()) return "";
  const DisplayUnit unit = PowerUnit(std::max(MostOf(before), MostOf(after)));
  LineChart chart;
  chart.id = "spectrum";
  chart.title = "Spectrum of the power of the job";
  chart.x_label = "frequency (Hz)";
  chart.y_label = fmt::format("swing, RMS of a column ({})", unit.name);
  chart.height = 280;
  chart.fill_x = true;
  chart.log_x = true;
  if (before.stated() && input.policy != "max-clocks") {
    chart.series.push_back(SpectrumLine("max-clocks", "c1", before, unit));
  }
  chart.series.push_back(
      SpectrumLine(input.label.empty() ? input.policy : input.label, "c0", after, unit));
  const PowerBand& band = after.band;
  chart.spans.push_back(
      {std::max(band.low_hz, kCriticalBand.low_hz), std::min(band.high_hz, kCriticalBand.high_hz)});
  chart.span_name = fmt::format("the band, {}", BandText(band));
  return DrawLineChart(chart);
}

}  // namespace perseus::report
