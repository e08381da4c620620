// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "plan/pipelines.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <utility>

namespace perseus::plan_testing {
namespace {

// Walks through every combination of knobs; see LeastEffectiveEnergy.
class Enumeration {
 public:
  Enumeration(const CostedPipeline& pipeline, const std::vector<std::vector<int>>& groups,
              double seconds, const plan::Guard& guard)
      : pipeline_(pipeline),
        groups_(groups),
        seconds_(seconds),
        guard_(guard),
        options_(pipeline.table_of.size()) {}

  double Run() {
    for (CostOption& option : options_) option.knob = -1;  // None yet.
    Try(0);
    return least_;
  }

 private:
  void Try(std::size_t group) {
    if (group == groups_.size()) {
      const double cost = EffectiveEnergy(pipeline_, options_);
      if (cost < least_ && IterationSeconds(pipeline_, options_, guard_) <= seconds_) {
        least_ = cost;
      }
      return;
    }
    for (int knob = 0; knob < static_cast<int>(pipeline_.knobs.size()); ++knob) {
      const bool all_have_it =
          std::all_of(groups_[group].begin(), groups_[group].end(), [&](int i) {
            for (const CostOption& option : pipeline_.TableOf(i).all_options) {
              if (option.knob == knob) options_[i] = option;
            }
            return options_[i].knob == knob;
          });
      if (all_have_it) Try(group + 1);
    }
  }

  const CostedPipeline& pipeline_;
  const std::vector<std::vector<int>>& groups_;
  double seconds_;
  const plan::Guard& guard_;
  std::vector<CostOption> options_;
  double least_ = std::numeric_limits<double>::infinity();
};

}  // namespace

Profile ProfileOf(const std::string& rows) {
  const bool has_header = rows.starts_with("stage");
  auto profile =
      ParseProfile(has_header ? rows : "stage,instruction,knob,time,energy\n" + rows, "p.csv");
  EXPECT_TRUE(profile) << profile.error().message;
  return *std::move(profile);
}

PipelineDag DagOf(const std::string& schedule, int stages, int microbatches,
                  const FixedTimes& fixed, int virtual_stages) {
  ScheduleSpec spec;
  spec.name = schedule;
  spec.num_stages = stages;
  spec.num_microbatches = microbatches;
  spec.virtual_stages = virtual_stages;
  const auto built = BuildSchedule(spec);
  EXPECT_TRUE(built) << built.error().message;
  auto dag = BuildDag(*built, fixed);
  EXPECT_TRUE(dag) << dag.error().message;
  return *std::move(dag);
}

CostSpec Blocking(double watts) {
  CostSpec spec;
  spec.blocking_power_watts = {watts};
  return spec;
}

CostedPipeline Costed(const std::string& rows, const PipelineDag& dag, const CostSpec& spec) {
  auto pipeline = CostPipeline(ProfileOf(rows), dag, spec);
  EXPECT_TRUE(pipeline) << pipeline.error().message;
  return *std::move(pipeline);
}

std::string RandomRows(std::mt19937& random, const ProfileShape& shape) {
  const auto share = [&random]() { return static_cast<double>(random()) / 4294967296.0; };
  std::string rows = "stage,instruction,knob,time,energy,time_std\n";
  for (int stage = 0; stage < shape.stages; ++stage) {
    for (const auto& [instruction, work] : {std::pair{"forward", 1.0}, {"backward", 1.9}}) {
      const double seconds = work * (0.9 + 0.3 * share());
      for (int k = 0; k < shape.clocks; ++k) {
        const int clock = 1410 - 90 * k;
        const double speed = clock / 1410.0;
        const double time = seconds * (0.25 + 0.75 / speed) * (1 + shape.noise * (2 * share() - 1));
        const double energy =
            time * (110 + 250 * speed * speed * speed) * (1 + shape.noise * (2 * share() - 1));
        rows += fmt::format("{},{},{}{},{},{},{}\n", stage, instruction, shape.labels ? "knob" : "",
                            clock, time, energy, shape.spread * time);
      }
    }
  }
  return rows;
}

double EffectiveEnergy(const CostedPipeline& pipeline, const std::vector<CostOption>& options) {
  double energy = 0;
  for (std::size_t i = 0; i < options.size(); ++i) {
    const double watts = pipeline.TableOf(static_cast<int>(i)).blocking_power_watts;
    energy += options[i].energy_joules - watts * options[i].time_seconds;
  }
  return energy;
}

double IterationSeconds(const CostedPipeline& pipeline, const std::vector<CostOption>& options,
                        const plan::Guard& guard) {
  std::vector<double> durations;
  for (std::size_t i = 0; i < options.size(); ++i) {
    durations.push_back(guard.Seconds(pipeline.TableOf(static_cast<int>(i)), options[i]));
  }
  return Replay(pipeline.dag, durations).iteration_time_seconds;
}

double LeastEffectiveEnergy(const CostedPipeline& pipeline,
                            const std::vector<std::vector<int>>& groups, double seconds,
                            const plan::Guard& guard) {
  return Enumeration(pipeline, groups, seconds, guard).Run();
}

std::vector<std::vector<int>> Singles(const CostedPipeline& pipeline) {
  std::vector<std::vector<int>> groups;
  for (int i = 0; i < pipeline.dag.size(); ++i) groups.push_back({i});
  return groups;
}

}  // namespace perseus::plan_testing
