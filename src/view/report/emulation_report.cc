// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "perseus/report.h"
#include "report/check_input.h"
#include "report/document.h"
#include "report/text.h"
#include "report/timeline.h"

namespace perseus {
namespace report {
namespace {

using Json = nlohmann::ordered_json;

// A part of many values that a chart shows as one: values [first, last).
struct Column {
  std::int64_t first = 0, last = 0;
  double low = 0, mean = 0, high = 0;
};

constexpr int kMostColumns = 900;  // A chart of a million values stays small, and no peak is lost.

std::vector<Column> IntoColumns(std::int64_t count,
                                const std::function<double(std::int64_t)>& value) {
  std::vector<Column> result;
  const std::int64_t parts = std::min<std::int64_t>(count, kMostColumns);
  for (std::int64_t k = 0; k < parts; ++k) {
    Column column;
    // Quotient and remainder apart: count * k could overflow.
    column.first = count / parts * k + count % parts * k / parts;
    column.last = count / parts * (k + 1) + count % parts * (k + 1) / parts;
    column.low = column.high = value(column.first);
    double sum = 0;
    for (std::int64_t i = column.first; i < column.last; ++i) {
      const double each = value(i);
      column.low = std::min(column.low, each);
      column.high = std::max(column.high, each);
      sum += each;
    }
    column.mean = sum / static_cast<double>(column.last - column.first);
    result.push_back(column);
  }
  return result;
}

// Iterations with stragglers, [first, last) as few runs as a plot can show.
std::vector<std::pair<std::int64_t, std::int64_t>> StragglingRuns(const Emulation& emulation) {
  std::vector<std::pair<std::int64_t, std::int64_t>> runs;
  const auto count = static_cast<std::int64_t>(emulation.iterations.size());
  const std::int64_t gap = count / kMostColumns;  // Less than a pixel.
  for (std::int64_t i = 0; i < count; ++i) {
    if (emulation.iterations[i].straggling_pipelines == 0) continue;
    if (!runs.empty() && i - runs.back().second <= gap) {
      runs.back().second = i + 1;
    } else {
      runs.emplace_back(i, i + 1);
    }
  }
  return runs;
}

// Five digits are more than a chart can show, and fewer bytes.
double Drawn(double value) { return RoundSignificant(value, 6); }

// A chart of `columns` as levels, with what they span where they stand for many; see report.ts.
Json ColumnsChart(const std::vector<Column>& columns, std::string name, double scale) {
  Json points = Json::array(), bands = Json::array();
  for (const Column& column : columns) {
    const double from = Drawn(static_cast<double>(column.first) * scale);
    const double to = Drawn(static_cast<double>(column.last) * scale);
    points.push_back({from, Drawn(column.mean)});
    points.push_back({to, Drawn(column.mean)});
    if (column.last - column.first > 1) {
      bands.push_back({from, to, Drawn(column.low), Drawn(column.high)});
    }
  }
  return {
      {"kind", "lines"},
      {"series",
       {{{"name", std::move(name)}, {"css", "c0"}, {"runs", Json::array({std::move(points)})}}}},
      {"bands", std::move(bands)},
      {"bandName", "least to greatest within a pixel"},
      {"spans", Json::array()},
      {"spanName", "a pipeline straggles"}};
}

// Null: there is nothing to draw.
Json PowerChart(const Emulation& emulation) {
  const PowerTrace& power = emulation.power;
  if (power.watts.empty()) return nullptr;
  const DisplayUnit unit = PowerUnit(emulation.peak_watts);
  const auto columns = IntoColumns(static_cast<std::int64_t>(power.watts.size()),
                                   [&](std::int64_t i) { return power.watts[i] / unit.factor; });
  Json chart = ColumnsChart(columns, "mean power", power.interval_seconds);
  chart["title"] = "Power of the job over time";
  chart["summary"] =
      fmt::format("Power of the job over {}: {} on average, {} at most.",
                  TimeUnit(emulation.time_seconds).Text(emulation.time_seconds),
                  unit.Text(emulation.average_watts), unit.Text(emulation.peak_watts));
  chart["xName"] = "time (s)";
  chart["yName"] = fmt::format("power ({})", unit.name);
  chart["height"] = 320;
  for (const auto& [first, last] : StragglingRuns(emulation)) {
    const IterationRecord& end = emulation.iterations[last - 1];
    chart["spans"].push_back(
        {emulation.iterations[first].start_seconds, end.start_seconds + end.time_seconds});
  }
  return chart;
}

Json IterationsChart(const Emulation& emulation) {
  if (emulation.iterations.size() < 2) return nullptr;
  const auto count = static_cast<std::int64_t>(emulation.iterations.size());
  const DisplayUnit unit = TimeUnit(emulation.time_seconds / static_cast<double>(count));
  const auto columns = [&](double IterationRecord::*seconds) {
    return IntoColumns(
        count, [&](std::int64_t i) { return emulation.iterations[i].*seconds / unit.factor; });
  };
  const std::vector<Column> times = columns(&IterationRecord::time_seconds);
  double least = times.front().low, most = times.front().high;
  for (const Column& column : times) {
    least = std::min(least, column.low);
    most = std::max(most, column.high);
  }
  Json chart = ColumnsChart(times, "iteration time (mean)", 1);
  Json planned = ColumnsChart(columns(&IterationRecord::target_seconds),
                              "planned for, by healthy pipelines", 1)["series"][0];
  planned["css"] = "c1";
  chart["series"].insert(chart["series"].begin(), std::move(planned));
  chart["title"] = "Time of every iteration";
  chart["summary"] = fmt::format("Times of {} iterations: {} to {}.", count,
                                 unit.Text(least * unit.factor), unit.Text(most * unit.factor));
  chart["xName"] = "iteration";
  chart["yName"] = fmt::format("iteration time ({})", unit.name);
  chart["height"] = 280;
  for (const auto& [first, last] : StragglingRuns(emulation)) {
    chart["spans"].push_back({first, last});
  }
  return chart;
}

void AddEnergySplit(const EnergySplit& energy, Document* document) {
  const struct {
    std::string_view css, name, says;
    double joules;
  } parts[] = {{"useful", "Useful", "What the work needs, in the time that the job took.",
                energy.useful_joules},
               {"intrinsic", "Intrinsic bloat",
                "Computations off the critical path ran faster than their pipeline needed.",
                energy.intrinsic_bloat_joules},
               {"extrinsic", "Extrinsic bloat",
                "Whole pipelines ran faster than the slowest one let them finish.",
                energy.extrinsic_bloat_joules},
               {"blocking", "Blocking", "GPUs waited, for other ranks or other pipelines.",
                energy.blocking_joules}};
  const double total = energy.total_joules();
  const DisplayUnit unit = EnergyUnit(total);
  Bar bar;
  std::vector<Fact> keys;
  Table table{"", {"", fmt::format("Energy ({})", unit.name), "Share"}, 1, {}};
  for (const auto& part : parts) {
    bar.parts.push_back({std::string(part.css), std::max(0.0, part.joules)});
    keys.push_back({std::string(part.css), std::string(part.name)});
    table.Add({{std::string(part.name), "", std::string(part.says)},
               {unit.Number(part.joules)},
               {total != 0 ? FixedText(100 * part.joules / total, 2) + "\u00a0%" : "\u2013"}});
  }
  table.Add({{"All"}, {unit.Number(total)}, {"100.00\u00a0%"}}, "total");
  bar.high = 0;
  for (const Bar::Part& part : bar.parts) bar.high += part.value;
  document->Put(std::move(bar));
  document->Keys(std::move(keys));
  document->Put(std::move(table));
}

std::string Share(double part, double whole) {
  return whole != 0 ? FixedText(100 * part / whole, 2) + "\u00a0%" : "\u2013";
}

const PolicyRow* FindPolicy(const std::vector<PolicyRow>& rows, std::string_view policy) {
  const auto found = std::find_if(rows.begin(), rows.end(),
                                  [&](const PolicyRow& row) { return row.policy == policy; });
  return found == rows.end() ? nullptr : &*found;
}

Table PolicyTable(const EmulationReportInput& input) {
  double seconds = 0, joules = 0, watts = 0;
  for (const PolicyRow& row : input.policies) {
    seconds = std::max(seconds, row.time_seconds);
    joules = std::max(joules, row.energy.total_joules());
    watts = std::max(watts, row.peak_watts);
  }
  const DisplayUnit time = TimeUnit(seconds), energy = EnergyUnit(joules), power = PowerUnit(watts);
  Table table;
  table.caption =
      "The whole job, all iterations together, in the same scenario: noise, switching and "
      "stragglers alike.";
  table.columns = {"Policy",
                   fmt::format("Time ({})", time.name),
                   "Slowdown",
                   fmt::format("Energy ({})", energy.name),
                   "Saving",
                   "Useful",
                   "Intrinsic",
                   "Extrinsic",
                   "Blocking",
                   fmt::format("Mean power ({})", power.name),
                   fmt::format("Peak ({})", power.name)};
  for (const PolicyRow& row : input.policies) {
    const Cell name{row.policy};
    const std::string css = row.policy == input.label ? "chosen" : "";
    const double total = row.energy.total_joules();
    table.Add({name,
               {time.Number(row.time_seconds)},
               {ChangePercent(row.slowdown_percent, 2)},
               {energy.Number(total)},
               {SavingPercent(row.saving_percent, 2)},
               {Share(row.energy.useful_joules, total)},
               {Share(row.energy.intrinsic_bloat_joules, total)},
               {Share(row.energy.extrinsic_bloat_joules, total)},
               {Share(row.energy.blocking_joules, total)},
               {power.Number(row.average_watts)},
               {power.Number(row.peak_watts)}},
              css);
  }
  return table;
}

class EmulationPage {
 public:
  explicit EmulationPage(const EmulationReportInput& input)
      : input_(input),
        spec_(*input.spec),
        emulation_(*input.emulation),
        iterations_(std::max<double>(1, static_cast<double>(input.emulation->iterations.size()))),
        max_clocks_(FindPolicy(input.policies, "max-clocks")) {}

