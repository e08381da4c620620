// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "model/iteration_energy.h"
#include "model/plan_figures.h"
#include "perseus/job.h"
#include "perseus/report.h"
#include "report/check_input.h"
#include "report/document.h"
#include "report/text.h"
#include "report/timeline.h"

namespace perseus {
namespace report {
namespace {

using Json = nlohmann::ordered_json;

// [rank] What waits draw beyond the least; empty where that does not depend on clocks.
struct DearerWaits {
  std::vector<double> by_rank;
  std::vector<double> seconds;  // That each rank waits.
};
DearerWaits DearerJoulesOf(const CostedPipeline& pipeline, const Plan& plan) {
  std::vector<double> durations;
  durations.reserve(plan.options.size());
  for (const CostOption& option : plan.options) durations.push_back(option.time_seconds);
  const Timing timing = Replay(pipeline.dag, durations);
  DearerWaits waits{model::DearerWaitingJoules(pipeline, plan.options, plan.waiting, timing), {}};
  for (const std::vector<int>& of_rank : pipeline.dag.rank_order) {
    double seconds = timing.iteration_time_seconds;
    for (const int i : of_rank) seconds -= durations[i];
    waits.seconds.push_back(seconds);
  }
  return waits;
}

// [rank] The mean power of its waits.
Json WaitingPower(const CostedPipeline& pipeline, const Plan& plan) {
  const DearerWaits waits = DearerJoulesOf(pipeline, plan);
  Json watts = Json::array();
  for (std::size_t rank = 0; rank < pipeline.rank_blocking_power_watts.size(); ++rank) {
    const bool is_dearer = !waits.by_rank.empty() && waits.seconds[rank] > 0;
    watts.push_back(
        RoundSignificant(pipeline.rank_blocking_power_watts[rank] +
                             (is_dearer ? waits.by_rank[rank] / waits.seconds[rank] : 0),
                         6));
  }
  return watts;
}

// The lower bound, the baseline and the plans, for report.ts.
Json FrontierChart(const ReportInput& input, std::string_view baseline_name) {
  const Frontier& frontier = *input.frontier;
  const Plan& baseline = *input.baseline;
  const Plan& chosen = *input.chosen;
  double first = std::min(baseline.iteration_time_seconds, frontier.fastest_seconds);
  double last = std::max(
      {baseline.iteration_time_seconds, frontier.tstar_seconds, chosen.iteration_time_seconds});
  Json marks = {{{"name", baseline_name},
                 {"time", baseline.iteration_time_seconds},
                 {"energy", baseline.energy_joules},
                 {"kind", "baseline"}}};
  for (const ReportRow& row : input.rows) {
    if (!row.feasible || row.chosen) continue;
    first = std::min(first, row.iteration_time_seconds);
    last = std::max(last, row.iteration_time_seconds);
    // The names of times stand at the top already.
    marks.push_back({{"name", row.label},
                     {"time", row.iteration_time_seconds},
                     {"energy", row.energy_joules},
                     {"kind", "point"},
                     {"isNamed", !row.label.starts_with("T_") && row.label != "T*"}});
  }
  marks.push_back({{"name", "this plan saves " + SavingPercent(chosen.saving_percent, 2)},
                   {"time", chosen.iteration_time_seconds},
                   {"energy", chosen.energy_joules},
                   {"kind", "chosen"}});
  // Points closer than a third of a pixel add nothing but bytes.
  constexpr double kPixels = 3000;
  const double width = std::max(last - first, 0.02 * last) / kPixels;
  double height = baseline.energy_joules;
  for (const FrontierPoint& point : frontier.points) {
    height = std::max(height, point.energy_joules);
  }
  height =
      std::max(height - frontier.EnergyAt(frontier.min_energy_seconds), 0.02 * height) / kPixels;
  Json points = Json::array();
  const FrontierPoint* before = nullptr;
  const auto add = [&](double seconds, double joules) {
    points.push_back({RoundSignificant(seconds, 9), RoundSignificant(joules, 9)});
  };
  for (const FrontierPoint& point : frontier.points) {
    const bool is_near =
        before != nullptr &&
        std::abs(point.iteration_time_seconds - before->iteration_time_seconds) < width &&
        std::abs(point.energy_joules - before->energy_joules) < height;
    if (is_near && &point != &frontier.points.back()) continue;
    before = &point;
    add(point.iteration_time_seconds, point.energy_joules);
  }
  // To the edge of the chart, and what is drawn beyond it.
  const double edge = last + 0.1 * std::max(last - first, 0.02 * last);
  if (before == nullptr || before->iteration_time_seconds < edge)
    add(edge, frontier.EnergyAt(edge));
  return {
      {"kind", "frontier"},
      {"points", std::move(points)},
      {"isBound", !frontier.fitted},
      {"baseline", {{"time", baseline.iteration_time_seconds}, {"energy", baseline.energy_joules}}},
      {"marks", std::move(marks)},
      {"times",
       {{{"name", "T_min"}, {"time", frontier.fastest_seconds}},
        {{"name", "min energy"}, {"time", frontier.min_energy_seconds}},
        {{"name", "T*"}, {"time", frontier.tstar_seconds}}}},
      {"xName", "Iteration time"},
      {"yName", "Energy of an iteration"},
      {"source", "planned"}};
}

// The energy that is saved by slowing the computations of one stage. A slower computation replaces
// waiting, so the blocking energy of that waiting is part of the saving: (e - P t) before - (e - P
// t) after. The sum over the stages plus (time before - time after) x total blocking power is
// exactly the plan's saving.
struct StageSavings {
  int stage = 0;
  int rank = 0;
  double forward_joules = 0;
  double backward_joules = 0;  // B, I, W, R, and R with B in one.
  double fused_joules = 0;     // Forward and backward in one, under the forward's stage.
  double busy_seconds_before = 0;
  double busy_seconds_after = 0;
  double forward_clock = 0;   // Mean over time in the plan; numbers only.
  double backward_clock = 0;  // Fused ones count here.

