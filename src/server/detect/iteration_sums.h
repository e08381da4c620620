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
  std::vector<store::IterationSummary> iterations = {};
  std::vector<store::HistoryRow> history = {};  // The last row of each resolution.
};

// Sums of the iterations that ranks reported, by version of the plan; version 0 is default clocks.
// Each write to the store replaces the sum that was written before. So a job that is loaded must
// begin with the sums that are stored; otherwise a new sum would replace acknowledged reports.
class IterationSums {
 public:
  IterationSums(std::string job, const StoredSums& stored);

  void Add(const IterationReport& report);

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

  // By version.
  std::vector<store::IterationSummary> All() const;

 private:
  std::string job_;
  std::map<std::int64_t, store::IterationSummary> sums_;
  std::set<std::int64_t> unwritten_;
  std::map<std::int64_t, std::int64_t> unwritten_reports_;  // By version.
};

}  // namespace perseus::server

#endif  // PERSEUS_SERVER_DETECT_ITERATION_SUMS_H_
