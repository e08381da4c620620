// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_DETECT_ITERATION_COLLECTOR_H_
#define PERSEUS_SERVER_DETECT_ITERATION_COLLECTOR_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace perseus::server {

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

}  // namespace perseus::server

#endif  // PERSEUS_SERVER_DETECT_ITERATION_COLLECTOR_H_
