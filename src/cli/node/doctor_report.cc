// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/node/doctor_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/framework/table.h"
#include "common/json_text.h"

namespace perseus::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kUnknown = "-";

std::string Milliseconds2(double seconds) { return WithThousands(1e3 * seconds, 2) + " ms"; }

std::string CounterText(const device::CounterProbe& counter) {
  if (counter.error) return "none";
  if (!counter.period_seconds) return "stands still";
  return fmt::format("every {}{}", counter.period_is_upper_bound ? "<= " : "",
                     Milliseconds(*counter.period_seconds));
}

std::string WattsText(const std::optional<double>& watts) {
  return watts ? FormatWatts(*watts) : kUnknown;
}

std::string GpuTable(const Examination& examination, const Style& style) {
  const bool has_clocks = std::any_of(examination.gpus.begin(), examination.gpus.end(),
                                      [](const ExaminedGpu& gpu) { return gpu.clock.has_value(); });
  std::vector<std::string> header = {"GPU", "name", "clocks", "counter steps", "power", "limit"};
  if (has_clocks) header.insert(header.end(), {"clock call", "longest", "seen after", "in effect"});
  std::vector<Align> alignment(header.size(), Align::kRight);
  alignment[1] = Align::kLeft;
  Table table(header, alignment);
  for (const ExaminedGpu& gpu : examination.gpus) {
    const std::vector<int>& clocks = gpu.info.clocks_mhz;
    const device::GpuConditions conditions = gpu.conditions.value_or(device::GpuConditions());
    std::vector<std::string> row = {
        fmt::format("{}", gpu.info.index),
        gpu.info.name,
        fmt::format("{} of {}-{} MHz", clocks.size(), clocks.front(), clocks.back()),
        CounterText(gpu.counter),
        WattsText(gpu.counter.reading_watts),
        WattsText(conditions.power_limit_watts)};
    if (gpu.clock) {
      row.insert(row.end(),
                 {Milliseconds(gpu.clock->median_call_seconds),
                  Milliseconds(gpu.clock->longest_call_seconds),
                  gpu.clock->median_seen_seconds ? Milliseconds(*gpu.clock->median_seen_seconds)
                                                 : kUnknown,
                  gpu.effect ? Milliseconds(gpu.effect->median_seconds) : kUnknown});
    }
    table.AddRow(row);
  }
  return table.Format(style.rule());
}

// What the table's numbers are, for who sees them for the first time.
std::string TableNotes(const Examination& examination, const Style& style) {
  const device::CounterProbe& counter = examination.gpus.front().counter;
  std::string text = fmt::format(
      "Clocks: those that a plan can choose from. Counter: the energy counter, read {} times, "
      "every "
      "{}; a measurement should span many of its steps. Power and limit: now.",
      counter.reads, Milliseconds(counter.read_every_seconds));
  for (const ExaminedGpu& gpu : examination.gpus) {
    if (!gpu.clock) continue;
    text += fmt::format(
        " Clock call: median of {} calls that set a clock, given back since; seen after: from the "
        "call until the driver read the new clock back (an idle card may never show it); in "
        "effect: from the call until a kernel began that ran at the new clock.",
        gpu.clock->calls);
    break;
  }
  return Wrap(text, style.columns, 0) + "\n";
}

// "20.1 +- 0.2 ms".
std::string FigureText(const device::Figure& figure) {
  return fmt::format("{} +- {}", WithThousands(1e3 * figure.value, 2), Milliseconds2(figure.error));
}

std::string CostText(const std::optional<device::DisturbanceProbe>& probe) {
  return probe ? FigureText(probe->seconds_per_call) : kUnknown;
}

