// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_DETECT_JOB_WATCH_H_
#define PERSEUS_SERVER_DETECT_JOB_WATCH_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "server/detect/iteration_history.h"
#include "server/detect/measured_savings.h"
#include "server/detect/straggler_detector.h"
#include "server/domain/published_plan.h"
#include "server/domain/watch_settings.h"
#include "server/planning/curve.h"

namespace perseus::server {

// How long each rank of a pipeline computes in one iteration, by type of computation: [pp_rank].
// `plan` null: at maximum clocks.
std::vector<SecondsByType> BusyTimes(const Curve& curve, const CurvePlan* plan);

// Groups reports by iteration and returns iterations in order. Ranks send their reports in batches
// at different times. An iteration is returned once all known ranks have reported it. It is
// returned without some ranks if others are kFarAhead iterations ahead, or if its first report is
// older than kLongSeconds. Memory is bounded. Not thread-safe. `Report` has the members `rank` and
// `iteration`.
template <typename Report>
class IterationCollector {
 public:
  static constexpr std::int64_t kFarAhead = 64;  // Iterations.
  static constexpr double kLongSeconds = 15;     // Three default intervals between reports.
  static constexpr std::size_t kMostIterations = 256;

  using Complete = std::pair<std::int64_t, std::vector<Report>>;

  // The number of ranks that should report. Only used in the first kLongSeconds; later, the ranks
  // that have reported count.
  void Expect(std::size_t ranks) { expected_ = ranks; }

  // Returns true if iteration numbers went back, as training does when it returns to a checkpoint.
  // All that was collected is then dropped.
  bool Add(const Report& report, double now_seconds) {
    const auto last = newest_.find(report.rank);
    const bool anew = last != newest_.end() && report.iteration <= last->second &&
                      report.iteration + kFarAhead < last->second;
    if (anew) {
      newest_.clear();
      waiting_.clear();
      done_ = report.iteration - 1;
    } else if (last != newest_.end() && report.iteration <= last->second) {
      return false;  // Reported before.
    }
    if (newest_.empty()) began_seconds_ = now_seconds;
    newest_[report.rank] = report.iteration;
    if (newest_.size() == 1 && waiting_.empty()) done_ = report.iteration - 1;
    if (report.iteration <= done_) return anew;  // Too late.
    Waiting& waiting = waiting_[report.iteration];
    if (waiting.reports.empty()) waiting.since_seconds = now_seconds;
    waiting.reports.push_back(report);
    return anew;
  }

  // Returns the next complete iteration in `complete`; false: there is none.
  bool Take(double now_seconds, Complete* complete) {
    if (waiting_.empty()) return false;
    const auto first = waiting_.begin();
    const bool is_young = now_seconds - began_seconds_ < kLongSeconds;
    const bool all = is_young && newest_.size() < expected_
                         ? false
                         : first->second.reports.size() >= newest_.size() || Passed(first->first);
    const bool left_behind = waiting_.rbegin()->first - first->first > kFarAhead ||
                             waiting_.size() > kMostIterations ||
                             now_seconds - first->second.since_seconds > kLongSeconds;
    if (!all && !left_behind) return false;
    *complete = {first->first, std::move(first->second.reports)};
    done_ = first->first;
    waiting_.erase(first);
    // Do not wait any more for ranks that are so far behind.
    if (!all) std::erase_if(newest_, [&](const auto& of) { return of.second + kFarAhead < done_; });
    return true;
  }

  void Forget() { *this = IterationCollector(); }

 private:
  // Whether every rank has reported this or a later iteration. Remembers one rank that is behind,
  // and looks at all ranks only once that one has caught up.
  bool Passed(std::int64_t iteration) {
    const auto is_behind = [&](const auto& of) { return of.second < iteration; };
    const auto last = newest_.find(behind_);
    if (last != newest_.end() && is_behind(*last)) return false;
    const auto found = std::find_if(newest_.begin(), newest_.end(), is_behind);
    if (found == newest_.end()) return true;
    behind_ = found->first;
    return false;
  }

