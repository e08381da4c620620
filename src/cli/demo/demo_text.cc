// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/demo/demo_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string_view>

#include "cli/framework/table.h"
#include "common/median.h"
#include "common/printable.h"

namespace perseus::cli {
namespace {

using demo::DemoResult;
using demo::DemoRound;
using demo::Part;

double PercentMore(double value, double than) { return than > 0 ? (value / than - 1) * 100 : 0; }

double MedianOfCopy(std::vector<double> values) { return MedianOf(values); }

std::string_view NameOfRow(const DemoRound& round) {
  switch (round.part) {
    case Part::kBaseline:
    case Part::kBaselineStraggler:
      return "max. clocks";
    case Part::kWaiting:
      return round.ranks_with_plan > 0 ? "plan comes" : "no plan yet";
    case Part::kPlanned:
    case Part::kOver:
      break;
  }
  return "iteration";
}

}  // namespace

void RoundFigures::Add(const DemoRound& round) {
  seconds_.push_back(round.seconds);
  joules_.push_back(round.joules);
}

double RoundFigures::Seconds() const { return MedianOfCopy(seconds_); }
double RoundFigures::Joules() const { return MedianOfCopy(joules_); }
double RoundFigures::TotalJoules() const {
  return std::accumulate(joules_.begin(), joules_.end(), 0.0);
}
int RoundFigures::Disturbed() const {
  constexpr double kLonger = 1.02;
  if (seconds_.empty()) return 0;
  const double most = kLonger * *std::min_element(seconds_.begin(), seconds_.end());
  return static_cast<int>(
      std::count_if(seconds_.begin(), seconds_.end(), [most](double each) { return each > most; }));
}
double RoundFigures::MeanSeconds() const {
  return std::accumulate(seconds_.begin(), seconds_.end(), 0.0) / std::max(count(), 1);
}

bool IsBaseline(const DemoRound& round) {
  return (round.part == Part::kBaseline || round.part == Part::kBaselineStraggler) &&
         round.number > 0;
}

std::string DemoRow(const DemoRound& round, const RoundFigures& baseline) {
  std::string line =
      fmt::format("{:<12}{:>4}  {:>7.3f} s", NameOfRow(round), round.number, round.seconds);
  if (round.part == Part::kPlanned && baseline.count() > 0) {
    line += fmt::format(" ({:>8})  {:>7.1f} J ({:>8})",
                        FormatSignedPercent(PercentMore(round.seconds, baseline.Seconds()), 1),
                        round.joules,
                        FormatSignedPercent(PercentMore(round.joules, baseline.Joules()), 1));
    line += fmt::format("  plan {}", round.plan_version);
  } else {
    line += fmt::format("  {:>18.1f} J", round.joules);
  }
  // Each rank follows the plan as soon as it has it.
  if (round.part == Part::kWaiting && round.ranks_with_plan > 0) {
    line += fmt::format("{:11}  plan {} on {} of {} ranks", "", round.plan_version,
                        round.ranks_with_plan, demo::kRanks);
  }
  if (round.straggler) line += "  straggler in pipeline 1";
  return line;
}

std::string DemoSummary(const DemoResult& result) {
  std::array<RoundFigures, 2> baseline;
  std::array<RoundFigures, 2> planned;
  for (const DemoRound& round : result.rounds) {
    const std::size_t which = round.straggler ? 1 : 0;
    if (round.part == Part::kPlanned) {
      planned[which].Add(round);
    } else if (IsBaseline(round)) {
      baseline[which].Add(round);
    }
  }
  Table table(
      {"", "iterations", "median s", "slowdown", "median J", "saving"},
      {Align::kLeft, Align::kRight, Align::kRight, Align::kRight, Align::kRight, Align::kRight});
  constexpr int kMostDisturbed = 4;  // One in so many. A new plan comes late in fewer.
  int rounds = 0;
  int disturbed = 0;
  double saved = 0;
  double spent = 0;
  std::string means;
  for (std::size_t which = 0; which < 2; ++which) {
    const RoundFigures& before = baseline[which];
    const RoundFigures& after = planned[which];
    if (after.count() == 0 || before.count() == 0) continue;
    rounds += before.count() + after.count();
    disturbed += before.Disturbed() + after.Disturbed();
    const std::string condition = which == 0 ? "no straggler" : "straggler, +20 %";
    table.AddRow({condition + ": maximum clocks", fmt::format("{}", before.count()),
                  fmt::format("{:.4f}", before.Seconds()), "", WithThousands(before.Joules(), 1),
                  ""});
    table.AddRow({condition + ": Perseus", fmt::format("{}", after.count()),
                  fmt::format("{:.4f}", after.Seconds()),
                  FormatSignedPercent(PercentMore(after.Seconds(), before.Seconds()), 2),
                  WithThousands(after.Joules(), 1),
                  FormatPercent(-PercentMore(after.Joules(), before.Joules()), 1)});
    spent += before.Joules() * after.count();
    saved += before.Joules() * after.count() - after.TotalJoules();
    means += fmt::format("{}{} {}", means.empty() ? "" : ", ",
                         FormatSignedPercent(PercentMore(after.MeanSeconds(), before.Seconds()), 2),
                         which == 0 ? "without a straggler" : "with one");
  }
  std::uint64_t calls = 0;
  std::uint64_t early = 0;
  std::uint64_t on_time = 0;
  std::uint64_t late = 0;
  std::uint64_t missed = 0;
  double latency = 0;
  for (const perseus_client_stats& stats : result.stats) {
    calls += stats.calls;
    early += stats.early;
    on_time += stats.on_time;
    late += stats.late;
    missed += stats.missed;
    latency = std::max(latency, stats.latency_seconds);
  }
  std::string text = "\n" + table.Format("-");
  text += "\n";
  if (kMostDisturbed * disturbed > rounds) {
    text += fmt::format(
        "BUSY        Do not trust these figures: {} of {} iterations took over 2 % longer than "
        "the\n"
        "            shortest of their kind. This machine had other work; run the demo again when\n"
        "            it is idle.\n",
        disturbed, rounds);
  }
  text += fmt::format(
      "Saved       {} J of {} J ({}) in all {} iterations with a plan, against the median\n"
      "            at maximum clocks. Figures are of both pipelines, {} GPUs.\n"
      "Mean time   {}, also counting iterations\n"
      "            in which a new plan was still on its way.\n",
      WithThousands(saved, 1), WithThousands(spent, 1),
      FormatPercent(spent > 0 ? saved / spent * 100 : 0, 1),
      planned[0].count() + planned[1].count(), demo::kRanks, means);
  text += fmt::format(
      "Clocks      {} calls set a clock, in about {:.1f} ms each. Of the planned changes, {} were "
      "in\n"
      "            effect when their computation began, {} came while it ran, {} not at all.\n",
      calls, latency * 1e3, early + on_time, late, missed);
  text +=
      "SIMULATED   GPUs, times and joules are modelled (GPT-3 1.3B on A100). Server, agent, "
      "client\n"
      "            library, sockets and processes are real.\n";
  return text;
}

std::string DemoFindings(const DemoResult& result, const demo::DemoPlan& plan) {
  if (!plan.detect) return "";
  std::string text = "Detection  ";
  const auto last_of = [&](std::string_view kind) {
    int last = -1;
    for (const demo::DemoFinding& finding : result.findings) {
      if (finding.kind == kind) last = std::max(last, finding.iteration);
    }
    return last;
  };
  const int found = last_of("straggler");
  const int over = last_of("recovered");
  text += found < 0 ? " found nothing"
                    : fmt::format(" knew all slow ranks after {} slow iterations",
                                  found - plan.straggler_from + 1);
  if (over >= 0) {
    text += fmt::format(", and that they are well {} iterations after the last slow one",
                        over - plan.straggler_until + 1);
  }
  text += ":\n";
  for (const demo::DemoFinding& finding : result.findings) {
    text += fmt::format("            {:>3}  {}\n", finding.iteration, Printable(finding.sentence));
  }
  return text;
}

}  // namespace perseus::cli
