// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_WIRE_REPORTS_H_
#define PERSEUS_WIRE_REPORTS_H_

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "perseus/computation.h"
#include "wire/message.h"

// Reports of ranks to the server: their identity, measurements and iterations. Unknown fields are
// ignored, so that newer clients may say more.
namespace perseus::wire {

struct Gpu {
  std::string uuid = {};
  std::string name = {};
};
// A rank joins a job.
struct Rank {
  int rank = 0;
  int dp_rank = 0;
  int pp_rank = 0;
  int tp_rank = 0;
  std::string node = {};
  std::optional<Gpu> gpu = {};
  std::vector<int> clocks_mhz = {};
};

// The clock of what was measured at default clocks.
inline constexpr int kDefaultClockMhz = 0;

// One kind of computation at one clock, as one rank measured it.
struct MeasuredRow {
  int stage = 0;
  ComputationType type = ComputationType::kForward;
  int clock_mhz = 0;  // Or kDefaultClockMhz.
  double time_seconds = 0;
  double energy_joules = 0;  // Of one GPU.
  int samples = 1;
  // Standard errors of time and energy; 0: not reported.
  double time_std_seconds = 0;
  double energy_std_joules = 0;
  // See OptionErrors in perseus/profile.h; empty: not reported.
  std::vector<double> time_sources = {};
  std::vector<double> power_sources = {};
  bool throttled = false;  // The GPU slowed itself down while this was measured.
  std::optional<double> temperature_celsius = {};  // Mean.
  // Only if the trainer reports how much work each computation does. `work`: its mean (0: not
  // reported). If the work varied: time and energy per unit of it, and the standard deviations that
  // remain after this fit.
  double work = 0;
  std::optional<double> seconds_per_work = {};
  std::optional<double> joules_per_work = {};
  double time_residual_std_seconds = 0;
  double energy_residual_std_joules = 0;

  friend bool operator==(const MeasuredRow&, const MeasuredRow&) = default;
};
// The cost of a rank's sweep. `extra_...`: the part above the cost at the highest clock.
struct SweepCost {
  std::int64_t iterations = 0;
  double seconds = 0;
  double joules = 0;
  double extra_seconds = 0;
  double extra_joules = 0;

  friend bool operator==(const SweepCost&, const SweepCost&) = default;
};
// Power that a waiting GPU draws at a clock.
struct MeasuredWaiting {
  int clock_mhz = 0;
  double watts = 0;
  double std_watts = 0;  // Standard error.