  struct Waiting {
    double since_seconds = 0;
    std::vector<Report> reports;
  };
  std::map<int, std::int64_t> newest_;  // By rank.
  std::map<std::int64_t, Waiting> waiting_;
  std::int64_t done_ = 0;
  int behind_ = 0;  // A rank.
  std::size_t expected_ = 0;
  double began_seconds_ = 0;
};

// Figures of a job's last iterations, as its ranks reported them.
struct RecentFigures {
  std::size_t iterations = 0;
  double iteration_seconds = 0;  // Median; of each iteration the slowest rank.
  std::optional<double>
      watts;              // Of all GPUs together. None: of no iteration all ranks reported it.
  double at_seconds = 0;  // When the last of them was complete.
};

// Of all iterations that one server heard of since it began.
struct IterationTotals {
  std::int64_t iterations = 0;
  std::int64_t with_energy = 0;  // Of these, all ranks told their energy:
  double joules = 0;
  // Savings of the iterations that all ranks ran with the plan.
  double predicted_joules = 0;       // Against maximum clocks, by what the plan predicts.
  double measured_saved_joules = 0;  // By a comparison of this plan at default clocks,
  double measured_lost_joules = 0;   // or lost, where the plan was measured to need more.
};

// Keeps the last iterations of one job. One thread at a time.
class RecentIterations {
 public:
  static constexpr std::size_t kMost = 16;

  // Adds one iteration. `joules`: of all ranks; none: not all told theirs.
  void Add(double seconds, std::optional<double> joules, double now_seconds);
  // Of an iteration that was added: the saving that the plan predicts and, where it was compared,
  // the measured one. Negative: it needed more.
  void AddSaved(double predicted_joules, std::optional<double> measured_saved_joules);
  // None: there was no iteration yet.
  std::optional<RecentFigures> Figures() const;
  const IterationTotals& totals() const { return totals_; }

 private:
  struct Iteration {
    double seconds = 0;
    std::optional<double> joules;
  };
  std::deque<Iteration> last_;
  double at_seconds_ = 0;
  IterationTotals totals_;
};

using wire::ReportedClocks;

// One iteration of one rank, with the rank's position.
struct WatchedIteration {
  int rank = 0;
  int dp_rank = 0;
  int pp_rank = 0;
  std::string node;
  std::int64_t iteration = 0;
  std::int64_t plan_version = 0;
  ReportedClocks clocks = ReportedClocks::kUnknown;
  double time_seconds = 0;
  double busy_seconds = 0;  // 0: not reported.
  SecondsByType busy_by_type = {};
  double tokens = 0;  // 0: not reported.
  std::optional<double> energy_joules = {};
};

// A slow rank, as clients are shown it.
struct ShownSlowRank {
  int rank = 0;
  int dp_rank = 0;
  int pp_rank = 0;
  std::string node;
  double factor = 1;
  std::int64_t since_iteration = 0;
  std::optional<std::int64_t> straggler = {};  // The id of its straggler record. None: no record.
  bool dismissed = false;                      // An operator cleared the record.
  std::string cause = {};                      // One sentence.
};

// Something that the watch found, for an event.
struct WatchEvent {
  std::string kind;  // "straggler", "factor", "recovered", "drift", ...
  std::string sentence;
  Finding finding;
};

// A snapshot of a job's watch, to show to clients.
struct WatchView {
  WatchSettings settings;
  std::size_t watched_ranks = 0;
  std::size_t reporting_ranks = 0;  // Ranks that lately reported iterations to this server.
  std::size_t ranks = 0;            // Registered ranks.
  std::vector<ShownSlowRank> slow;  // By rank.
  std::string together;  // Common to the slow ranks: "all ranks of pipeline 1". Or empty.
  double drift_factor = 1;
  double slow_factor = 1;
  bool knows_iterations = false;               // Whether slow_factor says anything.
  std::string slow_cause;                      // Why iterations are slow. Empty: they are not.
  std::deque<WatchEvent> events;               // The last events.
  std::map<std::string, std::int64_t> counts;  // Number of events, by kind.
  std::vector<MeasuredSaving> measured_savings;
  std::optional<RecentFigures> recent;  // None: no iteration was reported to this server yet.
  IterationTotals totals;
  std::int64_t dropped_cycles = 0;
};

// The saving of one rank in one iteration. Negative: it used more.
struct Saved {
  double predicted_joules = 0;  // Against maximum clocks, by what its plan predicts.
  // Against default clocks. None: its plan was not compared.
  std::optional<double> measured_saved_joules = {};
};

// Watches one job's iterations: finds stragglers, and compares the plan at default clocks. Knows
// only the reports that ranks sent to this server. Only its WatchState is durable. One thread at a
// time.
class JobWatch {
 public:
  // Sets the state that the store has now. `stragglers`: ids of the job's stragglers. If a client
  // cleared a straggler that this watch found, it is not reported again until its rank recovers.
  void SetState(const WatchState& state, const std::set<std::int64_t>& stragglers,
                double now_seconds);