  double total_joules() const { return forward_joules + backward_joules + fused_joules; }
};
std::vector<StageSavings> ComputeStageSavings(const CostedPipeline& pipeline, const Plan& baseline,
                                              const Plan& chosen) {
  const PipelineDag& dag = pipeline.dag;
  std::vector<StageSavings> stages(dag.num_stages);
  std::vector<double> forward_seconds(dag.num_stages);
  std::vector<double> backward_seconds(dag.num_stages);
  for (int s = 0; s < dag.num_stages; ++s) stages[s].stage = s;

  for (int i = 0; i < dag.size(); ++i) {
    const Computation& computation = dag.computations[i];
    StageSavings& stage = stages[computation.id.stage];
    const CostOption& before = baseline.options[i];
    const CostOption& after = chosen.options[i];
    const CostTable& table = pipeline.TableOf(i);
    const double saved = EffectiveEnergy(table, before) - EffectiveEnergy(table, after);
    const double clock_seconds = pipeline.knobs[after.knob].number * after.time_seconds;
    stage.rank = computation.rank;
    stage.busy_seconds_before += before.time_seconds;
    stage.busy_seconds_after += after.time_seconds;
    const bool is_forward = computation.id.type == ComputationType::kForward;
    if (is_forward && !computation.fused) {
      stage.forward_joules += saved;
      stage.forward_clock += clock_seconds;
      forward_seconds[stage.stage] += after.time_seconds;
    } else {
      (is_forward ? stage.fused_joules : stage.backward_joules) += saved;
      stage.backward_clock += clock_seconds;
      backward_seconds[stage.stage] += after.time_seconds;
    }
  }
  for (int s = 0; s < dag.num_stages; ++s) {
    if (forward_seconds[s] > 0) stages[s].forward_clock /= forward_seconds[s];
    if (backward_seconds[s] > 0) stages[s].backward_clock /= backward_seconds[s];
  }
  return stages;
}

class StageSection {
 public:
  StageSection(const CostedPipeline& pipeline, const Plan& baseline, const Plan& chosen,
               const std::string& knob_unit)
      : pipeline_(pipeline),
        baseline_(baseline),
        chosen_(chosen),
        knob_unit_(knob_unit),
        time_(TimeUnit(baseline.iteration_time_seconds)),
        energy_(EnergyUnit(baseline.energy_joules)) {}

