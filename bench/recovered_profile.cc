// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// How well a sweep during training recovers a profile whose truth is known, and
// what plans from the recovered one lose: docs/evidence/measuring-table.md.
// Truth: the measured tables of the Perseus paper.
//
//   PERSEUS_SHARED_DATA=DATA build/release/bench/recovered_profile [SEEDS] [FILTER]
//
// Or for any table, and under what machines do (sweep_losses.h):
//
//   build/release/bench/recovered_profile --profile FILE.csv --blocking-power W --seeds N

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "measure/simulated_sweep.h"
#include "perseus/planner.h"
#include "perseus/profile.h"
#include "sweep_losses.h"
#include "sweep_plans.h"

namespace perseus::measure {
namespace {

struct Setting {
  std::string name;
  std::string table;
  double scale = 1;
  double counter_seconds = 0.02;
  bool coarse = false;
  bool shuffle = false;
  int microbatches = 12;
};

// Each table as if its card had no moods at single clocks: a parabola through nine
// neighbouring clocks in place of each value.
void Smooth(Profile* profile) {
  for (OptionTable& table : profile->tables) {
    const std::vector<Option> raw = table.options;
    const auto count = static_cast<int>(raw.size());
    for (int i = 0; i < count; ++i) {
      constexpr int kHalf = 4;
      const int half = std::min({kHalf, i, count - 1 - i});
      if (half < 2) continue;
      // Savitzky-Golay of order 2.
      const double m = half;
      const double norm = (2 * m + 3) * (2 * m + 1) * (2 * m - 1) / 3;
      double seconds = 0;
      double joules = 0;
      for (int k = -half; k <= half; ++k) {
        const double weight = (3 * m * m + 3 * m - 1 - 5.0 * k * k) / norm;
        seconds += weight * raw[static_cast<std::size_t>(i + k)].time_seconds;
        joules += weight * raw[static_cast<std::size_t>(i + k)].energy_joules;
      }
      table.options[static_cast<std::size_t>(i)].time_seconds = seconds;
      table.options[static_cast<std::size_t>(i)].energy_joules = joules;
    }
  }
}

struct Figures {
  std::vector<double> time_errors;
  std::vector<double> energy_errors;
  std::vector<double> time_sigmas;  // Errors over their standard errors.
  std::vector<double> energy_sigmas;
  std::vector<double> blocking_errors;
  int no_blocking = 0;
  double iterations = 0;
  double seconds = 0;
  std::vector<double> plan_losses;   // Energy over the plan from the truth's.
  std::vector<double> equal_losses;  // The same against the truth's plan for the realised time.
  std::vector<double> plan_delays;   // Realised time over the all-maximum-clock one.
  std::vector<double> savings;
};

double Percentile(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1))];
}

double Beyond(const std::vector<double>& sigmas, double limit) {
  const auto beyond = std::count_if(sigmas.begin(), sigmas.end(),
                                    [&](double sigma) { return std::abs(sigma) <= limit; });
  return sigmas.empty() ? 0
                        : 100.0 * static_cast<double>(beyond) / static_cast<double>(sigmas.size());
}

// What the plan from the recovered profile is in truth.
Result<void> JudgePlan(const TrueTable& truth, const SimulatedResult& result, Figures* figures) {
  const auto plan = truth.Judge(result);
  if (!plan) return tl::unexpected(plan.error());
  const Plan& realised = plan->realised;
  figures->plan_losses.push_back(100 * (realised.energy_joules / truth.best().energy_joules - 1));
  if (const auto equal = truth.planner().PlanFor(realised.iteration_time_seconds)) {
    figures->equal_losses.push_back(100 * (realised.energy_joules / equal->energy_joules - 1));
  }
  figures->plan_delays.push_back(plan->late_percent);
  figures->savings.push_back(realised.saving_percent);
  return {};
}

Result<Figures> Run(const Setting& setting, const Profile& truth, int seeds) {
  Figures figures;
  std::optional<TrueTable> judge;
  for (int seed = 1; seed <= seeds; ++seed) {
    SimulatedPipeline pipeline;
    pipeline.truth = truth;
    pipeline.scale = setting.scale;
    pipeline.counter_seconds = setting.counter_seconds;
    pipeline.microbatches = setting.microbatches;
    pipeline.seed = static_cast<std::uint64_t>(seed);
    pipeline.sweep.order.coarse = setting.coarse;
    pipeline.sweep.order.shuffle = setting.shuffle;
    pipeline.sweep.order.seed = static_cast<std::uint64_t>(seed);
    if (!judge) {
      Result<TrueTable> made = TrueTable::Create(pipeline, 1);
      if (!made) return tl::unexpected(made.error());
      judge = *std::move(made);
    }
    const auto result = SimulateSweep(pipeline);
    if (!result) return tl::unexpected(result.error());
    for (const SimulatedRank& rank : result->ranks) {
      for (const Estimate& row : rank.rows) {
        const Option option = TruthOf(pipeline, row).value();
        const double time_error = row.seconds - option.time_seconds;
        const double energy_error = row.joules - option.energy_joules;
        figures.time_errors.push_back(100 * std::abs(time_error) / option.time_seconds);
        figures.energy_errors.push_back(100 * std::abs(energy_error) / option.energy_joules);
        figures.time_sigmas.push_back(time_error / row.seconds_std);
        figures.energy_sigmas.push_back(energy_error / row.joules_std);
      }
      if (rank.blocking) {
        figures.blocking_errors.push_back(
            100 * std::abs(rank.blocking->watts / pipeline.blocking_watts - 1));
      } else {
        ++figures.no_blocking;
      }
    }
    figures.iterations += static_cast<double>(result->iterations) / seeds;
    figures.seconds += result->seconds / seeds;
    if (const auto judged = JudgePlan(*judge, *result, &figures); !judged) {
      return tl::unexpected(judged.error());
    }
  }
  return figures;
}

