// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// Estimates of times and calls by a job's ranks and its server: the client's of each rank,
// combined and judged as the server does. bench/goal_run.py writes the input:
//
//   time RANK ITERATION ROW MHZ NANOSECONDS STAGE TYPE STEADY
//                                                        a computation whose clock was in effect;
//                                                        1: as that of its row nearly always is
//   call RANK MHZ NANOSECONDS                            a clock call, until the clock was in
//   effect
//   row RANK ITERATION ROW BEGIN_NS END_NS CHANGES       a row of a rank's timeline; 1: the plan
//                                                        changes the clock before it
//
// The output has a line for each condition, "NAME VALUE ERROR PLANNED": what was measured, and what
// the next plans are made for; a line "transfer BOUNDARY VALUE ERROR" for each transfer between
// stages that was measured; and a line "latency MHZ VALUE ERROR" for each clock whose calls take
// another time than those of all. The arguments are a job's settings (JSON), its profile, and a
// file for that profile as the server corrects it by these times.

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <iostream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "client/rank_conditions.h"
#include "perseus/job.h"
#include "perseus/job_file.h"
#include "perseus/profile.h"
#include "profile/rows.h"
#include "server/detect/conditions_watch.h"
#include "server/domain/decide.h"
#include "server/planning/conditions_state.h"
#include "server/planning/measured_times.h"

namespace perseus::bench {
namespace {

struct Rank {
  client::NoiseEstimate noise;
  client::LatencyRecord latency;
  std::int64_t iteration = 0;
  std::vector<client::NoiseEstimate::Time> times;  // Of `iteration`.