  void AddTo(Document* document) const {
    const std::vector<StageSavings> stages = ComputeStageSavings(pipeline_, baseline_, chosen_);
    const double stretch = (baseline_.iteration_time_seconds - chosen_.iteration_time_seconds) *
                           pipeline_.total_blocking_power_watts;
    const double waiting = DearerJoules(baseline_) - DearerJoules(chosen_);
    const double total = baseline_.energy_joules - chosen_.energy_joules;
    // Everything the bars have to reach, from the common zero.
    double most = std::max(0.0, stretch);
    double least = std::min(0.0, stretch);
    bool any_fused = false;
    for (const StageSavings& stage : stages) {
      double up = 0, down = 0;
      for (const double part : {stage.forward_joules, stage.backward_joules, stage.fused_joules}) {
        (part > 0 ? up : down) += part;
      }
      most = std::max(most, up);
      least = std::min(least, down);
      any_fused = any_fused || stage.fused_joules != 0;
    }
    const bool show_stretch = std::abs(stretch) > 5e-4 * std::abs(total);

    document->Heading("Where the savings come from");
    document->Paragraph(
        "A slower computation fills time in which its rank would have waited at blocking power, so "
        "what counts is the energy saved net of that waiting. The lines add up to the plan\u2019s "
        "saving.");
    std::vector<Fact> keys = {{"forward", "forward"}, {"backward", "backward"}};
    if (any_fused) keys.push_back({"fused", "overlapped"});
    if (show_stretch) keys.push_back({"stretch", "change of iteration time"});
    document->Keys(std::move(keys));
    const bool clocks = pipeline_.knobs_are_numbers;
    Table table;
    table.columns = {"Stage", "Rank"};
    if (clocks) {
      const std::string unit = knob_unit_.empty() ? "" : fmt::format(" ({})", knob_unit_);
      table.columns.insert(table.columns.end(), {"Mean forward" + unit, "Mean backward" + unit});
    }
    table.columns.insert(
        table.columns.end(),
        {"Busy before", "after", fmt::format("Saved ({})", energy_.name), "Share", "Drawn"});
    for (const StageSavings& stage : stages) {
      std::vector<Cell> cells = {{fmt::format("{}", stage.stage)}, {fmt::format("{}", stage.rank)}};
      if (clocks) {
        cells.push_back({Clock(stage.forward_clock)});
        cells.push_back({Clock(stage.backward_clock)});
      }
      cells.push_back({Percent(stage.busy_seconds_before, baseline_.iteration_time_seconds)});
      cells.push_back({Percent(stage.busy_seconds_after, chosen_.iteration_time_seconds)});
      AddSaved(stage.total_joules(), total, &cells);
      cells.push_back({.text = "",
                       .bar = Bar{{{"forward", stage.forward_joules},
                                   {"backward", stage.backward_joules},
                                   {"fused", stage.fused_joules}},
                                  least,
                                  most}});
      table.Add(std::move(cells));
    }
    const int plain_columns = clocks ? 5 : 3;
    if (show_stretch) {
      std::vector<Cell> cells = {
          {"time"},
          {.text = fmt::format("all ranks wait {} for {}", stretch < 0 ? "longer" : "less",
                               time_.Text(std::abs(chosen_.iteration_time_seconds -
                                                   baseline_.iteration_time_seconds))),
           .columns = plain_columns}};
      AddSaved(stretch, total, &cells);
      cells.push_back({.text = "", .bar = Bar{{{"stretch", stretch}}, least, most}});
      table.Add(std::move(cells));
    }
    if (waiting != 0) {
      std::vector<Cell> cells = {{"waits"},
                                 {.text = "ranks wait at other clocks", .columns = plain_columns}};
      AddSaved(waiting, total, &cells);
      cells.push_back({""});
      table.Add(std::move(cells));
    }
    std::vector<Cell> cells = {{"all"}, {.text = "", .columns = plain_columns}};
    AddSaved(total, total, &cells);
    cells.push_back({""});
    table.Add(std::move(cells), "total");
    document->Put(std::move(table));
  }