  // Takes reports, and returns the iterations that are complete now. `plan`: the newest published
  // plan. `ranks`: number of the job's ranks.
  std::vector<IterationFigures> Take(const std::vector<WatchedIteration>& iterations,
                                     const std::shared_ptr<const PublishedPlan>& plan,
                                     std::size_t ranks, double now_seconds);

  // Events to announce. Each event is returned once.
  std::vector<WatchEvent> TakeEvents();

  // The stragglers that plans should take into account now. A straggler of the store stays as
  // stored, whichever server found it, until reports to this server show a change of its rank.
  std::vector<DetectedStraggler> Wanted() const;

  // Blocks that the comparison should have from now on. None: as it has them.
  std::optional<ComparisonBlocks> LongerBlocks() const { return savings_.Longer(); }

  // None: the rank did not run a plan that is known, or did not tell its energy.
  std::optional<Saved> SavedIn(const WatchedIteration& report) const;

  WatchView View(double now_seconds) const;
  std::map<int, double> Lateness() const { return detector_.Lateness(); }

 private:
  struct Place {
    int dp_rank = 0;
    int pp_rank = 0;
    std::string node;
    double heard_at_seconds = 0;
    double iteration_seconds = 0;
  };
  static constexpr std::size_t kMostPlans = 8;
  static constexpr std::size_t kMostEvents = 32;

  bool ReportsHere(int rank, double now_seconds) const;
  void Settle(const WatchState& before);
  void CountSaved(const std::vector<WatchedIteration>& reports);
  void Process(std::int64_t iteration, const std::vector<WatchedIteration>& reports);
  void Detect(std::int64_t iteration, const std::vector<WatchedIteration>& reports);
  void Compare(std::int64_t iteration, const std::vector<WatchedIteration>& reports);
  void Tell(std::int64_t iteration, const Finding& finding);
  const PublishedPlan* PlanOfVersion(std::int64_t version) const;
  const std::vector<SecondsByType>& BusyOf(const std::shared_ptr<const Curve>& curve,
                                           const CurvePlan* plan);
  RankIteration Expected(const WatchedIteration& report);
  void Remember(const std::shared_ptr<const PublishedPlan>& plan);
  void Announce(std::string kind, const Finding& finding, std::string sentence);
  std::string Together(const std::map<int, SlowRank>& slow) const;
  std::string PlaceText(int rank) const;
  std::string CauseText(const Finding& finding) const;
  std::string SlowCause() const;
  double PredictedGrowth(const std::map<int, SlowRank>& slow) const;

  WatchState state_;
  std::set<int> dismissed_;
  std::map<int, double> settled_;  // The detector's factors when the store last told the ranks.
  std::deque<std::shared_ptr<const PublishedPlan>> plans_;  // By version; the last ones.
  std::map<std::pair<const Curve*, std::int64_t>, std::vector<SecondsByType>> busy_;
  std::map<int, Place> places_;
  IterationCollector<WatchedIteration> collector_;
  StragglerDetector detector_;
  std::map<int, std::string> causes_;                        // Of ranks that are slow.
  double waiting_share_ = 0;                                 // Of the slow iterations.
  std::shared_ptr<const PublishedPlan> slow_plan_;           // When they began to be slow.
  std::optional<std::pair<std::int64_t, Finding>> slow_at_;  // To be announced then.
  MeasuredSavings savings_;
  RecentIterations recent_;
  std::map<std::int64_t, double> compared_;  // The measured saving of a version, as it was last.
  std::vector<WatchEvent> untold_;
  std::deque<WatchEvent> last_;
  std::map<std::string, std::int64_t> counts_;
};

}  // namespace perseus::server

#endif  // PERSEUS_SERVER_DETECT_JOB_WATCH_H_