int Main(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]).starts_with("--")) {
    return SweepLosses({argv + 1, argv + argc});
  }
  const int seeds = argc > 1 ? std::max(1, std::atoi(argv[1])) : 5;
  const std::string filter = argc > 2 ? argv[2] : "";
  const char* data = std::getenv("PERSEUS_SHARED_DATA");
  if (data == nullptr) {
    fmt::print(stderr, "Set PERSEUS_SHARED_DATA to the folder that holds sosp24/.\n");
    return 1;
  }
  const std::string folder = std::string(data) + "/sosp24/sosp24_data/emulation/stage_profile/";
  const std::map<std::string, std::string> files = {{"A100", "gpt3-175b+a100_sxm_bf16.csv"},
                                                    {"A40", "bloom+a40_bf16.csv"}};
  fmt::print(
      "Errors, losses, delays and savings in per cent; in2s: of rows within 1.96 standard errors.\n"
      "{:<28} {:>5} {:>7}  {:>6} {:>6} {:>5}  {:>6} {:>6} {:>5}  {:>6}  {:>6} {:>6} {:>6} {:>6} "
      "{:>6} {:>6}\n",
      "setting", "iter.", "minutes", "time", "worst", "in2s", "energy", "worst", "in2s", "block",
      "loss", "worst", "equal", "delay", "worst", "saving");
  for (const std::string card : {"A100", "A40", "A100-smooth", "A40-smooth"}) {
    const bool smooth = card.find("smooth") != std::string::npos;
    auto truth = ReadProfile(folder + files.at(card.substr(0, card.find('-'))));
    if (truth && smooth) Smooth(&*truth);
    if (!truth) {
      fmt::print(stderr, "{}\n", truth.error().message);
      return 1;
    }
    for (const double scale : {1.0, 0.1}) {
      for (const double period : {0.02, 0.05, 0.1}) {
        if (smooth && (scale != 1.0 || period != 0.05)) continue;
        for (const int kind : {0, 1, 2}) {
          Setting setting;
          setting.scale = scale;
          setting.counter_seconds = period;
          setting.coarse = kind == 1;
          setting.shuffle = kind == 2;
          setting.name = fmt::format("{} x{} {:.0f} ms {}", card, scale, period * 1000,
                                     kind == 0   ? "full"
                                     : kind == 1 ? "coarse"
                                                 : "shuffled");
          if (setting.name.find(filter) == std::string::npos) continue;
          const auto figures = Run(setting, *truth, seeds);
          if (!figures) {
            fmt::print(stderr, "{}\n", figures.error().message);
            return 1;
          }
          fmt::print(
              "{:<28} {:>5.0f} {:>7.1f}  {:>6.3f} {:>6.2f} {:>5.1f}  {:>6.2f} {:>6.2f} {:>5.1f}  "
              "{:>6.2f}  {:>6.2f} {:>6.2f} {:>6.2f} {:>6.2f} {:>6.2f} {:>6.2f}\n",
              setting.name, figures->iterations, figures->seconds / 60,
              Percentile(figures->time_errors, 0.5), Percentile(figures->time_errors, 1),
              Beyond(figures->time_sigmas, 1.96), Percentile(figures->energy_errors, 0.5),
              Percentile(figures->energy_errors, 1), Beyond(figures->energy_sigmas, 1.96),
              Percentile(figures->blocking_errors, 0.5), Percentile(figures->plan_losses, 0.5),
              Percentile(figures->plan_losses, 1), Percentile(figures->equal_losses, 0.5),
              Percentile(figures->plan_delays, 0.5), Percentile(figures->plan_delays, 1),
              Percentile(figures->savings, 0.5));
          std::fflush(stdout);
        }
      }
    }
  }
  return 0;
}

}  // namespace
}  // namespace perseus::measure

int main(int argc, char** argv) { return perseus::measure::Main(argc, argv); }
