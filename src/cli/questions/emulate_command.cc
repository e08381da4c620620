// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// `perseus emulate`: its options, the run, and what it says.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/commands.h"
#include "cli/framework/command_parser.h"
#include "cli/framework/table.h"
#include "cli/framework/terminal.h"
#include "cli/framework/value_parsers.h"
#include "cli/planning/job.h"
#include "cli/planning/summary.h"
#include "common/file.h"
#include "common/input_limits.h"
#include "common/numbers.h"
#include "emulate/straggler_text.h"
#include "job/job_fields.h"
#include "model/plan_figures.h"
#include "perseus/costed_pipeline.h"
#include "perseus/effort.h"
#include "perseus/emulator.h"
#include "perseus/note.h"
#include "perseus/plan.h"
#include "perseus/plan_document.h"
#include "perseus/plan_file.h"
#include "perseus/planner.h"
#include "perseus/policy.h"
#include "perseus/profile.h"
#include "perseus/report.h"
#include "perseus/result.h"
#include "perseus/work.h"
#include "plan/named_times.h"

namespace perseus::cli {
namespace {

constexpr std::string_view kMaxClocks = "max-clocks";
constexpr std::string_view kPerseus = "perseus";

// The answer of `perseus emulate`: what its report says, and what only the terminal shows.
struct EmulationSummary : EmulationReportInput {
  int virtual_stages = 1;
  double split_ratio = 0.5;
  std::string target;             // Where the target comes from: "--at 1.0x".
  std::string change_price_name;  // The flag or key that states change_joules.
  double usual_effort = 0;        // Of its plans, where none was asked for; 0: none is made.
  std::string output_directory;
};

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
      CountOf(summary.spec->pipelines, "pipeline"),
      CountOf(static_cast<long long>(summary.pipeline->dag.num_ranks) *
                  summary.pipeline->tensor_parallel,
              "GPU"),
      CountOf(summary.emulation->gpus, "GPU"), CountOf(summary.spec->iterations, "iteration"),
      summary.label, FormatSeconds(summary.spec->target_seconds), summary.target, effort);
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

std::string PriceOfChangesSentence(const EmulationSummary& summary) {
  const auto called = [](const Emulation& emulation) {
    return CalledRun{static_cast<double>(emulation.clock_calls), emulation.energy.total_joules()};
  };
  return PriceOfChangesText(summary.change_joules, summary.change_price_name,
                            called(*summary.baseline), called(*summary.emulation), "");
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
                            summary.spec->pipelines * summary.spec->iterations;
  out += Fact("Clocks",
              fmt::format("{}; {} of the {} began at another clock than planned.",
                          CountOf(after.clock_calls, "clock call"),
                          FormatPercent(100 * static_cast<double>(after.late_computations) /
                                            static_cast<double>(computations),
                                        2),
                          CountOf(computations, "computation")),
              style);
  if (summary.change_joules > 0) out += Fact("Price", PriceOfChangesSentence(summary), style);
  if (HasStragglers(*summary.spec)) {
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
  for (const PolicyRow& row : summary.policies) {
    const auto share = [&](double joules) {
      const double all = row.energy.total_joules();
      return FormatPercent(all == 0 ? 0 : 100 * joules / all, 1);
    };
    table.AddRow({row.policy, WithThousands(row.time_seconds, 2),
                  FormatSignedPercent(row.slowdown_percent, 2), energy(row.energy.total_joules()),
                  FormatPercent(row.saving_percent, 2), share(row.energy.intrinsic_bloat_joules),
                  share(row.energy.extrinsic_bloat_joules), share(row.energy.blocking_joules),
                  power(row.peak_watts)});
  }
  return table.Format(style.rule());
}

std::string NextSteps(const EmulationSummary& summary) {
  if (!summary.output_directory.empty()) {
    return fmt::format(
        "open {0}/report.html in a browser and {0}/timeline.pftrace in ui.perfetto.dev.",
        summary.output_directory);
  }
  return "-o DIR writes this run, its power over time and a timeline.";
}

std::string EmulatedFigures(const EmulationSummary& summary, const Style& style) {
  std::string out = "\n" + FiguresTable(summary, style) + "\n" + SplitTable(summary, style) + "\n";
  out += Wrap(
             "Within-pipeline waste (intrinsic bloat): of computations that are faster than their "
             "pipeline "
             "needs. Cross-pipeline waste (extrinsic bloat): of pipelines that are faster than the "
             "slowest one. Blocking: "
             "energy of GPUs that wait. Useful: the rest.",
             style.columns, 0) +
         "\n\n";
  out += Facts(summary, style);
  if (summary.policies.size() > 2) out += "\n" + ComparisonTable(summary, style);
  return out;
}

std::string FormatEmulationSummary(const EmulationSummary& summary, const Style& style) {
  std::string out = FormatInput(*summary.profile, *summary.pipeline, summary.virtual_stages,
                                summary.split_ratio, style);
  out += Fact("Job", JobInWords(summary), style);
  out += Fact("Scenario", summary.scenario, style);
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

// A plan knows how long its microbatches are; the job that replays it may say otherwise.
void NoteOtherWork(const std::string& path, const PlanDocument& plan,
                   const CostedPipeline& pipeline, std::vector<std::string>* notes) {
  constexpr double kRounding = 1e-9;
  const Work work = WorkOf(plan);
  bool same = true;
  bool alike = true;
  for (int i = 0; i < pipeline.dag.size(); ++i) {
    const Computation& each = pipeline.dag.computations[i];
    const CostTable& table = pipeline.TableOf(i);
    const auto differs = [&](double factor, double replayed) {
      alike = alike && replayed == 1;
      return std::abs(factor - replayed) > kRounding * replayed;
    };
    if (differs(work.FactorOf(each.id), table.work)) same = false;
    if (each.fused && differs(work.FactorOf(*each.fused), table.fused_work)) same = false;
  }
  if (same) return;
  const std::string name = std::filesystem::path(path).filename().string();
  if (alike) {
    notes->push_back(fmt::format(
        "{} was made for microbatches that differ, and is replayed as if they were alike; give the "
        "work table that it was made with (--work).",
        name));
  } else {
    notes->push_back(fmt::format(
        "{} was made for {}: its clocks are replayed with the work of "
        "this job.",
        name, work.empty() ? "microbatches that are alike" : "microbatches of other lengths"));
  }
}

Result<std::unique_ptr<Policy>> ReadPolicy(std::string_view flag, const std::string& path,
                                           const Planner& planner, const Profile& profile,
                                           std::optional<Conditions>* conditions,
                                           std::vector<std::string>* notes) {
  if (path == kMaxClocks) return MakeSinglePlanPolicy(kMaxClocks, planner.baseline());
  if (path.ends_with(".json")) {
    const Result<PlanDocument> plan = ReadPlan(path);
    if (!plan) return tl::unexpected(plan.error());
    *conditions = plan->conditions;
    Result<std::unique_ptr<Policy>> policy = MakePolicyFromPlan(*plan, planner);
    if (!policy && policy.error().message.find(path) == std::string::npos) {
      policy.error().message = fmt::format("{}: {}", path, policy.error().message);
    }
    if (policy && plan->profile_sha256 != profile.sha256) {
      notes->push_back(
          fmt::format("{} was made from another profile ({}): its clocks are replayed at the times "
                      "and energies "
                      "of {}.",
                      std::filesystem::path(path).filename().string(), plan->profile_source,
                      std::filesystem::path(profile.source).filename().string()));
    }
    if (policy) NoteOtherWork(path, *plan, planner.pipeline(), notes);
    return policy;
  }
  if (!path.ends_with(".py")) {
    return InvalidInput(
        fmt::format("{}: expected a plan.json, or a Python plan of Zeus or lowtime (.py), got '{}'",
                    flag, path));
  }
  const Result<std::string> text = ReadWholeFile(path, kMaxZeusPlanFileBytes);
  if (!text) return tl::unexpected(text.error());
  return MakePolicyFromZeusPlan(*text, path, planner);
}

// For people: "perseus (phase)".
std::string LabelOf(const PlanConstraints& constraints) {
  if (constraints.granularity == Granularity::kComputation) return std::string(kPerseus);
  return fmt::format("{} ({})", kPerseus, GranularityName(constraints.granularity));
}

PolicyRow MakeRow(std::string label, const Emulation& emulation, const Emulation& baseline) {
  PolicyRow row;
  row.policy = std::move(label);
  row.time_seconds = emulation.time_seconds;
  row.energy = emulation.energy;
  row.slowdown_percent = PercentOver(emulation.time_seconds, baseline.time_seconds);
  row.saving_percent =
      PercentSaved(emulation.energy.total_joules(), baseline.energy.total_joules());
  row.average_watts = emulation.average_watts;
  row.peak_watts = emulation.peak_watts;
  return row;
}

// The flag of the first constraint that is given; "": none.
std::string_view ConstraintIn(const JobFile& given) {
  for (const model::Constraint& constraint : model::Constraints()) {
    const job::Field& field = *job::FindField(constraint.field);
    if (job::IsSet(field, given)) return field.flag;
  }
  return "";
}

Result<void> CheckFlags(const Invocation& invocation) {
  const EmulateFlags& flags = invocation.emulate;
  const JobFile& given = invocation.job.overrides;
  // A job file's hold for the plan that it makes.
  const std::string_view robust = given.max_slowdown  ? "--max-slowdown"
                                  : given.confidence  ? "--set confidence"
                                  : given.max_changes ? "--max-changes"
                                                      : "";
  if (!flags.plan_file.empty()) {
    const std::string_view constraint = ConstraintIn(given);
    const std::string_view for_making = constraint.empty() ? robust : constraint;
    if (!for_making.empty()) {
      return InvalidInput(
          fmt::format("{} is for making plans, and --plan replays one that was made; leave it out",
                      for_making));
    }
  }
  return {};
}

// Finds bad stragglers before the frontier is computed.
Result<void> CheckStragglers(const EmulationSpec& spec, const CostedPipeline& pipeline) {
  const PipelineDag& dag = pipeline.dag;
  if (spec.random_stragglers.share_of_gpus_per_day > 0) {
    const RandomStragglers& random = spec.random_stragglers;
    if (auto good = emulate::CheckLimit(pipeline, random.kind, random.value); !good) {
      return good;
    }
  }
  for (const Straggler& each : spec.stragglers) {
    if (auto good = emulate::CheckLimit(pipeline, each.kind, each.value); !good) return good;
    const std::string what =
        fmt::format("--straggler {}={}", StragglerKindName(each.kind), each.value);
    if (each.pipeline >= spec.pipelines) {
      return InvalidInput(
          fmt::format("{}: there is no pipeline {}; the job has {} (--dp), counted "
                      "from 0",
                      what, each.pipeline, CountOf(spec.pipelines, "pipeline")));
    }
    if (each.rank.value_or(0) >= dag.num_ranks) {
      return InvalidInput(fmt::format("{}: there is no rank {}; a pipeline has {}, counted from 0",
                                      what, *each.rank, CountOf(dag.num_ranks, "rank")));
    }
    if (each.first_iteration >= spec.iterations) {
      return InvalidInput(fmt::format(
          "{}: it comes in iteration {}, but only {} emulated, counted from 0 (--iterations)", what,
          each.first_iteration,
          spec.iterations == 1 ? "1 is" : fmt::format("{} are", spec.iterations)));
    }
  }
  return {};
}

void SetConditions(const Conditions& conditions, EmulationSpec* spec) {
  spec->noise = conditions.noise;
  spec->switching = conditions.switching;
}

// A scenario is one job, and a range is of jobs that may be.
void NoteMiddle(const Conditions& conditions, std::vector<std::string>* remarks) {
  if (!conditions.ranges.any()) return;
  remarks->push_back(
      "of conditions that are ranges, the middle is emulated; give one value for another.");
}

// Without the target, for which a policy may be needed.
EmulationSpec MakeSpec(const EmulateFlags& flags, const Job& job) {
  EmulationSpec spec = flags.spec;
  SetConditions(ConditionsOf(job.settings), &spec);
  spec.pipelines = job.DataParallel();
  spec.iterations = flags.iterations;
  spec.power_interval_seconds = flags.power_interval_seconds;
  return spec;
}

std::vector<std::string> OutputNames() {
  return {"emulation.json", "iterations.csv", "power.csv", std::string(kTraceFileName),
          "report.html"};
}

Result<void> WriteOutputs(EmulationSummary* summary) {
  summary->files = OutputNames();
  EmulationReportInput page = *summary;
  if (summary->change_joules > 0) page.remarks.push_back(PriceOfChangesSentence(*summary));
  std::vector<OutputFile> files;
  const auto add = [&files](std::string_view name, Result<std::string> bytes) -> Result<void> {
    if (!bytes) return tl::unexpected(bytes.error());
    files.push_back({std::string(name), *std::move(bytes)});
    return {};
  };
  if (auto good = add("emulation.json", FormatEmulationJson(*summary)); !good) return good;
  files.push_back({"iterations.csv", FormatIterationsCsv(*summary->emulation)});
  files.push_back({"power.csv", FormatPowerCsv(*summary->emulation)});
  if (auto good = add(kTraceFileName, FormatEmulationTimelineTrace(*summary)); !good) return good;
  if (auto good = add("report.html", FormatEmulationHtml(page)); !good) return good;
  return WriteFilesAtomically(summary->output_directory, files);
}

// Noise and late clocks as flags are a scenario for any plan; whose job is planned under
// conditions, or who says what may be given up for what, wants the robust plan.
bool AsksForMakeRobustPlan(const JobFile& settings) {
  const bool is_of_the_job =
      std::any_of(settings.places.begin(), settings.places.end(), [](const auto& place) {
        const job::Field* const field = job::FindField(place.first);
        return field != nullptr && field->condition();
      });
  return is_of_the_job || settings.max_slowdown || settings.max_changes || settings.confidence ||
         settings.change_price_joules;
}

// The policy that the user wants, under its names in `summary`.
Result<std::unique_ptr<Policy>> ChoosePolicy(const Invocation& invocation, const Job& job,
                                             const Planner& planner, double effort,
                                             ProgressLine* progress, EmulationSpec* spec,
                                             EmulationSummary* summary) {
  const std::string& file = invocation.emulate.plan_file;
  if (file.empty() && AsksForMakeRobustPlan(job.settings)) {
    const Result<double> seconds = planner.TargetSeconds(job.Target());
    if (!seconds) return tl::unexpected(seconds.error());
    Result<RobustPlan> robust = SearchThatHolds(job, planner, *seconds, effort, false, progress);
    if (!robust) return tl::unexpected(robust.error());
    summary->policy = kPerseus;
    summary->label = "perseus (holds)";
    return MakeSinglePlanPolicy(kPerseus, std::move(robust->plan));
  }
  std::optional<Conditions> conditions;
  Result<std::unique_ptr<Policy>> policy =
      file.empty()
          ? MakePlanningPolicy(planner, job.Constraints(), effort)
          : ReadPolicy("--plan", file, planner, job.profile, &conditions, &summary->remarks);
  if (!policy) return policy;
  if (conditions) {
    // The plan's, unless a flag says otherwise.
    ApplyConditions(Overrides(invocation.job), &*conditions);
    const ClockSwitching& switching = conditions->switching;
    if (switching.latency_spread_seconds > switching.latency_seconds) {
      const bool is_given = invocation.job.overrides.switch_latency_spread_seconds.has_value();
      return InvalidInput(fmt::format(
          fmt::runtime(is_given
                           ? "--set switch_latency_spread is {1:g} s, more than the latency of "
                             "{0:g} s that it is the spread of, after the plan's conditions"
                           : "--switch-latency is {0:g} s, less than its spread in the plan's "
                             "conditions, {1:g} s; give --set switch_latency_spread, too"),
          switching.latency_seconds, switching.latency_spread_seconds));
    }
    SetConditions(*conditions, spec);
    NoteMiddle(*conditions, &summary->remarks);
    summary->change_joules = conditions->change_joules;
    if (!invocation.job.overrides.change_price_joules) {
      summary->change_price_name = "change_price_j of the plan";
    }
  }
  summary->policy = (*policy)->name();
  summary->label =
      file.empty() ? LabelOf(job.Constraints()) : std::filesystem::path(file).filename().string();
  return policy;
}

// A plan from a file is its own target, unless another one is given.
Result<void> SetTarget(const Job& job, const Planner& planner, bool is_replay, double effort,
                       const Policy& policy, EmulationSpec* spec, EmulationSummary* summary) {
  if (is_replay && !job.settings.at) {
    const Result<Plan> plan = policy.PlanFor(planner.baseline().iteration_time_seconds);
    if (!plan) return tl::unexpected(plan.error());
    spec->target_seconds = plan->iteration_time_seconds;
    summary->target = "the plan's own time";
    return {};
  }
  const PlanTarget target = job.Target();
  Result<double> seconds = planner.TargetSeconds(target);
  if (!seconds) return tl::unexpected(seconds.error());
  if (target.kind == PlanTarget::Kind::kMinEnergy && summary->policy == kPerseus) {
    // The frontier's least energy is there, but that of plans may be at another time.
    const Result<Plan> least =
        plan::PlanAmongNamed(planner, *seconds, job.Constraints(), effort, {}, true);
    if (!least) return tl::unexpected(least.error());
    seconds = least->requested_time_seconds;
  }
  spec->target_seconds = *seconds;
  summary->target = "--at " + PlanTargetText(target);
  summary->notes = job.NotesAt(planner.frontier(), *seconds);
  return {};
}

// Maximum clocks, what was emulated, and the plans beside it, in the same scenario.
Result<std::vector<PolicyRow>> Rows(const std::vector<std::string>& files, const Job& job,
                                    const Planner& planner, ProgressLine* progress,
                                    EmulationSummary* summary) {
  std::vector<PolicyRow> rows = {
      MakeRow(std::string(kMaxClocks), *summary->baseline, *summary->baseline)};
  if (summary->policy != kMaxClocks) {
    rows.push_back(MakeRow(summary->label, *summary->emulation, *summary->baseline));
  }
  for (const std::string& file : files) {
    std::optional<Conditions> ignored;
    const auto policy =
        ReadPolicy("--compare", file, planner, job.profile, &ignored, &summary->remarks);
    if (!policy) return tl::unexpected(policy.error());
    progress->SetWhat(file);
    const Result<Emulation> emulation =
        Emulate(planner, **policy, *summary->spec, progress->Function());
    if (!emulation) return tl::unexpected(emulation.error());
    rows.push_back(MakeRow(file, *emulation, *summary->baseline));
  }
  return rows;
}

// More than one straggler a GPU and day is asked for as a percentage only.
constexpr double kMostStragglerShare = 1;

void AddJobOptions(CommandParser* parser, EmulateFlags* flags) {
  parser->SetGroup("Job");
  parser->AddValue<std::int64_t>(
      &flags->iterations, "--iterations", "N", "Iterations to simulate (default 100).",
      [](std::string_view text) { return ParseLongCount(text, 1, kMaxIterations); });
  parser->AddValue<std::uint64_t>(&flags->spec.seed, "--seed", "N",
                                  "Seed of all random numbers (default 0).", ParseSeed);
  parser->AddText(
      "--plan", "FILE|max-clocks",
      "Follow this plan, instead of making the one of 'perseus plan': a plan.json, or "
      "a Python plan of Zeus or "
      "lowtime (.py); or all clocks at maximum. Without --at, the plan's own time is the target.",
      CommandParser::NotEmpty(&flags->plan_file, "the name of the file is empty"),
      {ValueKind::kFile, {}});
  parser->AddRepeated(
      "--compare", "FILE",
      "Show what this plan would come to under the same conditions, too, whoever "
      "made it: a plan.json or a Python plan. May be given several times.",
      CommandParser::AppendedTo(&flags->compared_plans, "the name of the file is empty"));
}

Result<void> ReadRandomStragglers(const std::string& text, EmulationSpec* spec) {
  RandomStragglers random;
  bool is_first = true;
  for (std::string_view rest = text;;) {
    const std::size_t comma = rest.find(',');
    const std::string_view part = Trimmed(rest.substr(0, comma));
    if (is_first) {
      const Result<double> share = ParseShare(part, kMostStragglerShare);
      if (!share) return tl::unexpected(share.error());
      random.share_of_gpus_per_day = *share;
    } else if (part.starts_with("for=")) {
      const Result<double> seconds = ParseLongDuration(part.substr(4));
      if (!seconds) return tl::unexpected(seconds.error());
      random.duration_seconds = *seconds;
    } else {
      const Result<Straggler> kind = emulate::ParseStraggler(part);
      if (!kind) return tl::unexpected(kind.error());
      random.kind = kind->kind;
      random.value = kind->value;
    }
    is_first = false;
    if (comma == std::string_view::npos) break;
    rest.remove_prefix(comma + 1);
  }
  spec->random_stragglers = random;
  return {};
}

Result<void> ReadReaction(const std::string& text, EmulationSpec* spec) {
  spec->control.reacts = text != "never";
  if (!spec->control.reacts) return {};
  const Result<double> seconds = ParseLongDuration(text);
  if (!seconds) return tl::unexpected(seconds.error());
  spec->control.delay_seconds = *seconds;
  return {};
}

void AddStragglerOptions(CommandParser* parser, EmulateFlags* flags) {
  parser->AddRepeated(
      "--straggler", "KIND=X[,KEY=N...]",
      "Make one pipeline slow: slow=1.2 (its computations take 1.2 times as long), clock=1100MHz "
      "(no clock above this), power=250W (no GPU draws more) or stall=500ms (its first computation "
      "starts this much later). Then say where and when: pipeline=N (default 0), rank=N (default "
      "all), from=N (first iteration, default 0), for=N (number of iterations, default to the "
      "end). May be given several times.",
      [flags](const std::string& text) -> Result<void> {
        const Result<Straggler> straggler = emulate::ParseStraggler(text);
        if (!straggler) return tl::unexpected(straggler.error());
        flags->spec.stragglers.push_back(*straggler);
        return {};
      });
  parser->AddText(
      "--straggler-rate", "P%[,KIND=X][,for=TIME]",
      "Share of the GPUs that become slow in a day, at random: 5%. How they are slow (as "
      "--straggler, default slow=1.2) and how long (90s, 15min, default 1h): "
      "5%,clock=1100,for=15min.",
      [flags](const std::string& text) { return ReadRandomStragglers(text, &flags->spec); }, {});
  parser->AddText("--reaction-delay", "TIME|never",
                  "How long the other pipelines wait for new plans after a straggler appears or "
                  "recovers: 2s (default 0); or never: they keep their plans.",
                  [flags](const std::string& text) { return ReadReaction(text, &flags->spec); },
                  {});
}

void AddOutputOptions(CommandParser* parser, EmulateFlags* flags) {
  parser->SetGroup("Output");
  parser->AddValue<double>(&flags->power_interval_seconds, "--power-interval", "TIME",
                           "Interval over which power is averaged, in power.csv and for the peak "
                           "(default: a hundredth of an iteration).",
                           ParseDuration);
  parser->AddOutput(&flags->output_directory, ValueKind::kDirectory,
                    "Write emulation.json, iterations.csv, power.csv, timeline.pftrace and "
                    "report.html into this folder. After an error, none of them is written.");
  parser->AddFlag(&flags->json, "--json", "Print one JSON document instead of text.");
}

}  // namespace

Result<Printout> RunEmulate(const Invocation& invocation, const Style& style) {
  const EmulateFlags& flags = invocation.emulate;
  if (auto good = CheckFlags(invocation); !good) return tl::unexpected(good.error());
  Result<JobFile> settings = MergeSettings(invocation.job);
  if (!settings) return tl::unexpected(settings.error());
  const bool is_replay = !flags.plan_file.empty() && flags.plan_file != kMaxClocks;
  if (auto good = CheckPairs(*settings, is_replay, false); !good) {
    return tl::unexpected(good.error());
  }
  if (!flags.output_directory.empty()) {
    std::vector<InputFile> inputs = InputsOf(invocation.job, *settings);
    if (is_replay) inputs.push_back({"the plan", flags.plan_file});
    for (const std::string& file : flags.compared_plans) inputs.push_back({"the plan", file});
    const auto good = CheckOutputFiles(flags.output_directory, OutputNames(), inputs);
    if (!good) return tl::unexpected(good.error());
  }
  const Result<Job> job = LoadBelievableJob(invocation.job, *std::move(settings), "emulate");
  if (!job) return tl::unexpected(job.error());
  EmulationSummary summary;
  EmulationSpec spec = MakeSpec(flags, *job);
  summary.spec = &spec;
  summary.change_joules = ConditionsOf(job->settings).change_joules;
  summary.change_price_name = NameOf(job->settings, "change_price");
  if (auto good = CheckStragglers(spec, job->pipeline); !good) {
    return tl::unexpected(good.error());
  }
  const double effort = job->Effort(kTableEffort);
  ProgressLine progress("frontier");
  const Result<Planner> planner = MakePlanner(*job, effort, &progress);
  if (!planner) return tl::unexpected(planner.error());

  summary.profile = &job->profile;
  summary.pipeline = &planner->pipeline();
  summary.virtual_stages = job->virtual_stages;
  summary.split_ratio = job->costs.split_ratio;
  summary.notes = job->notes;
  summary.remarks = PipelineRemarks(planner->pipeline(), job->virtual_stages);
  if (!is_replay) NoteMiddle(ConditionsOf(job->settings), &summary.remarks);
  const auto policy = ChoosePolicy(invocation, *job, *planner, effort, &progress, &spec, &summary);
  if (!policy) return tl::unexpected(policy.error());
  if (summary.policy == kPerseus && !job->settings.effort) summary.usual_effort = kTableEffort;
  if (auto set = SetTarget(*job, *planner, is_replay, effort, **policy, &spec, &summary); !set) {
    return tl::unexpected(set.error());
  }

  summary.title = "Emulated job: " + std::filesystem::path(job->profile.source).stem().string();
  summary.scenario = ScenarioInWords(spec);
  const std::unique_ptr<Policy> max_clocks = MakeSinglePlanPolicy(kMaxClocks, planner->baseline());
  const auto run = [&](std::string_view what, const Policy& chosen) {
    progress.SetWhat(std::string(what));
    return Emulate(*planner, chosen, spec, progress.Function());
  };
  const Result<Emulation> baseline = run(kMaxClocks, *max_clocks);
  if (!baseline) return tl::unexpected(baseline.error());
  const Result<Emulation> emulation =
      summary.policy == kMaxClocks ? baseline : run(summary.label, **policy);
  if (!emulation) return tl::unexpected(emulation.error());
  summary.baseline = &*baseline;
  summary.emulation = &*emulation;
  Result<std::vector<PolicyRow>> rows =
      Rows(flags.compared_plans, *job, *planner, &progress, &summary);
  if (!rows) return tl::unexpected(rows.error());
  summary.policies = *std::move(rows);
  summary.output_directory = flags.output_directory;
  if (!flags.output_directory.empty()) {
    if (auto written = WriteOutputs(&summary); !written) {
      return tl::unexpected(written.error());
    }
  }
  if (!flags.json) {
    return Printout(FormatEmulationSummary(summary, style), flags.output_directory);
  }
  Result<std::string> json = FormatEmulationJson(summary);
  if (!json) return tl::unexpected(json.error());
  return Printout(*std::move(json), flags.output_directory);
}

void AddEmulateCommand(CommandParser* parser, Invocation* invocation) {
  EmulateFlags* flags = &invocation->emulate;
  parser->AddCommand(
      "emulate",
      "Simulate a whole job with a plan: its time, energy and power.\n\nSimulates all pipelines of "
      "the job for many iterations, with a plan or with the one that 'perseus plan' makes. Noise, "
      "late clocks and stragglers "
      "come in if you ask for them. The figures are compared with those at maximum clocks under "
      "the same conditions. The same arguments give the same numbers. Without -o no file is "
      "written.",
      {{"16 pipelines with a straggler from iteration 20 on",
        "perseus emulate profile.csv --schedule 1f1b --microbatches 96 --blocking-power 83.64 "
        "--dp 16 --straggler slow=1.2,from=20"},
       {"one plan against another, with noise and late clocks",
        "perseus emulate job.toml --plan one/plan.json --compare other/plan.json --noise 1% "
        "--switch-latency 15ms"},
       {"random stragglers, with report and timeline",
        "perseus emulate job.toml --iterations 1000 --straggler-rate 5% --reaction-delay 2s -o "
        "emulation/"}});
  AddPipelineOptions(parser, &invocation->job, "Data-parallel pipelines of the job (default 1).");
  AddPlanOptions(
      parser, &invocation->job,
      fmt::format("How much work to search for each plan (default {}); see 'perseus plan --help'.",
                  kTableEffort));
  AddSolverOptions(parser, &invocation->job);
  AddJobOptions(parser, flags);
  parser->SetGroup("Disturbances");
  AddConditionOptions(parser, &invocation->job);
  AddRobustOptions(parser, &invocation->job);
  AddStragglerOptions(parser, flags);
  AddOutputOptions(parser, flags);
  parser->SetCommon({"--schedule", "--microbatches", "--blocking-power", "--dp", "--at", "--plan",
                     "--iterations", "--noise", "--switch-latency", "--straggler", "--output",
                     "--json"});
}

}  // namespace perseus::cli
