// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_DETECT_ITERATION_HISTORY_H_
#define PERSEUS_SERVER_DETECT_ITERATION_HISTORY_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "server/store/facts.h"

namespace perseus::server {

// Figures of one iteration of a job, as far as ranks reported it.
struct IterationFigures {
  std::size_t ranks = 0;  // That reported it.
  double seconds = 0;     // Of the slowest of these: the others wait for it.
  std::size_t energy_ranks = 0;
  double energy_ranks_joules = 0;  // Of these ranks together.

  // Of all ranks, while `expected` of them should report. None: not each of them told its energy.
  std::optional<double> JoulesOf(std::size_t expected) const {
    if (energy_ranks == 0 || energy_ranks < expected) return std::nullopt;
    return energy_ranks_joules;
  }
};

// `Report` has the members `time_seconds` and `energy_joules`.
template <typename Report>
IterationFigures FiguresOf(const std::vector<Report>& reports) {
  IterationFigures figures{.ranks = reports.size()};
  for (const Report& report : reports) {
    figures.seconds = std::max(figures.seconds, report.time_seconds);
    if (!report.energy_joules) continue;
    ++figures.energy_ranks;
    figures.energy_ranks_joules += *report.energy_joules;
  }
  return figures;
}

// The cost of one iteration of one rank.
struct IterationCost {
  double seconds = 0;
  std::optional<double> joules = {};  // None: the rank did not tell; then the rest does not count.
  // Savings of the rank: against maximum clocks as the plan predicts, and against default clocks by
  // a comparison. Negative: it used more.
  double predicted_joules = 0;
  std::optional<double> measured_saved_joules = {};  // None: the plan was not compared.
};

// Sums of the iterations that ranks reported, by minute, hour and day. As with IterationSums, each
// write replaces the earlier one of the same span, so a job that is loaded must begin with its last
// rows. A row stays in memory until its span is over and the
// store has all of it. Not thread-safe.
class IterationHistory {
 public:
  // `stored`: the last row of each resolution in the store.
  IterationHistory(std::string job, const std::vector<store::HistoryRow>& stored);

  // `ranks`: of the job. Spans never go back: while the clock does, the last ones go on.
  void Add(const IterationCost& cost, int ranks, double day_seconds);
  // An iteration that is complete. Nothing is known of spans in which no rank reported.
  void AddIteration(const IterationFigures& figures, double day_seconds);

  bool has_news() const { return !unwritten_.empty(); }
  // As the functions of IterationSums; other facts are passed over.
  std::vector<store::Fact> Take();
  void Unwritten(const std::vector<store::Fact>& facts);
  void Written(const std::vector<store::Fact>& facts);

 private:
  using Span = std::pair<store::Resolution, std::int64_t>;

  struct Entry {
    store::HistoryRow row = {};
    std::int64_t stored_size = 0;  // Of the row as the store is known to have it.
  };

  // How much was added to a row.
  static std::int64_t SizeOf(const store::HistoryRow& row) {
    return row.reports + row.times.iterations;
  }
  void SetNow(double day_seconds);
  Span SpanNow(store::Resolution resolution) const;
  void AddTo(store::Resolution resolution, const IterationCost& cost, int ranks,
             double day_seconds);
  void Forget();

  const std::string job_;
  std::int64_t now_seconds_ = 0;  // The latest time of day.
  std::map<Span, Entry> entries_;
  std::set<Span> unwritten_;
};

}  // namespace perseus::server

#endif  // PERSEUS_SERVER_DETECT_ITERATION_HISTORY_H_