// What --set-clocks measured beyond the calls themselves.
std::string MeasuredText(const Examination& examination, const Style& style) {
  const auto is_timed = [](const ExaminedGpu& gpu) {
    return gpu.effect || gpu.computation || gpu.step;
  };
  if (std::none_of(examination.gpus.begin(), examination.gpus.end(), is_timed)) return "";
  Table table({"GPU", "in effect after", "spread", "by clock", "call costs work",
               "call costs transfer", "counter lags", "counter looks"},
              {Align::kRight, Align::kRight, Align::kRight, Align::kLeft, Align::kRight,
               Align::kRight, Align::kRight, Align::kRight});
  for (const ExaminedGpu& gpu : examination.gpus) {
    if (!is_timed(gpu)) continue;
    std::vector<std::string> targets;
    if (gpu.effect) {
      for (const device::TargetLatency& target : gpu.effect->targets) {
        targets.push_back(
            fmt::format("{} MHz: {}", target.mhz, WithThousands(1e3 * target.seconds.value, 1)));
      }
    }
    const bool has_duty = gpu.step && gpu.step->duty;
    table.AddRow({fmt::format("{}", gpu.info.index),
                  gpu.effect ? FigureText(gpu.effect->seconds) : kUnknown,
                  gpu.effect ? Milliseconds2(gpu.effect->seconds.spread) : kUnknown,
                  targets.empty() ? kUnknown : fmt::format("{}", fmt::join(targets, ", ")),
                  CostText(gpu.computation), CostText(gpu.transfer),
                  gpu.step ? FigureText(gpu.step->lag_seconds) : kUnknown,
                  has_duty ? fmt::format("{} +- {}", FormatPercent(100 * gpu.step->duty->value, 0),
                                         FormatPercent(100 * gpu.step->duty->error, 0))
                           : kUnknown});
  }
  std::string text =
      "In effect after: from a call until kernels ran at the new clock, and how that varies. By "
      "clock: in ms. Call costs: by how much longer a computation, or a transfer between GPUs, "
      "took "
      "for each call that was made meanwhile. Counter lags: by how much later the energy counter "
      "shows a load. Counter looks: the share of the time in which it looks at the power. Each "
      "with "
      "its standard error.";
  if (const auto& together = examination.together) {
    text +=
        fmt::format(" All {} GPUs called at once: {}, against {} for one alone.", together->gpus,
                    FigureText(together->together_seconds), FigureText(together->alone_seconds));
  }
  return style.Bold("Clocks under work") + "\n" + table.Format(style.rule()) +
         Wrap(text, style.columns, 0) + "\n\n";
}

std::string Answer(const Examination& examination, const Style& style) {
  const auto count = [&](FindingLevel level) { return CountOfLevel(examination.findings, level); };
  if (!examination.can_follow_plans()) {
    return style.Bold("This node cannot follow plans") +
           fmt::format(": see {} above.\n", CountOf(count(FindingLevel::kFault), "fault"));
  }
  const auto warnings = count(FindingLevel::kWarning);
  return style.Bold("This node can follow plans") +
         (warnings == 0 ? ".\n" : fmt::format("; see {} above.\n", CountOf(warnings, "warning")));
}

Json NumberOrNull(const std::optional<double>& value) { return value ? Json(*value) : Json(); }

// As PREFIXs and PREFIXerror_s, or mean_s and error_s.
void AddFigure(const device::Figure& figure, const std::string& prefix, Json* json) {
  (*json)[prefix.empty() ? "mean_s" : prefix + "s"] = figure.value;
  (*json)[prefix + "error_s"] = figure.error;
}

void AddCost(const std::optional<device::DisturbanceProbe>& probe, const char* key, Json* json) {
  if (!probe) return;
  Json cost = {{"calls", probe->calls}, {"interval_s", probe->interval_seconds}};
  AddFigure(probe->seconds_per_call, "", &cost);
  (*json)[key] = std::move(cost);
}