  std::string Format() {
    Header();
    if (!input_.scenario.empty()) document_.Paragraph("Scenario: " + input_.scenario);
    Figures();
    document_.Heading("Where the energy went");
    document_.Paragraph(
        "Of the whole job, over all iterations. The four parts add up to all of it.");
    AddEnergySplit(emulation_.energy, &document_);
    Drawn("Power of the job over time",
          fmt::format(
              "All GPUs, waiting included; each value is a mean over {}. The axis need "
              "not start at zero.",
              TimeUnit(emulation_.power.interval_seconds).Text(emulation_.power.interval_seconds)),
          PowerChart(emulation_));
    Drawn("Iteration times",
          "An iteration lasts as long as its slowest pipeline. The axis need not start at zero.",
          IterationsChart(emulation_));
    Timelines();
    Comparisons();
    SmallPrint();
    return HtmlOf(document_);
  }

 private:
  // Absent where there is nothing in it.
  void Drawn(std::string name, std::string lead, Json chart) {
    if (chart.is_null()) return;
    document_.Heading(std::move(name));
    document_.Paragraph(std::move(lead));
    document_.Chart(std::move(chart));
  }

  void Timelines() {
    const EmulatedTimeline& timeline = emulation_.timeline;
    if (timeline.pipelines.empty()) return;
    // More would be neither readable nor small; the trace has all of them.
    constexpr std::size_t kMostComputations = 30'000, kMostLanes = 160;
    const PipelineDag& dag = input_.pipeline->dag;
    const DisplayUnit time = TimeUnit(timeline.time_seconds);
    std::vector<TimelineRun> runs;
    for (const EmulatedPipeline& each : timeline.pipelines) {
      const std::size_t with = runs.size() + 1;
      if (with * static_cast<std::size_t>(dag.size()) > kMostComputations ||
          with * static_cast<std::size_t>(dag.num_ranks) > kMostLanes) {
        break;
      }
      runs.push_back(
          RunOf(*input_.pipeline, each, timeline.time_seconds,
                fmt::format("Pipeline {}{}: its own end after {}", each.pipeline,
                            each.straggles ? " (straggles)" : "", time.Text(each.end_seconds))));
    }
    document_.Heading(fmt::format("Iteration {}", timeline.iteration));
    document_.Paragraph(
        "One lane per rank. Colour is the clock. The dashed line is where the pipeline itself "
        "ends, "
        "the red one where the iteration does. timeline.pftrace, beside this file, holds the same "
        "for Perfetto.");
    if (!runs.empty()) {
      const auto drawn = static_cast<int>(runs.size());
      document_.Chart(TimelineChart(*input_.pipeline, runs, "", false, "these pipelines", drawn));
    }
    const auto left = static_cast<std::int64_t>(timeline.pipelines.size() - runs.size());
    if (left > 0) {
      document_.Paragraph(
          fmt::format("{} more, too large to be drawn here: timeline.pftrace, beside this file, "
                      "holds all that is "
                      "kept, for Perfetto.",
                      Plural(left, "pipeline")));
    }
  }

