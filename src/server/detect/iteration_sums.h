// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_DETECT_ITERATION_SUMS_H_
#define PERSEUS_SERVER_DETECT_ITERATION_SUMS_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "server/detect/reports.h"
#include "server/store/facts.h"

namespace perseus::server {

// The sums of a job in the store.
struct StoredSums {
  std::vector<store::IterationSummary> own = {};  // Written by this process.
  // Written by other servers, and by this server before its restart.
  std::vector<store::IterationSummary> elsewhere = {};
  std::vector<store::HistoryRow> history = {};  // The last rows of this process.
};

// Sums of the iterations that ranks reported, by version of the plan; version 0 is default clocks.
// Each write to the store replaces the sum that this process wrote before. So a job that
// is loaded again must begin with the sums that this process has stored; otherwise a new sum would
// replace acknowledged reports.
class IterationSums {
 public:
  IterationSums(std::string job, const StoredSums& stored);

  // Adds a report that a rank sent to this server.
  void Add(const IterationReport& report);
  // Replaces StoredSums::elsewhere.
  void SetElsewhere(const std::vector<store::IterationSummary>& summaries);

  bool has_news() const { return !unwritten_.empty(); }
  // The sums that the store does not have yet. From then on they count as written, unless
  // Unwritten() is called.
  std::vector<store::Fact> Take();
  // The store refused these facts of Take(). Other facts are passed over.
  void Unwritten(const std::vector<store::Fact>& facts);
  // The store has these facts of Take().
  void Written(const std::vector<store::Fact>& facts);
  // The reports whose sums the store is not known to have.
  std::int64_t unwritten_reports() const;

  // The sums of all servers, by version.
  std::vector<store::IterationSummary> All() const;

 private:
  std::string job_;
  std::map<std::int64_t, store::IterationSummary> own_;
  std::map<std::int64_t, store::IterationSummary> elsewhere_;
  std::set<std::int64_t> unwritten_;
  std::map<std::int64_t, std::int64_t> unwritten_reports_;  // By version.
};

}  // namespace perseus::server

#endif  // PERSEUS_SERVER_DETECT_ITERATION_SUMS_H_
