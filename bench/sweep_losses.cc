// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "sweep_losses.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/numbers.h"
#include "measure/simulated_sweep.h"
#include "measure/sweep_coverage.h"
#include "perseus/profile.h"
#include "perseus/result.h"
#include "sweep_plans.h"

namespace perseus::measure {
namespace {

constexpr double kPlanEffort = 0.1;

struct LossSettings {
  std::string profile;
  double blocking_watts = 0;
  int seeds = 50;
  std::string order;
  std::string disturbance;
  int microbatches = 12;
  double scale = 1;
  double waiting_share = 0;
  std::string waiting = "clock";
  std::string tails;
  double time_noise = 0.02;
  double heat = 0;  // 0: that of the disturbance.
  double heat_seconds = 120;
};

std::optional<double> PositiveNumber(const std::string& text) {
  const std::optional<double> value = ParseFinite(text);
  return value && *value > 0 && *value < 1e9 ? value : std::nullopt;
}

// The error is a sentence.
Result<LossSettings> Read(const std::vector<std::string>& arguments) {
  LossSettings settings;
  const auto error = [](const std::string& sentence) {
    return MakeError(ErrorCode::kInvalidInput, sentence);
  };
  for (std::size_t i = 0; i < arguments.size(); i += 2) {
    const std::string& name = arguments[i];
    if (i + 1 == arguments.size()) return error(fmt::format("{}: its value is missing", name));
    const std::string& text = arguments[i + 1];
    const std::optional<double> value = PositiveNumber(text);
    const std::map<std::string, std::string*> texts = {{"--profile", &settings.profile},
                                                       {"--order", &settings.order},
                                                       {"--waiting", &settings.waiting},
                                                       {"--tails", &settings.tails},
                                                       {"--disturbance", &settings.disturbance}};
    const std::map<std::string, int*> counts = {{"--seeds", &settings.seeds},
                                                {"--microbatches", &settings.microbatches}};
    const std::map<std::string, double*> numbers = {{"--blocking-power", &settings.blocking_watts},
                                                    {"--waiting-share", &settings.waiting_share},
                                                    {"--time-noise", &settings.time_noise},
                                                    {"--heat", &settings.heat},
                                                    {"--heat-seconds", &settings.heat_seconds},
                                                    {"--scale", &settings.scale}};
    if (texts.contains(name)) {
      *texts.at(name) = text;
    } else if (counts.contains(name)) {
      if (!value || *value < 1 || *value != static_cast<int>(*value)) {
        return error(
            fmt::format("{}: expected a whole number of at least 1, got '{}'", name, text));
      }
      *counts.at(name) = static_cast<int>(*value);
    } else if (numbers.contains(name)) {
      if (!value) {
        return error(fmt::format("{}: expected a number above 0, got '{}'", name, text));
      }
      *numbers.at(name) = *value;
    } else {
      return error(fmt::format("{}: no such option; see bench/sweep_losses.h", name));
    }
  }
  if (settings.profile.empty()) return error("--profile: give the table, a CSV file");
  if (settings.waiting != "clock" && settings.waiting != "number") {
    return error(fmt::format("--waiting: expected clock or number, got '{}'", settings.waiting));
  }
  if (!settings.tails.empty() && settings.tails != "heavy") {
    return error(fmt::format("--tails: expected heavy, got '{}'", settings.tails));
  }
  const std::map<std::string, double> shares = {{"--waiting-share", settings.waiting_share},
                                                {"--time-noise", settings.time_noise},
                                                {"--heat", settings.heat}};
  for (const auto& [name, share] : shares) {
    if (share > 1) return error(fmt::format("{}: expected a share, 0 to 1", name));
  }
  if (settings.blocking_watts == 0) {
    return error("--blocking-power: give the watts of a GPU that waits");
  }
  return settings;
}

double Median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[(values.size() - 1) / 2];
}

// The mean of a figure of each sweep and its standard error, in per cent.
std::string MeanOf(const std::vector<Bias>& biases, double Bias::*figure) {
  const auto count = static_cast<double>(biases.size());
  double mean = 0;
  for (const Bias& bias : biases) mean += bias.*figure / count;
  double squares = 0;
  for (const Bias& bias : biases) squares += (bias.*figure - mean) * (bias.*figure - mean);
  const double error = count > 1 ? std::sqrt(squares / (count - 1) / count) : 0;
  return fmt::format("{:+.3f} +- {:.3f}", 100 * mean, 100 * error);
}

double Most(const std::vector<double>& values) {
  return values.empty() ? 0 : *std::max_element(values.begin(), values.end());
}

// A row of the table: its worst loss.
Result<double> PrintRow(const LossSettings& settings, const TrueTable& truth,
                        SimulatedPipeline pipeline, const std::string& name) {
  std::vector<double> iterations;
  std::vector<double> minutes;
  std::vector<double> rows;
  std::vector<double> savings;
  std::vector<double> losses;
  std::vector<double> lates;
  std::vector<Bias> biases;
  Coverage coverage;
  for (int seed = 1; seed <= settings.seeds; ++seed) {
    pipeline.seed = static_cast<std::uint64_t>(seed);
    pipeline.sweep.order.seed = pipeline.seed;
    Result<SimulatedResult> result = SimulateSweep(pipeline);
    if (!result) return tl::unexpected(result.error());
    if (settings.waiting == "number") {
      for (SimulatedRank& rank : result->ranks) rank.waiting.clear();
    }
    CountRows(pipeline, *result, &coverage);
    biases.push_back(BiasOf(pipeline, *result));
    const Result<JudgedPlan> plan = truth.Judge(*result);
    if (!plan) return tl::unexpected(plan.error());
    iterations.push_back(static_cast<double>(result->iterations));
    minutes.push_back(result->seconds / 60);
    double measured = 0;
    for (const SimulatedRank& rank : result->ranks) {
      measured += static_cast<double>(rank.rows.size());
    }
    rows.push_back(measured / static_cast<double>(result->ranks.size()));
    savings.push_back(plan->realised.saving_percent);
    losses.push_back(truth.best().saving_percent - plan->realised.saving_percent);
    lates.push_back(plan->late_percent);
  }
  const double all = Median(rows) * static_cast<double>(settings.seeds) *
                     static_cast<double>(pipeline.truth.num_stages);
  fmt::print(
      "{:<42} {:>5.0f} {:>7.1f} {:>5.0f}  {:>6.2f}  {:>6.2f} {:>6.2f}  {:>6.2f} {:>6.2f}  "
      "{:>6.1f} {:>6.1f} {:>6.1f} {:>6.1f}\n",
      name, Median(iterations), Median(minutes), Median(rows), Median(savings), Median(losses),
      Most(losses), Median(lates), Most(lates), coverage.times.percent(),
      coverage.energies.percent(),
      (coverage.waiting.all > 0 ? coverage.waiting : coverage.blocking).percent(),
      100 * static_cast<double>(coverage.doubtful) / std::max(1.0, all));
  fmt::print("  off in the mean: times {}, energies {}; lowered clocks: times {}, energies {}\n",
             MeanOf(biases, &Bias::times), MeanOf(biases, &Bias::energies),
             MeanOf(biases, &Bias::lowered_times), MeanOf(biases, &Bias::lowered_energies));
  std::fflush(stdout);
  return Most(losses);
}

Result<double> PrintRows(const LossSettings& settings) {
  Result<Profile> profile = ReadProfile(settings.profile);
  if (!profile) return tl::unexpected(profile.error());
  SimulatedPipeline pipeline;
  pipeline.truth = *std::move(profile);
  pipeline.scale = settings.scale;
  pipeline.counter_seconds = 0.05;
  pipeline.microbatches = settings.microbatches;
  pipeline.blocking_watts = settings.blocking_watts;
  pipeline.waiting_share = settings.waiting_share;
  pipeline.time_noise = settings.time_noise;
  const Result<TrueTable> truth = TrueTable::Create(pipeline, kPlanEffort);
  if (!truth) return tl::unexpected(truth.error());
  fmt::print(
      "{} seeds a row; the plan from the table saves {:.2f} %. Loss in points of saving; late in "
      "%;\n"
      "truths within 1.96 standard errors, and rows that say that they are doubtful, in %.\n"
      "{:<42} {:>5} {:>7} {:>5}  {:>6}  {:>6} {:>6}  {:>6} {:>6}  {:>6} {:>6} {:>6} {:>6}\n",
      settings.seeds, truth->best().saving_percent, "disturbance, order", "iter.", "minutes",
      "rows", "saving", "loss", "worst", "late", "worst", "times", "ener.", "wait", "doubt");
  double worst = -std::numeric_limits<double>::infinity();
  for (const Noise& noise : Disturbances()) {
    const bool is_asked = settings.disturbance.empty()
                              ? noise.name == "none"
                              : settings.disturbance == "all" ||
                                    noise.name.find(settings.disturbance) != std::string::npos;
    if (!is_asked) continue;
    for (const std::string order : {"full", "coarse", "shuffled"}) {
      if (!settings.order.empty() && order != settings.order) continue;
      Disturb(noise, &pipeline);
      pipeline.heavy_tails = pipeline.heavy_tails || !settings.tails.empty();
      if (settings.heat > 0) {
        pipeline.heat = settings.heat;
        pipeline.heat_seconds = settings.heat_seconds;
      }
      pipeline.sweep.order.coarse = order == "coarse";
      pipeline.sweep.order.shuffle = order == "shuffled";
      const Result<double> loss = PrintRow(settings, *truth, pipeline, noise.name + ", " + order);
      if (!loss) return loss;
      worst = std::max(worst, *loss);
    }
  }
  if (!(worst > -std::numeric_limits<double>::infinity())) {
    return MakeError(ErrorCode::kInvalidInput, "--order, --disturbance: there is no such row");
  }
  return worst;
}

}  // namespace

int SweepLosses(const std::vector<std::string>& arguments) {
  const Result<LossSettings> settings = Read(arguments);
  const Result<double> worst =
      settings ? PrintRows(*settings) : Result<double>(tl::unexpected(settings.error()));
  if (!worst) {
    fmt::print(stderr, "{}\n", worst.error().message);
    return 2;
  }
  fmt::print("worst loss {:.2f}\n", *worst);
  return 0;
}

}  // namespace perseus::measure