  friend bool operator==(const MeasuredWaiting&, const MeasuredWaiting&) = default;
};
struct Measurements {
  int rank = 0;
  std::vector<MeasuredRow> rows = {};
  std::vector<MeasuredRow> default_clocks = {};  // At default clocks.
  std::optional<double> blocking_power_watts = {};
  double blocking_power_std_watts = 0;        // Standard error; 0: not reported.
  std::vector<MeasuredWaiting> waiting = {};  // Empty: it was not seen to depend on the clock.
  double counter_period_seconds = 0;          // Of the energy counter; 0: not reported.
  std::optional<SweepCost> sweep = {};        // So far.
  std::vector<std::string> notes = {};        // Sentences of one line.
  bool done = false;                          // The rank's sweep has ended.
};

// A kind of computation at one clock.
struct ProfileKey {
  int stage = 0;
  ComputationType type = ComputationType::kForward;
  int clock_mhz = 0;  // Or kDefaultClockMhz.
  friend auto operator<=>(const ProfileKey&, const ProfileKey&) = default;
};
// The mean time of one kind of computation since the client's last report.
struct KindReport {
  ProfileKey key;
  std::int64_t count = 0;  // Computations.
  double time_seconds = 0;
  // Which of its computations are counted does not depend on how long they take.
  bool is_steady = false;
};
// When a rank ran the rows of its plan, by its own clock since it began its iteration.
struct RankTimeline {
  std::vector<double> begin_ns = {};
  std::vector<double> end_ns = {};
  std::vector<int> changes = {};  // Rows before which the plan changes the clock.
};
// Which clocks a rank ran at in an iteration, as its client reports.
enum class ReportedClocks : std::uint8_t { kUnknown, kPlan, kCoarse, kMaximum };
using SecondsByType = std::array<double, kNumComputationTypes>;

// One iteration of one rank.
struct IterationReport {
  int rank = 0;
  std::int64_t iteration = 0;
  std::int64_t plan_version = 0;
  double time_seconds = 0;
  std::optional<double> energy_joules = {};
  ReportedClocks clocks = ReportedClocks::kUnknown;
  double busy_seconds = 0;                    // Time in its own computations. 0: not reported.
  SecondsByType busy_by_type = {};            // busy_seconds by type of computation.
  double tokens = 0;                          // 0: not reported.
  std::vector<KindReport> kinds = {};         // Since the rank's last report.
  std::optional<RankTimeline> timeline = {};  // Once in a while.
};

// A figure that a rank measured.
struct RankFigure {
  double value = 0;
  double error = 0;  // Standard error.
};
// How long calls for one clock took a rank.
struct RankClockLatency {
  int clock_mhz = 0;
  std::optional<RankFigure> seconds = {};
  std::int64_t calls = 0;
};
// Conditions that one rank measured. Variances are relative to the time, and below 0 where there is
// too little noise to tell.
struct RankConditions {
  std::optional<RankFigure> noise_variance = {};
  std::optional<RankFigure> rank_noise_variance = {};
  std::optional<RankFigure> noise_correlation = {};
  // Of computations that stand out, and how many of all these are.
  std::optional<RankFigure> rare_noise_variance = {};
  std::optional<RankFigure> rare_noise_share = {};
  std::optional<RankFigure> latency_seconds = {};
  std::optional<RankFigure> latency_spread_seconds = {};
  std::vector<RankClockLatency> latency_at = {};
  std::int64_t iterations = 0;
  std::int64_t computations = 0;
  std::int64_t calls = 0;
};

// How many computations of each type and stage an iteration runs. Stage -1: not said.
using ComputationCounts = std::map<std::pair<ComputationType, int>, std::int64_t>;

// Facts that the node's agent told a client.
struct AgentReport {
  std::string version = {};                       // Empty: an older agent, which does not say.
  std::vector<std::string> clock_conflicts = {};  // What acts against the clock of the rank's GPU.
};
// The report of a rank's client about itself. Its counts begin when the client starts.
struct ClientReport {
  int rank = 0;
  std::string client = {};   // Of this client alone. Empty: an older one, which does not say.
  std::string process = {};  // Which process that is, for people.
  std::string state = {};    // "following", ...
  std::string error = {};    // One sentence. Empty: no error.
  std::int64_t plan_version = 0;
  bool shadow = false;                        // Shadow mode: the client sets no clock.
  std::map<std::string, double> counts = {};  // "calls", "late", ...
  // Computations that its iterations run, where it has no plan and knows them.
  std::optional<ComputationCounts> ran = {};
  std::optional<RankConditions> conditions = {};  // Once in a while.
  std::string version = {};                       // Of the client. Empty: an older one.
  std::optional<AgentReport> agent = {};          // None: it has none, or is an older client.
  // Notes of the server: the version of the relay that sent this, or none; and the time when it
  // came, of Moment::day_seconds.
  std::string relay = {};
  double heard_at_seconds = 0;
};
struct Reports {
  std::vector<IterationReport> reports = {};
  std::vector<ClientReport> clients = {};
};

// The server's answer to reports.
struct Trouble {
  std::string client = {};    // As it called itself.
  std::string sentence = {};  // What is wrong.
};
struct ReportsTaken {
  std::size_t reports = 0;
  std::vector<Trouble> troubles = {};
};

extern const Message<Gpu> kGpu;
extern const Message<Rank> kRank;
extern const Message<Measurements> kMeasurements;
extern const Message<Reports> kReports;
extern const Message<ReportsTaken> kReportsTaken;

}  // namespace perseus::wire

#endif  // PERSEUS_WIRE_REPORTS_H_
