// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstddef>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "cli/commands.h"
#include "cli/table.h"
#include "demo/demo.h"

namespace perseus::cli {
namespace {

using demo::DemoResult;
using demo::DemoRound;
using demo::Part;

// Signals that ask to end wait, and are looked for, so that everything that was
// started can be ended first.
class EndSignals {
 public:
  EndSignals() {
    sigemptyset(&signals_);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&signals_, signal);
    sigprocmask(SIG_BLOCK, &signals_, &before_);
  }
  EndSignals(const EndSignals&) = delete;
  EndSignals& operator=(const EndSignals&) = delete;
  ~EndSignals() {
    const timespec none = {};
    while (sigtimedwait(&signals_, nullptr, &none) > 0) continue;
    sigprocmask(SIG_SETMASK, &before_, nullptr);
  }
  static bool Came() {
    sigset_t pending;
    sigpending(&pending);
    return sigismember(&pending, SIGINT) == 1 || sigismember(&pending, SIGTERM) == 1 ||
           sigismember(&pending, SIGHUP) == 1;
  }

 private:
  sigset_t signals_ = {};
  sigset_t before_ = {};
};

// Means over rounds.
struct Mean {
  double seconds = 0;
  double joules = 0;
  int count = 0;

  void Add(const DemoRound& round) {
    seconds += round.seconds;
    joules += round.joules;
    ++count;
  }
  double MeanSeconds() const { return count > 0 ? seconds / count : 0; }
  double MeanJoules() const { return count > 0 ? joules / count : 0; }
};

double PercentMore(double value, double than) { return than > 0 ? (value / than - 1) * 100 : 0; }

// What is written while the demonstration runs.
class LiveView {
 public:
  explicit LiveView(const Style& style) : style_(style), is_terminal_(isatty(STDOUT_FILENO) == 1) {}

  void Say(const std::string& sentence) { Write(sentence + "\n"); }