 private:
  double DearerJoules(const Plan& plan) const {
    double sum = 0;
    for (const double joules : DearerJoulesOf(pipeline_, plan).by_rank) sum += joules;
    return sum;
  }

  static std::string Clock(double mean) {
    return mean > 0 ? fmt::format("{:.0f}", mean) : std::string("\u2013");
  }

  static std::string Percent(double part, double whole) {
    return whole != 0 ? FixedText(100 * part / whole, 1) + "\u00a0%" : "\u2013";
  }

  void AddSaved(double joules, double total, std::vector<Cell>* cells) const {
    cells->push_back({energy_.Number(joules)});
    cells->push_back({Percent(joules, total)});
  }

  const CostedPipeline& pipeline_;
  const Plan& baseline_;
  const Plan& chosen_;
  const std::string& knob_unit_;
  const DisplayUnit time_;
  const DisplayUnit energy_;
};

class PlanPage {
 public:
  explicit PlanPage(const ReportInput& input)
      : input_(input),
        pipeline_(*input.pipeline),
        dag_(input.pipeline->dag),
        baseline_(*input.baseline),
        chosen_(*input.chosen),
        knob_(pipeline_.knobs_are_numbers ? "clock" : "knob"),
        baseline_name_(pipeline_.knobs_are_numbers ? "all-maximum clocks" : "baseline knobs"),
        time_(TimeUnit(baseline_.iteration_time_seconds)),
        energy_(EnergyUnit(baseline_.energy_joules)),
        power_(PowerUnit(baseline_.average_power_watts)) {}

  std::string Format() {
    Header();
    FrontierSection();
    SavingsSection();
    TimelinesSection();
    StageSection(pipeline_, baseline_, chosen_, input_.knob_unit).AddTo(&document_);
    SmallPrint();
    return HtmlOf(document_);
  }

 private:
  void Header() {
    const double slower =
        100 * (chosen_.iteration_time_seconds / baseline_.iteration_time_seconds - 1);
    document_.title = input_.title.empty() ? "Energy plan" : input_.title;
    document_.subtitle =
        fmt::format("{}, {} per iteration", ShapeOf(dag_), Plural(dag_.size(), "computation"));
    document_.warning = ModelledWarning(pipeline_.modelled);
    document_.notes = input_.notes;
    if (input_.conditions) {
      HeaderUnderConditions();
      return;
    }
    document_.figures = {
        {"Saving of energy", SavingPercent(chosen_.saving_percent, 2),
         fmt::format(
             "{} \u2192 {} an iteration{}", energy_.Text(baseline_.energy_joules),
             energy_.Text(chosen_.energy_joules),
             (chosen_.saving_interval ? "; " + IntervalText(*chosen_.saving_interval) : "") +
                 DefaultClocks()),
         ClassOfSaving(chosen_.saving_percent)},
        {"Iteration time", time_.Text(chosen_.iteration_time_seconds),
         fmt::format("{} against {}", ChangePercent(slower, 2), baseline_name_)},
        {"Average power of the pipeline", power_.Text(chosen_.average_power_watts),
         fmt::format("from {}", power_.Text(baseline_.average_power_watts))},
        {"Optimality gap",
         fmt::format("\u2264\u00a0{:.3f}\u00a0%", ShownGap(ProvenBoundOf(chosen_).gap_percent)),
         "above the least possible energy"}};
  }

  std::string DefaultClocks() const {
    if (!chosen_.default_clocks) return "";
    const std::string iteration =
        fmt::format("{} and {}", time_.Text(chosen_.default_clocks->iteration_time_seconds),
                    energy_.Text(chosen_.default_clocks->energy_joules));
    return "; " +
           DefaultClocksText(*chosen_.default_clocks, iteration, ProfileOrigin(pipeline_.modelled));
  }