  void Comparisons() {
    if (input_.policies.empty()) return;
    document_.Heading("Policies");
    document_.Paragraph("What each plan makes of this job.");
    document_.Put(PolicyTable(input_));
  }

  void Header() {
    document_.title = input_.title.empty() ? "Emulated job" : input_.title;
    document_.warning = ModelledWarning(input_.pipeline->modelled);
    document_.notes = input_.notes;
    document_.subtitle =
        fmt::format("{}, {} of {}: {}", Plural(emulation_.gpus, "GPU"),
                    Plural(spec_.pipelines, "pipeline"), ShapeOf(input_.pipeline->dag),
                    Plural(static_cast<std::int64_t>(emulation_.iterations.size()), "iteration"));
  }

  KeyFigure EnergyFigure() const {
    const double joules = emulation_.energy.total_joules();
    const DisplayUnit energy = EnergyUnit(joules);
    if (max_clocks_ == nullptr) {
      return {"Energy of the job", energy.Text(joules),
              fmt::format("{} an iteration",
                          EnergyUnit(joules / iterations_).Text(joules / iterations_))};
    }
    const double before = max_clocks_->energy.total_joules();
    const double saving_percent = PercentSaved(joules, before);
    return {"Saving against maximum clocks", SavingPercent(saving_percent, 2),
            fmt::format("{} \u2192 {}", EnergyUnit(before).Text(before), energy.Text(joules)),
            ClassOfSaving(saving_percent)};
  }