Json GpuJson(const ExaminedGpu& gpu) {
  const device::CounterProbe& counter = gpu.counter;
  Json json = {{"index", gpu.info.index},
               {"uuid", gpu.info.uuid},
               {"name", gpu.info.name},
               {"clocks_mhz", gpu.info.clocks_mhz}};
  json["energy_counter"] = {{"readable", !counter.error.has_value()},
                            {"period_s", NumberOrNull(counter.period_seconds)},
                            {"period_is_upper_bound", counter.period_is_upper_bound},
                            {"reads", counter.reads},
                            {"read_every_s", counter.read_every_seconds},
                            {"power_w", NumberOrNull(counter.counter_watts)}};
  json["power_w"] = NumberOrNull(counter.reading_watts);
  if (gpu.conditions) {
    json["power_limit_w"] = NumberOrNull(gpu.conditions->power_limit_watts);
    json["default_power_limit_w"] = NumberOrNull(gpu.conditions->default_power_limit_watts);
    json["temperature_c"] = NumberOrNull(gpu.conditions->temperature_celsius);
    json["throttled_by"] = device::ThrottleNames(gpu.conditions->throttle_reasons);
    json["power_profiles"] = gpu.conditions->power_profiles;
    json["power_floor_w"] = NumberOrNull(gpu.conditions->power_floor_watts);
    json["mig"] = gpu.conditions->mig;
  }
  if (gpu.clock) {
    json["clock_call"] = {{"calls", gpu.clock->calls},
                          {"median_s", gpu.clock->median_call_seconds},
                          {"longest_s", gpu.clock->longest_call_seconds},
                          {"seen_after_median_s", NumberOrNull(gpu.clock->median_seen_seconds)}};
  }
  if (gpu.effect) {
    json["clock_effect"] = {{"switches", gpu.effect->switches},
                            {"median_s", gpu.effect->median_seconds},
                            {"longest_s", gpu.effect->longest_seconds},
                            {"kernel_s", gpu.effect->kernel_seconds}};
    AddFigure(gpu.effect->seconds, "", &json["clock_effect"]);
    json["clock_effect"]["spread_s"] = gpu.effect->seconds.spread;
    json["clock_effect"]["by_clock"] = Json::array();
    for (const device::TargetLatency& target : gpu.effect->targets) {
      Json of_clock = {{"frequency", target.mhz}, {"switches", target.seconds.samples}};
      AddFigure(target.seconds, "", &of_clock);
      of_clock["spread_s"] = target.seconds.spread;
      json["clock_effect"]["by_clock"].push_back(std::move(of_clock));
    }
  }
  AddCost(gpu.computation, "call_cost", &json);
  AddCost(gpu.transfer, "transfer_call_cost", &json);
  if (gpu.step) {
    Json& step = json["energy_counter"];
    AddFigure(gpu.step->lag_seconds, "lag_", &step);
    if (gpu.step->duty) {
      step["duty"] = gpu.step->duty->value;
      step["duty_error"] = gpu.step->duty->error;
    }
    step["idle_w"] = gpu.step->idle_watts;
    step["load_w"] = gpu.step->load_watts;
  }
  return json;
}

}  // namespace

std::string Milliseconds(double seconds) { return WithThousands(1e3 * seconds, 1) + " ms"; }

std::string FormatExamination(const Examination& examination, const Style& style) {
  std::string text;
  if (!examination.gpus.empty()) {
    text += style.Bold("GPUs of this node") + "\n" + GpuTable(examination, style) +
            TableNotes(examination, style) + "\n" + MeasuredText(examination, style);
  }
  return text + FormatFindings(examination.findings, style) + "\n" + Answer(examination, style);
}

std::string ExaminationJson(const Examination& examination) {
  Json json = {
      {"schema_version", 1},
      {"can_follow_plans", examination.can_follow_plans()},
      {"driver", examination.driver},
      {"may_set_clocks", examination.may_set_clocks ? Json(*examination.may_set_clocks) : Json()},
      {"agent",
       {{"socket", examination.agent_socket}, {"sets_clocks", examination.agent_sets_clocks}}}};
  json["gpus"] = Json::array();
  for (const ExaminedGpu& gpu : examination.gpus) json["gpus"].push_back(GpuJson(gpu));
  if (const auto& together = examination.together) {
    json["together"] = {{"gpus", together->gpus},
                        {"alone_s", together->alone_seconds.value},
                        {"alone_error_s", together->alone_seconds.error},
                        {"together_s", together->together_seconds.value},
                        {"together_error_s", together->together_seconds.error},
                        {"serial", together->is_serial()}};
  }
  json["findings"] = FindingsJson(examination.findings);
  return FormatByLine(json);
}

}  // namespace perseus::cli
