// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// A stream of iterations whose microbatches differ: CPU time of a frontier and a
// plan for each, and what that saves against one plan for all of them.
//
//   stream PROFILE.csv|- STAGES MICROBATCHES ITERATIONS SPREAD [EFFORT]
//
// "-": the analytic model. SPREAD: standard deviation of the logarithm of lengths.
// PERSEUS_STREAM_LENGTHS=FILE writes the first iteration's lengths as a work table.

#include "perseus/stream.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <numbers>
#include <string>
#include <utility>
#include <vector>

#include "perseus/pipeline.h"
#include "perseus/planner.h"
#include "perseus/profile.h"
#include "perseus/schedule.h"
#include "perseus/synth.h"

namespace perseus::bench {
namespace {

constexpr double kBlockingWatts = 83.64;
constexpr double kMostSlowdown = 0.001;
constexpr std::array<double, 9> kMargins = {0, 0.01, 0.02, 0.03, 0.05, 0.08, 0.12, 0.2, 0.4};

double CpuSeconds() {
  timespec now = {};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// The same lengths with every standard library.
class Lengths {
 public:
  explicit Lengths(double spread) : spread_(spread) {}

  std::vector<double> Next(int microbatches) {
    std::vector<double> lengths;
    for (int m = 0; m < microbatches; ++m) {
      const double normal =
          std::sqrt(-2 * std::log(Uniform())) * std::cos(2 * std::numbers::pi * Uniform());
      // Mean 1, whatever the spread.
      lengths.push_back(std::exp(spread_ * normal - spread_ * spread_ / 2));
    }
    return lengths;
  }

 private:
  double Uniform() {  // (0, 1], by splitmix64.
    std::uint64_t x = state_ += 0x9E3779B97F4A7C15U;
    x = (x ^ (x >> 30U)) * 0xBF58476D1CE4E5B9U;
    x = (x ^ (x >> 27U)) * 0x94D049BB133111EBU;
    x ^= x >> 31U;
    return (static_cast<double>(x >> 11U) + 1) * 0x1p-53;
  }
  double spread_;
  std::uint64_t state_ = 1;
};

struct Sum {
  double seconds = 0;
  double joules = 0;

  void Add(const Plan& plan) {
    seconds += plan.iteration_time_seconds;
    joules += plan.energy_joules;
  }
};

double Quantile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1))];
}

// What the clocks of `plan` do on other lengths.
Plan OnLengths(const Plan& plan, const Planner& planner) {
  const CostedPipeline& pipeline = planner.pipeline();
  std::vector<CostOption> options;
  for (int i = 0; i < pipeline.dag.size(); ++i) {
    const auto& all = pipeline.TableOf(i).all_options;
    options.push_back(*std::find_if(all.begin(), all.end(), [&](const CostOption& option) {
      return option.knob == plan.options[static_cast<std::size_t>(i)].knob;
    }));
  }
  return *planner.Evaluate(std::move(options));
}

