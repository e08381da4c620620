// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <filesystem>
#include <string>
#include <system_error>

#include "cli/commands.h"
#include "cli/demo/demo.h"
#include "cli/demo/demo_text.h"
#include "cli/framework/table.h"
#include "common/signal_hold.h"

namespace perseus::cli {
namespace {

using demo::DemoResult;
using demo::DemoRound;

// What is written while the demonstration runs.
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