  // Figures of the plan by the emulator, under the conditions.
  void HeaderUnderConditions() {
    const ExpectedFigures& expected = input_.expected;
    const double before = expected.energy_joules / (1 - expected.saving_percent / 100);
    document_.figures = {
        {"Saving of energy, under the conditions", SavingPercent(expected.saving_percent, 2),
         fmt::format("{} \u2192 {} an iteration; without conditions {}", energy_.Text(before),
                     energy_.Text(expected.energy_joules),
                     SavingPercent(chosen_.saving_percent, 2)),
         ClassOfSaving(expected.saving_percent)},
        {"Iteration time, under the conditions", time_.Text(expected.iteration_time_seconds),
         fmt::format("{} against {} under the same", ChangePercent(expected.slowdown_percent, 2),
                     baseline_name_)},
        {"Average power of the pipeline",
         power_.Text(expected.energy_joules / expected.iteration_time_seconds),
         "under the conditions"},
        {input_.bound_is_proven ? "Bound" : "Bound (an estimate)",
         SavingPercent(input_.bound_percent, 2), "no plan saves more under the conditions"}};
  }

  void FrontierSection() {
    const std::string line =
        input_.frontier->fitted
            ? "an exponential fit of the profile, which bounds nothing; the gaps below are to the "
              "exact lower bound of the measured options"
            : fmt::format(
                  "the {} lower bound: no assignment of the profiled clocks to "
                  "computations uses less energy in that time",
                  input_.frontier->certified_error > 0 ? "certified" : "exact");
    document_.Heading("Energy over iteration time");
    document_.Paragraph(
        fmt::format("The blue line is {}. Circles are plans that can be run; the "
                    "diamond is the plan of this report.",
                    line));
    document_.Chart(FrontierChart(input_, baseline_name_));
  }

  void SavingsSection() {
    document_.Heading("Savings");
    Table table;
    table.caption =
        "One pipeline, one iteration. Every line is a plan with one profiled clock per "
        "computation.";
    table.columns = {"Plan",
                     fmt::format("Time ({})", time_.name),
                     "Slowdown",
                     fmt::format("Energy ({})", energy_.name),
                     "Saving",
                     fmt::format("Average power ({})", power_.name),
                     fmt::format("Lower bound ({})", energy_.name),
                     "Gap"};
    AddSavings(MakeReportRow(std::string(baseline_name_), baseline_), "baseline", &table);
    bool chosen_listed = false;
    for (const ReportRow& row : input_.rows) {
      if (!row.feasible) continue;
      AddSavings(row, row.chosen ? "chosen" : "", &table);
      chosen_listed = chosen_listed || row.chosen;
    }
    if (!chosen_listed) AddSavings(MakeReportRow("this plan", chosen_), "chosen", &table);
    document_.Put(std::move(table));
  }

  void AddSavings(const ReportRow& row, const std::string& css, Table* table) const {
    table->Add({{row.label},
                {time_.Number(row.iteration_time_seconds)},
                {ChangePercent(
                    PercentOver(row.iteration_time_seconds, baseline_.iteration_time_seconds), 2)},
                {energy_.Number(row.energy_joules)},
                {css == "baseline" ? "\u2013" : SavingPercent(row.saving_percent, 2)},
                {power_.Number(row.average_power_watts)},
                {energy_.Number(ProvenBoundOf(row).lower_bound_joules)},
                {fmt::format("{:.3f}\u00a0%", ShownGap(ProvenBoundOf(row).gap_percent))}},
               css);
  }

