// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SITE_DAYS_DAYS_H_
#define PERSEUS_SITE_DAYS_DAYS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "perseus/fleet.h"
#include "perseus/progress.h"
#include "perseus/result.h"

// A site for some days on paper: jobs that come and go, stragglers, events of the grid, prices.
// Several rules divide the power, one after the other, in the same days.
// docs/explanation/fleet-days.md defines every rule and every figure. Nothing here reads files; the
// same input gives the same answer.
namespace perseus::site {

inline constexpr double kSecondsOfMinute = 60;
inline constexpr double kSecondsOfHour = 3600;
inline constexpr double kSecondsOfDay = 24 * kSecondsOfHour;
inline constexpr double kJoulesOfKwh = 3.6e6;
inline constexpr double kJoulesOfMwh = 1e3 * kJoulesOfKwh;

// A value that changes in steps. The first value also holds before its time.
struct SeriesStep {
  double seconds = 0;
  double value = 0;
};
using StepSeries = std::vector<SeriesStep>;  // Times ascending. Empty: 0 all the time.
double ValueAt(const StepSeries& series, double seconds);

// What one healthy pipeline does where all GPUs of its job have one clock or one power cap.
struct CappedPoint {
  double cap = 0;  // MHz, or watts a GPU.
  IterationPoint point = {};
};

// Iterations that a job must have done some time after it came.
struct WorkDeadline {
  double seconds = 0;
  double share = 1;  // Of what maximum clocks do in that time without stragglers.
};

// A pipeline becomes `slowdown` times as slow, by chance.
struct ChanceOfStragglers {
  double share_of_gpus_per_day = 0;
  double duration_seconds = 3600;
  double slowdown = 1.2;
};

struct DaysJob {
  // With `plans`. `late` are pipelines that are late all the time.
  FleetJob fleet = {};
  std::string group = {};  // The name in the site file: copies share it.
  std::int64_t gpus = 1;
  IterationPoint full = {};              // A pipeline at maximum clocks.
  std::vector<CappedPoint> clocks = {};  // One clock for all GPUs of the job; caps ascending.
  std::vector<CappedPoint> caps = {};    // One power cap for all GPUs of the job; likewise.
  double arrives_seconds = 0;
  double spread_seconds = 0;                 // It comes later by up to this much, by chance.
  std::optional<double> lasts_seconds = {};  // Leaves so long after it came.
  std::optional<double> iterations = {};     // Leaves when it has done these.
  std::optional<WorkDeadline> deadline = {};
  double noise = 0;  // Standard deviation of an iteration's time, over its mean.
  ChanceOfStragglers stragglers = {};
};

// An order to draw less for a while. One of the two limits is given.
struct PowerEvent {
  double start_seconds = 0;
  double duration_seconds = 0;
  double notice_seconds = 0;  // It is known so long before.
  std::optional<double> limit_watts = {};
  std::optional<double> limit_share = {};  // Of the node's usual limit.
  std::size_t node = 0;
};

struct DaysSite {
  std::vector<PowerNode> nodes = {PowerNode{}};
  double meter_factor = 1;
  std::vector<DaysJob> jobs = {};
  std::vector<PowerEvent> events = {};
  StepSeries price_per_joule = {};
  StepSeries co2_grams_per_joule = {};
  // How fast the site's budget may change; infinite: at once.
  double ramp_up_watts_per_second = kNoPowerLimit;
  double ramp_down_watts_per_second = kNoPowerLimit;
  // What a job without a deadline must do of its work at maximum clocks, where a price is known.
  double work_share = 1;
};

struct DaysSpec {
  double seconds = 7 * 86400.0;
  std::vector<std::uint64_t> seeds = {0};
  ProgressFunction progress = {};
};

// What a rule made of the days. Limits and ramps are those of the meter.
struct DaysFigures {
  double lost_percent = 0;  // Weighted work, against maximum clocks in the same days.
  double energy_joules = 0;
  double cost = 0;
  double co2_grams = 0;
  double over_seconds = 0;           // With any node over its limit,
  double over_most_watts = 0;        // by at most this,
  double over_joules = 0;            // and at node 0 by this much energy in all.
  double rise_watts_per_second = 0;  // Steepest from the mean of a minute to that of the next.
  double fall_watts_per_second = 0;
  double deadlines_missed = 0;
  double too_slow_seconds = 0;  // Sum over jobs: slower than their owners accept, or paused.
  double fairness = 1;          // Jain's index of what each job keeps of its work.
  double plan_changes = 0;
};

// A job between two changes. A pause has no iterations.
struct JobSpan {
  double from_seconds = 0;
  double to_seconds = 0;
  double watts = 0;
  double iteration_seconds = 0;  // Infinite in a pause. Without noise.
  double speed = 0;              // Iterations a second over those at maximum clocks.
  double full_speed = 0;         // The same at maximum clocks with the same stragglers.
  double full_watts = 0;         // What maximum clocks draw there.
  bool too_slow = false;
};

struct JobDays {
  double arrives_seconds = 0;
  double leaves_seconds = 0;  // Or the end of the days.
  double iterations = 0;      // Done.
  bool missed = false;        // Its deadline.
  std::vector<JobSpan> spans = {};
};

struct PriceStep {
  double seconds = 0;
  double price_per_watt = 0;  // Objective a watt, of node 0.
  double weight = 0;          // Sum over the jobs that are there.
};

// One rule in the days of one seed.
struct RuleDays {
  DaysFigures figures = {};
  std::vector<JobDays> jobs = {};      // [job]
  std::vector<PriceStep> prices = {};  // Where the rule knows one.
};

struct RuleAnswer {
  std::string rule = {};                  // "proportional-cap"
  std::string title = {};                 // For people.
  std::string says = {};                  // A sentence.
  std::vector<DaysFigures> figures = {};  // [seed]
  RuleDays first = {};                    // Of the first seed, in full.
};

struct DaysAnswer {
  std::vector<RuleAnswer> rules = {};
  int deadlines = 0;                    // In the days.
  std::vector<SeriesStep> limits = {};  // Of node 0, with events.
};

// Errors: kInvalidInput where numbers are out of range; those of DividePower() but kInfeasible:
// where a limit cannot be kept, all jobs go as slowly as their owners accept.
Result<DaysAnswer> EmulateDays(const DaysSite& site, const DaysSpec& spec);

// Mean power of each job over equal intervals, at its GPUs and nodes: [job][interval].
std::vector<std::vector<double>> PowerSeries(const RuleDays& days, double seconds, int intervals);

}  // namespace perseus::site

#endif  // PERSEUS_SITE_DAYS_DAYS_H_
