// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_DETECT_JOB_WATCH_H_
#define PERSEUS_SERVER_DETECT_JOB_WATCH_H_

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

#include "server/detect/iteration_collector.h"
#include "server/detect/iteration_figures.h"
#include "server/detect/realised_savings.h"
#include "server/detect/recent_iterations.h"
#include "server/detect/straggler_detector.h"
#include "server/domain/published_plan.h"
#include "server/domain/watch_settings.h"

namespace perseus::server {

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
  std::string together;  // What the slow ranks have in common: "all ranks of pipeline 1". Or empty.
  double drift_factor = 1;
  double slow_factor = 1;
  bool knows_iterations = false;               // Whether slow_factor says anything.
  std::string slow_cause;                      // Why iterations are slow. Empty: they are not.
  std::deque<WatchEvent> events;               // The last events.
  std::map<std::string, std::int64_t> counts;  // Number of events, by kind.
  std::vector<Realised> realised;
  std::optional<RecentFigures> recent;  // None: no iteration was reported to this server yet.
  IterationTotals totals;
  std::int64_t dropped_cycles = 0;
};

// What an iteration of one rank saved. Negative: it used more.
struct Saved {
  double promised_joules = 0;  // Against maximum clocks, by what its plan promises.
  // Against no clock set. None: its plan was not compared.
  std::optional<double> realised_joules = {};
};

// Watches one job's iterations: finds stragglers, and compares the plan with no clock set. Knows
// only the reports that ranks sent to this server. Only its WatchState is durable. One thread at a
// time.
class JobWatch {
 public:
  // Sets the state that the store has now. `stragglers`: ids of the job's stragglers. If somebody
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
  std::map<int, double> settled_;  // What the detector said of ranks when the store last did.
  std::deque<std::shared_ptr<const PublishedPlan>> plans_;  // By version; the last ones.
  std::map<std::pair<const Curve*, std::int64_t>, std::vector<SecondsByType>> busy_;
  std::map<int, Place> places_;
  IterationCollector<WatchedIteration> collector_;
  StragglerDetector detector_;
  std::map<int, std::string> causes_;                        // Of ranks that are slow.
  double waiting_share_ = 0;                                 // Of the slow iterations.
  std::shared_ptr<const PublishedPlan> slow_plan_;           // When they began to be slow.
  std::optional<std::pair<std::int64_t, Finding>> slow_at_;  // To be announced then.
  RealisedSavings savings_;
  RecentIterations recent_;
  std::map<std::int64_t, double> compared_;  // The realised saving of a version, as it was last.
  std::vector<WatchEvent> untold_;
  std::deque<WatchEvent> last_;
  std::map<std::string, std::int64_t> counts_;
};

}  // namespace perseus::server

#endif  // PERSEUS_SERVER_DETECT_JOB_WATCH_H_