Result<int> Run(int argc, char** argv) {
  if (argc < 6) return InvalidInput("PROFILE.csv|- STAGES MICROBATCHES ITERATIONS SPREAD [EFFORT]");
  const int stages = std::atoi(argv[2]);
  const int microbatches = std::atoi(argv[3]);
  const int iterations = std::atoi(argv[4]);
  const double spread = std::atof(argv[5]);
  Result<Profile> profile = InvalidInput("");
  if (std::string(argv[1]) == "-") {
    SynthSpec synth;
    synth.model = "gpt3-175b";
    synth.gpu = "a100-sxm";
    synth.stages = stages;
    const auto modelled = Synthesize(synth);
    if (!modelled) return tl::unexpected(modelled.error());
    profile = ParseProfile(modelled->profile_csv, "profile.csv");
  } else {
    profile = ReadProfile(argv[1]);
  }
  if (!profile) return tl::unexpected(profile.error());
  ScheduleSpec spec;
  spec.name = "1f1b";
  spec.num_stages = stages;
  spec.num_microbatches = microbatches;
  const auto schedule = BuildSchedule(spec);
  if (!schedule) return tl::unexpected(schedule.error());
  const auto dag = BuildDag(*schedule, {});
  if (!dag) return tl::unexpected(dag.error());
  CostSpec costs;
  costs.blocking_power_watts = {kBlockingWatts};
  StreamOptions options;
  if (argc > 6) options.effort = std::atof(argv[6]);
  const auto stream = StreamPlanner::Create(*profile, *dag, costs, options);
  if (!stream) return tl::unexpected(stream.error());

  // One plan for all: of the mean lengths, with more and more of a margin.
  const auto mean_pipeline = CostPipeline(*profile, *dag, costs);
  const auto mean = Planner::Create(*mean_pipeline, {});
  if (!mean) return tl::unexpected(mean.error());
  std::vector<Plan> statics;
  for (const double margin : kMargins) {
    PlanConstraints constraints;
    constraints.time_margin_fraction = margin;
    const auto plan =
        mean->PlanFor(mean->baseline().iteration_time_seconds, {.constraints = constraints});
    if (!plan) return tl::unexpected(plan.error());
    statics.push_back(*plan);
  }

  Lengths lengths(spread);
  std::vector<double> cpu;
  std::vector<double> gaps;
  Sum baseline;
  Sum streamed;
  Sum in_static_time;
  Sum bound;
  std::vector<Sum> static_sums(statics.size());
  for (int k = 0; k < iterations; ++k) {
    const std::vector<double> own = lengths.Next(microbatches);
    if (const char* path = std::getenv("PERSEUS_STREAM_LENGTHS"); k == 0 && path != nullptr) {
      std::FILE* file = std::fopen(path, "w");
      if (file == nullptr) return InvalidInput("cannot write the lengths");
      fmt::print(file, "microbatch,factor\n");
      for (std::size_t m = 0; m < own.size(); ++m) fmt::print(file, "{},{}\n", m, own[m]);
      std::fclose(file);
    }
    const double begin = CpuSeconds();
    const auto made = stream->PlanFor(Work(own));
    cpu.push_back(CpuSeconds() - begin);
    if (!made) return tl::unexpected(made.error());
    gaps.push_back(made->plan.gap_percent);
    baseline.Add(made->planner.baseline());
    streamed.Add(made->plan);
    bound.joules += made->plan.lower_bound_joules;
    for (std::size_t s = 0; s < statics.size(); ++s) {
      const Plan there = OnLengths(statics[s], made->planner);
      static_sums[s].Add(there);
      if (s > 0) continue;
      // The frontier is as good as a plan: gaps are hundredths of a per cent.
      in_static_time.seconds += there.iteration_time_seconds;
      in_static_time.joules += there.lower_bound_joules;
    }
  }
  const auto line = [&](const std::string& name, const Sum& sum) {
    fmt::print("| {} | {:+.2f} | {:.2f} |\n", name, 100 * (sum.seconds / baseline.seconds - 1),
               100 * (1 - sum.joules / baseline.joules));
  };
  fmt::print(
      "{} x {}, {} iterations, spread {}: CPU of frontier and plan, ms: median {:.1f}, "
      "99th percentile {:.1f}, most {:.1f}; gap, %: median {:.4f}, 99th percentile {:.4f}\n",
      stages, microbatches, iterations, spread, 1e3 * Quantile(cpu, 0.5), 1e3 * Quantile(cpu, 0.99),
      1e3 * Quantile(cpu, 1), Quantile(gaps, 0.5), Quantile(gaps, 0.99));
  fmt::print("| plan | time, % | saving, % |\n|---|---|---|\n");
  line("one for all, of the mean", static_sums[0]);
  for (std::size_t s = 0; s < statics.size(); ++s) {
    const bool keeps = static_sums[s].seconds <= (1 + kMostSlowdown) * baseline.seconds;
    if (!keeps && s + 1 < statics.size()) continue;
    line(fmt::format("one for all, margin {:.0f} %", 100 * kMargins[s]), static_sums[s]);
    break;
  }
  line("one for each", streamed);
  line("one for each, in the time of the mean's (bound)", in_static_time);
  return 0;
}

}  // namespace
}  // namespace perseus::bench

int main(int argc, char** argv) {
  const auto done = perseus::bench::Run(argc, argv);
  if (done) return *done;
  fmt::print(stderr, "stream: {}\n", done.error().message);
  return 1;
}