  void Figures() {
    const double seconds = emulation_.time_seconds / iterations_;
    std::string detail =
        fmt::format("{} in all", TimeUnit(emulation_.time_seconds).Text(emulation_.time_seconds));
    if (max_clocks_ != nullptr && max_clocks_->time_seconds > 0) {
      detail = fmt::format(
          "{} against maximum clocks; {}",
          ChangePercent(PercentOver(emulation_.time_seconds, max_clocks_->time_seconds), 2),
          detail);
    }
    const auto power = [](double watts) { return PowerUnit(watts).Text(watts); };
    document_.figures = {
        EnergyFigure(),
        {"Mean iteration time", TimeUnit(seconds).Text(seconds), detail},
        {"Mean power of the job", power(emulation_.average_watts),
         fmt::format("peak {}", power(emulation_.peak_watts))},
        {"Power of a GPU", power(emulation_.gpu_average_watts),
         fmt::format("highest of a computation {}", power(emulation_.gpu_peak_watts))}};
  }

  void SmallPrint() {
    document_.Heading("What this rests on", "small");
    std::vector<Fact> facts;
    const auto fact = [&](std::string name, std::string text) {
      if (!text.empty()) facts.push_back({std::move(name), std::move(text)});
    };
    fact("Profile", std::string(FileName(input_.profile->source)));
    fact("SHA-256", input_.profile->sha256);
    fact("Policy", input_.label);
    fact("Target", TimeUnit(spec_.target_seconds).Text(spec_.target_seconds) +
                       " an iteration while nobody straggles");
    fact("Events",
         fmt::format("{}, {} of plan, {} of clock, {} that began at another clock than planned",
                     Plural(emulation_.stragglers, "straggler"),
                     Plural(emulation_.replans, "change"), Plural(emulation_.clock_calls, "change"),
                     Plural(emulation_.late_computations, "computation")));
    document_.Facts(std::move(facts));
    std::vector<std::string> items = {
        "Emulated, not measured: times and energies of single computations come from the profile "
        "and are replayed on the schedule, as docs/explanation/emulation.md defines. Contention "
        "between GPUs "
        "is not in it.",
        "Intrinsic and extrinsic bloat follow Chung et al. 2024, counted in effective energy: a "
        "computation that runs longer waits less."};
    items.insert(items.end(), input_.remarks.begin(), input_.remarks.end());
    document_.List(std::move(items));
  }

  const EmulationReportInput& input_;
  const EmulationSpec& spec_;
  const Emulation& emulation_;
  const double iterations_;
  const PolicyRow* const max_clocks_;
  Document document_;
};

}  // namespace
}  // namespace report

inline namespace v0 {

Result<std::string> FormatEmulationHtml(const EmulationReportInput& input) {
  if (auto good = report::CheckInput(input); !good) return tl::unexpected(good.error());
  return report::EmulationPage(input).Format();
}

}  // namespace v0
}  // namespace perseus
