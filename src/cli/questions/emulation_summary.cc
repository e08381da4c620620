// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/questions/emulation_summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "cli/framework/table.h"
#include "cli/planning/summary.h"
#include "cli/questions/emulation_answers.h"
#include "cli/questions/shape_text.h"

namespace perseus::cli {
namespace {

// A unit in which a column of numbers is neither all zeros nor all digits.
struct Scale {
  std::string_view unit;
  double factor = 1;

  std::string operator()(double value, int decimals = 1) const {
    return WithThousands(value * factor, decimals);
  }
};

Scale EnergyScale(double largest_joules) {
  if (largest_joules < 1) return {"mJ", 1e3};
  if (largest_joules < 1e6) return {"J", 1};
  if (largest_joules < 1e9) return {"kJ", 1e-3};
  if (largest_joules < 1e12) return {"MJ", 1e-6};
  return {"GJ", 1e-9};
}

Scale PowerScale(double largest_watts) {
  if (largest_watts < 1e5) return {"W", 1};
  if (largest_watts < 1e8) return {"kW", 1e-3};
  return {"MW", 1e-6};
}

struct IterationTimes {
  double mean = 0;
  double least = 0;
  double most = 0;
};

IterationTimes TimesOf(const Emulation& emulation) {
  IterationTimes times;
  if (emulation.iterations.empty()) return times;
  times.mean = emulation.time_seconds / static_cast<double>(emulation.iterations.size());
  const auto shorter = [](const IterationRecord& a, const IterationRecord& b) {
    return a.time_seconds < b.time_seconds;
  };
  const auto [least, most] =
      std::minmax_element(emulation.iterations.begin(), emulation.iterations.end(), shorter);
  times.least = least->time_seconds;
  times.most = most->time_seconds;
  return times;
}

std::string JobInWords(const EmulationSummary& summary) {
  const std::string effort =
      summary.usual_effort > 0
          ? fmt::format(", with --effort {:g} ('perseus plan' uses 1)", summary.usual_effort)
          : "";
  return fmt::format(
      "{} of {} each, {} in all; {}. The policy {} chooses clocks for {} an iteration ({}){}.",
      CountOf(summary.spec.pipelines, "pipeline"),
      CountOf(static_cast<long long>(summary.pipeline->dag.num_ranks) *
                  summary.pipeline->tensor_parallel,
              "GPU"),
      CountOf(summary.emulation->gpus, "GPU"), CountOf(summary.spec.iterations, "iteration"),
      summary.label, FormatSeconds(summary.spec.target_seconds), summary.target, effort);
}

// Time and power, beside maximum clocks.
std::string FiguresTable(const EmulationSummary& summary, const Style& style) {
  const Emulation& before = *summary.baseline;
  const Emulation& after = *summary.emulation;
  const IterationTimes old_times = TimesOf(before);
  const IterationTimes new_times = TimesOf(after);
  const bool milliseconds = old_times.mean < 0.1;
  const Scale time{milliseconds ? "ms" : "s", milliseconds ? 1e3 : 1};
  const Scale energy =
      EnergyScale(std::max(before.energy.total_joules(), after.energy.total_joules()));
  const Scale power = PowerScale(std::max(before.peak_watts, after.peak_watts));
  const Scale gpu{"W", 1};
  Table table({"", "max-clocks", summary.label, "change"}, {Align::kLeft});
  const auto add = [&](std::string_view name, const Scale& scale, double from, double to,
                       int decimals) {
    table.AddRow({fmt::format("{} {}", name, scale.unit), scale(from, decimals),
                  scale(to, decimals), FormatSignedPercent(PercentOver(to, from), 2)});
  };
  add("iteration, mean,", time, old_times.mean, new_times.mean, 4);
  add("  shortest,", time, old_times.least, new_times.least, 4);
  add("  longest,", time, old_times.most, new_times.most, 4);
  add("all iterations,", {"s", 1}, before.time_seconds, after.time_seconds, 2);
  add("energy,", energy, before.energy.total_joules(), after.energy.total_joules(), 1);
  add("power of the job, mean,", power, before.average_watts, after.average_watts, 1);
  add(fmt::format("  highest mean of {},", SpanOfTime(after.power.interval_seconds)), power,
      before.peak_watts, after.peak_watts, 1);
  add("power of a GPU, mean,", gpu, before.gpu_average_watts, after.gpu_average_watts, 1);
  add("  peak of a computation,", gpu, before.gpu_peak_watts, after.gpu_peak_watts, 1);
  return table.Format(style.rule());
}

std::string SplitTable(const EmulationSummary& summary, const Style& style) {
  const EnergySplit& before = summary.baseline->energy;
  const EnergySplit& after = summary.emulation->energy;
  const Scale scale = EnergyScale(std::max(before.total_joules(), after.total_joules()));
  Table table(
      {fmt::format("where it goes, {}", scale.unit), "max-clocks", "share", summary.label, "share"},
      {Align::kLeft});
  const auto add = [&](std::string_view name, double from, double to) {
    const auto share = [](double part, double all) {
      return FormatPercent(all == 0 ? 0 : 100 * part / all, 2);
    };
    table.AddRow({std::string(name), scale(from), share(from, before.total_joules()), scale(to),
                  share(to, after.total_joules())});
  };
  add("useful", before.useful_joules, after.useful_joules);
  add("intrinsic bloat", before.intrinsic_bloat_joules, after.intrinsic_bloat_joules);
  add("extrinsic bloat", before.extrinsic_bloat_joules, after.extrinsic_bloat_joules);
  add("blocking", before.blocking_joules, after.blocking_joules);
  return table.Format(style.rule());
}

std::string Facts(const EmulationSummary& summary, const Style& style) {
  const Emulation& before = *summary.baseline;
  const Emulation& after = *summary.emulation;
  const double saved = before.energy.total_joules() - after.energy.total_joules();
  std::string out = Fact(
      "Saving",
      fmt::format(
          "{} of the energy ({}) for {} of the time, against {} in the same scenario.",
          FormatPercent(PercentSaved(after.energy.total_joules(), before.energy.total_joules()), 2),
          FormatJoules(saved),
          FormatSignedPercent(PercentOver(after.time_seconds, before.time_seconds), 2),
          BaselineText(*summary.profile)),
      style);
  const auto computations = static_cast<long long>(summary.pipeline->dag.size()) *
                            summary.spec.pipelines * summary.spec.iterations;
  out += Fact("Clocks",
              fmt::format("{}; {} of the {} began at another clock than planned.",
                          CountOf(after.clock_calls, "clock call"),
                          FormatPercent(100 * static_cast<double>(after.late_computations) /
                                            static_cast<double>(computations),
                                        2),
                          CountOf(computations, "computation")),
              style);
  if (summary.change_joules > 0) out += Fact("Price", PriceOfChangesSentence(summary), style);
  if (HasStragglers(summary.spec)) {
    out += Fact("Straggler",
                fmt::format("{} came; the other pipelines got new plans {}.",
                            CountOf(after.stragglers, "straggler"), CountOf(after.replans, "time")),
                style);
  }
  return out;
}

std::string ComparisonTable(const EmulationSummary& summary, const Style& style) {
  double most_joules = 0;
  double most_watts = 0;
  for (const PolicyRow& row : summary.policies) {
    most_joules = std::max(most_joules, row.energy.total_joules());
    most_watts = std::max(most_watts, row.peak_watts);
  }
  const Scale energy = EnergyScale(most_joules);
  const Scale power = PowerScale(most_watts);
  Table table({"policy", "total s", "slowdown", fmt::format("total {}", energy.unit), "saving",
               "intrinsic", "extrinsic", "blocking", fmt::format("peak {}", power.unit)},
              {Align::kLeft});
  std::string legend;
  for (const PolicyRow& row : summary.policies) {
    if (!row.why_not.empty()) {
      table.AddRow({row.policy, "no plan"});
      legend += Wrap(fmt::format("{}: {}", row.policy, row.why_not), style.columns, 2) + "\n";
      continue;
    }
    const auto share = [&](double joules) {
      const double all = row.energy.total_joules();
      return FormatPercent(all == 0 ? 0 : 100 * joules / all, 1);
    };
    table.AddRow({row.policy, WithThousands(row.time_seconds, 2),
                  FormatSignedPercent(row.slowdown_percent, 2), energy(row.energy.total_joules()),
                  FormatPercent(row.saving_percent, 2), share(row.energy.intrinsic_bloat_joules),
                  share(row.energy.extrinsic_bloat_joules), share(row.energy.blocking_joules),
                  power(row.peak_watts)});
    legend += Wrap(fmt::format("{}: {}", row.policy, row.summary), style.columns, 2) + "\n";
  }
  return table.Format(style.rule()) + "\n" + legend;
}

std::string NextSteps(const EmulationSummary& summary) {
  if (!summary.output_directory.empty()) {
    return fmt::format(
        "open {0}/report.html in a browser and {0}/timeline.pftrace in ui.perfetto.dev.",
        summary.output_directory);
  }
  return fmt::format("-o DIR writes this run, its power over time and a timeline{}.",
                     summary.compared ? "" : "; --compare shows what other policies would do");
}

}  // namespace

namespace {

std::string EmulatedFigures(const EmulationSummary& summary, const Style& style) {
  std::string out = "\n" + FiguresTable(summary, style) + "\n" + SplitTable(summary, style) + "\n";
  out += Wrap(
             "Intrinsic bloat: energy wasted by computations that are faster than their pipeline "
             "needs. Extrinsic bloat: by pipelines that are faster than the slowest one. Blocking: "
             "energy of GPUs that wait. Useful: the rest.",
             style.columns, 0) +
         "\n\n";
  out += Facts(summary, style);
  if (summary.compared) out += "\n" + ComparisonTable(summary, style);
  out += FormatShapes(summary, style);
  return out + FormatAnswers(summary, style);
}

}  // namespace

std::string FormatEmulationSummary(const EmulationSummary& summary, const Style& style) {
  std::string out = FormatInput(*summary.profile, *summary.pipeline, summary.virtual_stages,
                                summary.split_ratio, style);
  out += Fact("Job", JobInWords(summary), style);
  out += Fact("Scenario", ScenarioInWords(summary.spec), style);
  out += FormatNotes(summary.notes, style);
  out += EmulatedFigures(summary, style);
  if (!summary.output_directory.empty() || !summary.remarks.empty()) out += '\n';
  if (!summary.output_directory.empty()) {
    out += Fact("Written",
                fmt::format("{}: {}.", summary.output_directory, fmt::join(summary.files, ", ")),
                style);
  }
  for (const std::string& remark : summary.remarks) out += Fact("Note", remark, style);
  return out + "\n" + Fact("Next", NextSteps(summary), style);
}

}  // namespace perseus::cli