  void See(const DemoRound& round) {
    Mean& baseline = baselines_[round.straggler ? 1 : 0];
    const bool is_baseline =
        round.part == Part::kBaseline || round.part == Part::kBaselineStraggler;
    // The first one begins with cold processes.
    if (is_baseline && round.number > 0) baseline.Add(round);
    std::string line =
        fmt::format("{:<12}{:>4}  {:>7.3f} s", Name(round.part), round.number, round.seconds);
    if (round.part == Part::kPlanned && baseline.count > 0) {
      line += fmt::format(
          " ({:>8})  {:>7.1f} J ({:>8})",
          FormatSignedPercent(PercentMore(round.seconds, baseline.MeanSeconds()), 1), round.joules,
          FormatSignedPercent(PercentMore(round.joules, baseline.MeanJoules()), 1));
      line += fmt::format("  plan {}", round.plan_version);
    } else {
      line += fmt::format("  {:>18.1f} J", round.joules);
    }
    if (round.straggler) line += "  straggler in pipeline 1";
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
  static std::string_view Name(Part part) {
    switch (part) {
      case Part::kBaseline:
      case Part::kBaselineStraggler:
        return "max. clocks";
      case Part::kWaiting:
        return "no plan yet";
      case Part::kPlanned:
      case Part::kOver:
        break;
    }
    return "iteration";
  }

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
  std::array<Mean, 2> baselines_ = {};
};

std::string Summary(const DemoResult& result) {
  std::array<Mean, 2> baseline = {};
  std::array<Mean, 2> planned = {};
  for (const DemoRound& round : result.rounds) {
    const std::size_t which = round.straggler ? 1 : 0;
    if (round.part == Part::kPlanned) {
      planned[which].Add(round);
    } else if (round.part != Part::kWaiting && round.number > 0) {
      baseline[which].Add(round);
    }
  }
  Table table(
      {"", "iterations", "time s", "", "energy J", "saved"},
      {Align::kLeft, Align::kRight, Align::kRight, Align::kRight, Align::kRight, Align::kRight});
  double saved = 0;
  double spent = 0;
  for (std::size_t which = 0; which < 2; ++which) {
    const Mean& before = baseline[which];
    const Mean& after = planned[which];
    if (after.count == 0 || before.count == 0) continue;
    const std::string condition = which == 0 ? "no straggler" : "straggler, +20 %";
    table.AddRow({condition + ": maximum clocks", fmt::format("{}", before.count),
                  fmt::format("{:.4f}", before.MeanSeconds()), "",
                  WithThousands(before.MeanJoules(), 1), ""});
    table.AddRow({condition + ": Perseus", fmt::format("{}", after.count),
                  fmt::format("{:.4f}", after.MeanSeconds()),
                  FormatSignedPercent(PercentMore(after.MeanSeconds(), before.MeanSeconds()), 2),
                  WithThousands(after.MeanJoules(), 1),
                  FormatPercent(-PercentMore(after.MeanJoules(), before.MeanJoules()), 1)});
    spent += before.MeanJoules() * after.count;
    saved += before.MeanJoules() * after.count - after.joules;
  }
  std::uint64_t calls = 0;
  std::uint64_t coalesced = 0;
  std::uint64_t early = 0;
  std::uint64_t on_time = 0;
  std::uint64_t late = 0;
  std::uint64_t missed = 0;
  double latency = 0;
  for (const perseus_client_stats& stats : result.stats) {
    calls += stats.calls;
    coalesced += stats.coalesced;
    early += stats.early;
    on_time += stats.on_time;
    late += stats.late;
    missed += stats.missed;
    latency = std::max(latency, stats.latency_seconds);
  }
  std::string text = "\n" + table.Format("-");
  text += fmt::format(
      "\nSaved       {} J of {} J ({}) in {} iterations; time and energy of one iteration above\n"
      "            are means over both pipelines' {} GPUs, from barrier to barrier.\n",
      WithThousands(saved, 1), WithThousands(spent, 1),
      FormatPercent(spent > 0 ? saved / spent * 100 : 0, 1), planned[0].count + planned[1].count,
      demo::kRanks);
  text += fmt::format(
      "Clocks      {} calls of some {:.1f} ms, {} more overtaken by newer ones; of the planned\n"
      "            changes {} took effect before their computation, {} as it began, {} within it,\n"
      "            {} not at all.\n",
      calls, latency * 1e3, coalesced, early, on_time, late, missed);
  text +=
      "SIMULATED   GPUs, times and joules are modelled (gpt3-1.3b on A100, docs/demo.md); server,\n"
      "            agent, client library, sockets and processes are the real ones.\n";
  return text;
}

// How long the server took to find the straggler, and that it was over.
std::string Findings(const DemoResult& result, const demo::DemoPlan& plan) {
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

}  // namespace

Result<Printout> RunDemo(const DemoFlags& flags, const Style& style) {
  demo::DemoSpec spec;
  if (flags.detect && flags.no_straggler) {
    return InvalidInput("--detect has nothing to find with --no-straggler; give one of them");
  }
  spec.plan.iterations = flags.iterations.value_or(flags.detect ? 40 : 30);
  spec.plan.straggler = !flags.no_straggler;
  spec.plan.detect = flags.detect;
  if (flags.detect) spec.plan.straggler_until = 25;
  spec.plan.ahead = !flags.no_ahead;
  spec.clock_call_ms = flags.clock_latency_ms;
  spec.max_changes = flags.max_changes;
  spec.keep_folder = flags.keep_directory;
  std::error_code error;
  spec.program = std::filesystem::read_symlink("/proc/self/exe", error).string();
  if (error) return MakeError(ErrorCode::kIo, "/proc/self/exe: " + error.message());
  const EndSignals signals;
  LiveView view(style);
  const demo::DemoWatcher watcher{.says = [&](const std::string& sentence) { view.Say(sentence); },
                                  .sees = [&](const DemoRound& round) { view.See(round); }};
  const Result<DemoResult> result = demo::RunDemo(spec, watcher, &EndSignals::Came);
  view.End();
  if (!result) return tl::unexpected(result.error());
  return Summary(*result) + Findings(*result, spec.plan);
}

}  // namespace perseus::cli