  void EndIteration() {
    if (!times.empty()) noise.AddIteration(iteration, 1, std::move(times));
    times.clear();
  }
};

server::RankFigure FigureOf(const client::Estimated& estimated) {
  return {.value = estimated.value, .error = estimated.error};
}

server::RankConditions ConditionsOf(const Rank& rank) {
  server::RankConditions told;
  if (const auto noise = rank.noise.Figures()) {
    told.noise_variance = FigureOf(noise->variance);
    told.rank_noise_variance = FigureOf(noise->rank_variance);
    if (noise->correlation) told.noise_correlation = FigureOf(*noise->correlation);
    told.rare_noise_variance = FigureOf(noise->rare_variance);
    told.rare_noise_share = FigureOf(noise->rare_share);
    told.iterations = noise->iterations;
    told.computations = noise->computations;
  }
  if (const auto latency = rank.latency.Figures()) {
    told.latency_seconds = FigureOf(latency->seconds);
    told.latency_spread_seconds = FigureOf(latency->spread_seconds);
    told.calls = latency->calls;
    for (const client::ClockLatencyFigures& each : latency->of_clock) {
      told.latency_at.push_back(
          {.clock_mhz = each.mhz, .seconds = FigureOf(each.seconds), .calls = each.calls});
    }
  }
  return told;
}

Result<Job> JobOf(const char* settings_json, const char* path) {
  const Result<JobFile> settings = ParseJobFile(settings_json, "job", JobFileFormat::kJson);
  if (!settings) return tl::unexpected(settings.error());
  const Result<Profile> profile = ReadProfile(path);
  if (!profile) return tl::unexpected(profile.error());
  return Job::Make(*profile, *settings);
}

void WriteCorrected(const std::vector<server::MeasuredTime>& times, const Job& job,
                    const char* out) {
  Profile corrected = job.profile;
  Profile* const profile = &corrected;
  server::CorrectTimes(job.pipeline, times, profile);
  std::ofstream file(out);
  file << "stage,instruction,frequency,time,energy,error_sources\n";
  for (const OptionTable& table : profile->tables) {
    for (const Option& option : table.options) {
      const auto errors = std::find_if(
          profile->errors.begin(), profile->errors.end(), [&](const OptionErrors& each) {
            return each.stage == table.stage && each.type == table.type && each.knob == option.knob;
          });
      file << fmt::format(
          "{},{},{},{},{},{}\n", table.stage, ComputationTypeName(table.type),
          profile->knobs[static_cast<std::size_t>(option.knob)].label, option.time_seconds,
          option.energy_joules,
          errors == profile->errors.end() ? "" : profile::FormatErrorSources(*errors));
    }
  }
}

int Run(std::istream& input, char** arguments) {
  const Result<Job> job = JobOf(arguments[1], arguments[2]);
  if (!job) {
    fmt::print(stderr, "estimate_conditions: {}\n", job.error().message);
    return 2;
  }
  std::map<int, Rank> ranks;
  std::map<std::int64_t, std::map<int, std::vector<server::RowSpan>>> timelines;
  server::ConditionsWatch watch;
  std::map<server::ProfileKey, server::KindReport> kinds;  // Of the iteration.
  std::int64_t kinds_iteration = 0;
  const auto report_kinds = [&] {
    for (auto& [key, report] : kinds) {
      report.time_seconds /= static_cast<double>(report.count);
      watch.Take(report);
    }
    kinds.clear();
  };
  for (std::string word; input >> word;) {
    int number = 0;
    input >> number;
    Rank& rank = ranks[number];
    if (word == "call") {
      int mhz = 0;
      std::int64_t ns = 0;
      input >> mhz >> ns;
      rank.latency.AddCall(mhz, ns);
      continue;
    }
    if (word == "row") {
      std::int64_t iteration = 0;
      std::size_t row = 0;
      server::RowSpan span;
      input >> iteration >> row >> span.begin_seconds >> span.end_seconds >> span.changes;
      span.begin_seconds *= 1e-9;
      span.end_seconds *= 1e-9;
      std::vector<server::RowSpan>& rows = timelines[iteration][number];
      rows.resize(std::max(rows.size(), row + 1));
      rows[row] = span;
      continue;
    }
    std::int64_t iteration = 0;
    client::NoiseEstimate::Time time;
    server::ProfileKey key;
    std::string type;
    int is_steady = 0;
    input >> iteration >> time.row >> time.mhz >> time.ns >> key.stage >> type >> is_steady;
    key.type = ParseComputationType(type).value_or(ComputationType::kForward);
    key.clock_mhz = time.mhz;
    if (!input) {
      fmt::print(stderr, "estimate_conditions: not a line of times or calls: '{}'\n", word);
      return 2;
    }
    if (iteration != rank.iteration) rank.EndIteration();
    rank.iteration = iteration;
    rank.times.push_back(time);
    if (iteration != kinds_iteration) report_kinds();
    kinds_iteration = iteration;
    if (is_steady == 0) continue;
    server::KindReport& report = kinds[key];
    report.key = key;
    report.is_steady = true;
    ++report.count;
    report.time_seconds += 1e-9 * time.ns;
  }
  report_kinds();
  for (auto& [number, rank] : ranks) {
    rank.EndIteration();
    watch.Take(number, ConditionsOf(rank));
  }
  for (auto& [iteration, rows_of] : timelines) {
    for (auto& [number, rows] : rows_of) {
      watch.Take(
          job->pipeline.dag,
          {.rank = number, .iteration = iteration, .plan_version = 1, .rows = std::move(rows)});
    }
  }
  const server::MeasuredConditions measured = watch.Combined();
  const server::PlannedConditions planned = server::PlannedFor({}, measured);
  for (std::size_t i = 0; i < server::kConditions; ++i) {
    const server::MeasuredCondition& figure = measured.figures[i];
    fmt::print("{} {} {} {}\n", server::kConditionNames[i], figure.value, figure.error,
               planned.values[i]);
  }
  for (const server::MeasuredTransfer& transfer : planned.transfers) {
    fmt::print("transfer {} {} {}\n", transfer.boundary, transfer.seconds, transfer.error_seconds);
  }
  for (const server::MeasuredClockLatency& each : planned.latency_at) {
    fmt::print("latency {} {} {}\n", each.clock_mhz, each.seconds.value, each.seconds.error);
  }
  WriteCorrected(planned.times, *job, arguments[3]);
  return 0;
}

}  // namespace
}  // namespace perseus::bench

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  return perseus::bench::Run(std::cin, argv);
}