  void TimelinesSection() {
    document_.Heading("Timelines");
    document_.Paragraph(fmt::format(
        "One iteration, one lane per rank, both on the same time scale. Colour is the {}; the red "
        "line marks the critical path. The last lane is the power that the whole pipeline draws.",
        knob_));
    Json chart =
        TimelineChart(pipeline_,
                      {RunOf(pipeline_, baseline_,
                             TimelineName(fmt::format("Before: {}", baseline_name_), baseline_)),
                       RunOf(pipeline_, chosen_, TimelineName("After: this plan", chosen_))},
                      input_.knob_unit, true, "this plan", 1);
    for (const auto& [at, plan] : {std::pair(0, &baseline_), std::pair(1, &chosen_)}) {
      chart["runs"][at]["power"] = RoundSignificant(plan->average_power_watts, 6);
      chart["runs"][at]["waiting"] = WaitingPower(pipeline_, *plan);
    }
    document_.Chart(std::move(chart));
    document_.Paragraph("timeline.pftrace, beside this file, holds the same for Perfetto.",
                        "detail");
  }

  std::string TimelineName(std::string_view name, const Plan& plan) const {
    return fmt::format("{}: {}, {}, {} of {}", name, time_.Text(plan.iteration_time_seconds),
                       energy_.Text(plan.energy_joules),
                       Plural(CountKnobChanges(dag_, plan.options)->all(), "change"), knob_);
  }

  std::string BlockingPower() const {
    const std::vector<double>& watts = pipeline_.rank_blocking_power_watts;
    if (watts.empty()) return "\u2013";
    const double gpus = pipeline_.tensor_parallel;
    const auto [low, high] = std::minmax_element(watts.begin(), watts.end());
    const std::string text = *low == *high ? fmt::format("{:.6g} W per GPU", *low / gpus)
                                           : fmt::format("{:.6g} to {:.6g} W per GPU, by rank",
                                                         *low / gpus, *high / gpus);
    return text + (pipeline_.waiting_depends_on_clock() ? ", at the clock of the least"
                                                        : fmt::format(", at any {}", knob_));
  }

  std::string ConstraintText(model::ConstraintUnit unit, double value) const {
    return unit == model::ConstraintUnit::kShare ? fmt::format("{:.4g} %", 100 * value)
                                                 : fmt::format("{:.4g} standard deviations", value);
  }
  std::string ConstraintText(model::ConstraintUnit /*unit*/, Granularity granularity) const {
    return std::string(GranularityName(granularity));
  }

  std::string Constraints() const {
    const PlanConstraints& constraints = input_.constraints;
    if (!constraints.any()) return fmt::format("none: every computation has its own {}", knob_);
    std::string text = fmt::format("one {}", knob_);
    for (const model::Constraint& each : model::Constraints()) {
      // Whether each computation has a clock of its own is said in any case.
      const bool first = &each == model::Constraints().data();
      if (!first && !each.IsIn(constraints)) continue;
      text += fmt::format("{}{} {}", first ? " " : ", ", each.says,
                          each.On(constraints, [&](const auto& value) {
                            return ConstraintText(each.unit, value);
                          }));
    }
    return text;
  }

