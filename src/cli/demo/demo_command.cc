// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/demo/demo_command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <numeric>
#include <string>
#include <string_view>
#include <system_error>

#include "cli/commands.h"
#include "cli/demo/demo.h"
#include "cli/framework/table.h"
#include "cli/framework/value_parsers.h"
#include "common/numbers.h"
#include "common/printable.h"
#include "common/signal_hold.h"

namespace perseus::cli {

void AddDemoCommand(CommandParser* parser, Invocation* invocation) {
  parser->AddCommand(
      "demo",
      "Show the whole system at work on this machine, without a GPU.\n\n"
      "Starts a server, an agent on eight simulated GPUs, and a modelled GPT-3 job of 2 pipelines "
      "x "
      "4 stages as eight processes that train with the client library. Measures some iterations "
      "at maximum clocks, then follows the plan; at iteration 10 one pipeline becomes a straggler, "
      "at 20 it is well again. Takes under a minute, and leaves nothing behind.",
      {{"the whole story", "perseus demo"},
       {"a plan that allows for late clocks", "perseus demo --max-changes 16"},
       {"watch it in a browser", "perseus demo --page"},
       {"keep all logs and files", "perseus demo --keep demo/"}});
  DemoFlags* flags = &invocation->demo;
  parser->SetGroup("Options");
  parser->AddValue<int>(
      &flags->iterations, "--iterations", "N",
      "Iterations under the plan (default 30; 40 with --detect; 500 with --page).",
      [](std::string_view text) { return ParseCount(text, 1, 500); });
  parser->AddFlag(&flags->no_straggler, "--no-straggler", "No pipeline becomes slow.");
  parser->AddFlag(&flags->detect, "--detect",
                  "Nobody reports the slow pipeline: the server has to find it. It stays slow "
                  "until iteration 25.");
  parser->AddText(
      "--call-ahead", "none|predicted",
      "When a clock is asked for: as its computation starts (none), or early enough that it is in "
      "effect by then (predicted, the default).",
      [flags](const std::string& text) -> Result<void> {
        flags->ahead = text == "predicted";
        if (flags->ahead || text == "none") return {};
        return InvalidInput(fmt::format("expected none or predicted, got '{}'", text));
      },
      {ValueKind::kChoice, {"none", "predicted"}});
  parser->AddValue<double>(&flags->switch_latency_seconds, "--switch-latency", "TIME",
                           "How long a simulated GPU takes to set a clock (default 15ms).",
                           [](std::string_view text) -> Result<double> {
                             Result<double> seconds = ParseDuration(text);
                             if (!seconds || *seconds <= 1) return seconds;
                             return InvalidInput(fmt::format(
                                 "expected a time from 0 to 1 s, such as 15ms, got '{}'", text));
                           });
  parser->AddValue<int>(&flags->max_changes, "--max-changes", "N",
                        "Make a plan that allows for late clocks, and that changes clocks at most "
                        "N times in an iteration of a pipeline.",
                        [](std::string_view text) { return ParseCount(text, 0, 1000); });
  parser->AddFlag(&flags->page, "--page",
                  "Say where the server's page is, train for 500 iterations unless told otherwise, "
                  "and leave the server open after them, until Ctrl-C.");
  parser->AddText(
      "--keep", "DIR", "Keep logs, store and profile in this new folder.",
      CommandParser::NotEmpty(&flags->keep_directory, "the name of the folder is empty"),
      {ValueKind::kDirectory, {}});
}

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

namespace {

using demo::DemoResult;
using demo::DemoRound;

// Writes the progress of the running demonstration.
class LiveView {
 public:
  explicit LiveView(const Style& style) : style_(style), is_terminal_(isatty(STDOUT_FILENO) == 1) {}

  void Say(const std::string& sentence) { Write(sentence + "\n"); }

  void See(const DemoRound& round) {
    RoundFigures& baseline = baselines_[round.straggler ? 1 : 0];
    if (IsBaseline(round)) baseline.Add(round);
    const std::string line = DemoRow(round, baseline);
    if (!is_terminal_) return Write(line + "\n");
    // The clocks stand below the newest line, and are drawn over.
    Write((drawn_ ? "\r\033[2A\033[J" : "") + line + "\n" + Clocks(round));
    drawn_ = true;
  }

  // After the last round: the clocks go.
  void End() {
    if (drawn_) Write("\r\033[2A\033[J");
  }

 private:
  std::string Clocks(const DemoRound& round) const {
    std::string text;
    for (int pipeline = 0; pipeline < demo::kPipelines; ++pipeline) {
      std::string row = fmt::format("  pipeline {}, MHz:", pipeline);
      for (int stage = 0; stage < demo::kStages; ++stage) {
        const int gpu = pipeline * demo::kStages + stage;
        row += fmt::format(" {:>5}", round.clocks_mhz[static_cast<std::size_t>(gpu)]);
      }
      text += style_.Dim(row) + "\n";
    }
    return text;
  }

  static void Write(const std::string& text) {
    static_cast<void>(WriteStandardOutput(text));  // Who closed it still gets the result's error.
  }

  const Style& style_;
  bool is_terminal_;
  bool drawn_ = false;
  std::array<RoundFigures, 2> baselines_;
};

}  // namespace

Result<Printout> RunDemo(const DemoFlags& flags, const Style& style) {
  demo::DemoSpec spec;
  if (flags.detect && flags.no_straggler) {
    return InvalidInput("--detect has nothing to find with --no-straggler; give one of them");
  }
  constexpr int kWatchedIterations = 500;
  spec.plan.iterations = flags.iterations.value_or(flags.page     ? kWatchedIterations
                                                   : flags.detect ? 40
                                                                  : 30);
  spec.plan.straggler = !flags.no_straggler;
  spec.plan.detect = flags.detect;
  if (flags.detect) spec.plan.straggler_until = 25;
  spec.plan.ahead = flags.ahead;
  spec.switch_latency_seconds = flags.switch_latency_seconds;
  spec.max_changes = flags.max_changes;
  spec.keep_folder = flags.keep_directory;
  std::error_code error;
  spec.program = std::filesystem::read_symlink("/proc/self/exe", error).string();
  if (error) return MakeError(ErrorCode::kIo, "/proc/self/exe: " + error.message());
  // They wait, and are looked for, so that everything that was started can be ended first.
  const StopSignals signals;
  LiveView view(style);
  demo::DemoWatcher watcher{.says = [&](const std::string& sentence) { view.Say(sentence); },
                            .sees = [&](const DemoRound& round) { view.See(round); }};
  const auto summary = [&](const DemoResult& result) {
    return DemoSummary(result) + DemoFindings(result, spec.plan);
  };
  if (flags.page) {
    watcher.stays = [&](const DemoResult& result) {
      view.End();
      view.Say(summary(result) + "\nThe server and its page stay; Ctrl-C ends them.");
    };
  }
  const Result<DemoResult> result = demo::RunDemo(spec, watcher, [&] { return signals.Came(); });
  if (result && flags.page) return std::string();
  view.End();
  if (!result) return tl::unexpected(result.error());
  return summary(*result);
}

}  // namespace perseus::cli