  void SmallPrint() {
    document_.Heading("What this rests on", "small");
    std::vector<Fact> facts;
    const auto fact = [&](std::string name, std::string text) {
      if (!text.empty()) facts.push_back({std::move(name), std::move(text)});
    };
    fact("Profile", std::string(FileName(input_.profile->source)));
    fact("SHA-256", input_.profile->sha256);
    fact("Schedule", ShapeOf(dag_));
    fact("Blocking power", BlockingPower());
    fact("Tensor parallel", Plural(pipeline_.tensor_parallel, "GPU") + " per rank");
    if (input_.data_parallel > 1) {
      fact("Data parallel",
           fmt::format("{}: the whole job saves {} per iteration",
                       Plural(input_.data_parallel, "pipeline"),
                       energy_.Text((baseline_.energy_joules - chosen_.energy_joules) *
                                    input_.data_parallel)));
    }
    fact("Constraints", Constraints());
    fact("Requested time",
         fmt::format("{}, {} the achieved {}", time_.Text(chosen_.requested_time_seconds),
                     input_.conditions ? "for which the conditions accept" : "never exceeded by",
                     time_.Text(chosen_.iteration_time_seconds)));
    fact("Clock changes",
         fmt::format("{}, {}", ChangesText(*CountKnobChanges(dag_, chosen_.options)),
                     DistinctText(chosen_, "value")));
    document_.Facts(std::move(facts));
    std::vector<std::string> items = {
        input_.conditions
            ? "Planned, not measured: the figures at the top are emulated under the conditions "
              "below; tables, curve and timelines are replays of the profile's times without them. "
              "Contention between GPUs is in neither."
            : "Planned, not measured: times and energies of single computations come from the "
              "profile; the iteration is their replay on the schedule, each as early as it can "
              "start. Noise, the delay of switching clocks and contention between GPUs are not in "
              "it.",
        fmt::format(
            "Optimality gap: a plan of {} cannot use less than {}; this one uses {}, at most "
            "{:.3f} % more. {}{}",
            time_.Text(chosen_.iteration_time_seconds),
            energy_.Text(ProvenBoundOf(chosen_).lower_bound_joules),
            energy_.Text(chosen_.energy_joules), ShownGap(ProvenBoundOf(chosen_).gap_percent),
            chosen_.discrete_bound
                ? ""
                : "The bound lets every computation mix neighbouring clocks, so part of "
                  "the gap may be the bound\u2019s own. ",
            input_.frontier->certified_error > 0
                ? fmt::format("The curve itself is certified to {:.3g} %.",
                              100 * input_.frontier->certified_error)
                : std::string("The curve is exact.")),
        "Energy is that of one pipeline: its computations, and blocking power while a rank waits. "
        "Min energy is the point of least energy. T* is the longest time worth planning for: a "
        "pipeline that must wait for a slower one saves by slowing down, up to T*."};
    if (chosen_.shared_knobs) {
      items.insert(items.begin() + 2, "Best: " + SharedKnobText(*chosen_.shared_knobs));
    }
    items.insert(items.end(), input_.remarks.begin(), input_.remarks.end());
    document_.List(std::move(items));
  }

  const ReportInput& input_;
  const CostedPipeline& pipeline_;
  const PipelineDag& dag_;
  const Plan& baseline_;
  const Plan& chosen_;
  const std::string_view knob_;  // What a knob is called.
  const std::string_view baseline_name_;
  const DisplayUnit time_;
  const DisplayUnit energy_;
  const DisplayUnit power_;
  Document document_;
};

}  // namespace
}  // namespace report

inline namespace v0 {

ReportRow MakeReportRow(std::string label, const Plan& plan) {
  ReportRow row;
  static_cast<PlanFigures&>(row) = plan;
  row.label = std::move(label);
  row.discrete_bound = plan.discrete_bound;
  return row;
}

Result<std::string> FormatHtmlReport(const ReportInput& input) {
  if (auto good = report::CheckInput(input, true); !good) return tl::unexpected(good.error());
  return report::PlanPage(input).Format();
}

ReportInput ReportOf(const Job& job, const JobPlan& made) {
  ReportInput input;
  input.title = "Energy plan: " + std::filesystem::path(job.profile.source).stem().string();
  input.profile = &job.profile;
  input.pipeline = &made.planner.pipeline();
  input.frontier = &made.planner.frontier();
  input.baseline = &made.planner.baseline();
  input.chosen = &made.plan;
  input.at = PlanTargetText(job.Target());
  input.data_parallel = job.DataParallel();
  input.split_ratio = job.costs.split_ratio;
  input.constraints = made.document.constraints;
  input.notes = made.planner.pipeline().notes;
  ReportRow row = MakeReportRow("at " + input.at, made.plan);
  row.name = "chosen";
  row.chosen = true;
  input.rows.push_back(row);
  if (!made.held || !made.expected || !made.expected_of_paper_plan) return input;
  input.conditions = made.held->conditions;
  input.expected = *made.expected;
  input.expected_of_paper_plan = *made.expected_of_paper_plan;
  input.paper_plan = &made.held->paper_plan;
  input.bound_percent = made.held->bound.saving_percent;
  input.bound_is_proven = made.held->bound.proven;
  for (const ChangePricePoint& point : made.held->price_curve) {
    input.price_curve.emplace_back(point.changes, point.saving_percent);
  }
  return input;
}

}  // namespace v0
}  // namespace perseus
