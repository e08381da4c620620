// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_TESTS_SERVER_SIMULATION_SIMULATED_STORE_H_
#define PERSEUS_TESTS_SERVER_SIMULATION_SIMULATED_STORE_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "server/detect/iteration_sums.h"
#include "server/runtime/job_store.h"
#include "server/store/facts.h"

// One job's rows as a database would hold them, and what a server has asked of it and not heard
// of yet. Nothing happens by itself: the simulation decides when, and what fails.
namespace perseus::server {

// The rows, and the rules of the tables. A value, so that what was not synced can be lost.
struct SimulatedRows {
  store::StoredJob job;  // Without its curve, which is long: all copies share it.
  std::shared_ptr<const store::CurveRecord> curve;
  bool is_there = false;
  int epoch = 0;                                               // Of the active server.
  std::map<std::int64_t, store::IterationSummary> iterations;  // By version.
  // By span.
  std::map<std::pair<store::Resolution, std::int64_t>, store::HistoryRow> history;

  // Writes all of `facts` or none: false where the tables refuse them.
  bool Commit(const std::vector<store::Fact>& facts);
  StoredSums Sums() const;
};

// Makes plans and builds jobs and curves, each once for all runs: they cost milliseconds.
class PlanMaker {
 public:
  PlanMaker();
  const store::JobRecord& record() const { return record_; }
  // The job with this profile. All profiles have the same figures, so that plans are made only
  // once; but each is another object.
  const std::shared_ptr<const Job>& JobOf(const std::string& profile_csv);
  // What a planner makes of a step, where the store has this record of the job.
  AdoptPlans Make(const PlanningStep& step, const store::JobRecord& stored);
  // The curve of a record that Make() made.
  std::shared_ptr<const Curve> CurveOf(const std::shared_ptr<const Job>& job,
                                       const store::CurveRecord& record);
  // The job that these rows hold.
  JobLife LifeOf(const SimulatedRows& rows);

 private:
  store::JobRecord record_;
  std::map<std::string, std::shared_ptr<const Job>> jobs_;  // By the profile's text.
  store::CurveRecord ladders_[2];
  // By job, revision, first id and text.
  std::map<std::tuple<const Job*, int, std::int64_t, std::string>, std::shared_ptr<const Curve>>
      curves_;
};

// What one server sees of the rows. Its calls queue; the simulation carries them out.
class SimulatedGate : public JobStore {
 public:
  struct Write {
    std::vector<store::Fact> facts;
    std::function<bool()> is_wanted;
    Written written;
    bool was_wanted = true;  // When the server asked for it.
  };

  void Add(std::vector<store::Fact> facts, std::function<bool()> is_wanted,
           Written written) override {
    const bool was_wanted = !is_wanted || is_wanted();
    writes.push_back({std::move(facts), std::move(is_wanted), std::move(written), was_wanted});
  }
  void GiveUp(const std::string& /*why*/) override { has_given_up = true; }
  void FindProfile(const std::string& /*layout*/, const store::JobRecord& /*record*/,
                   ProfileFound found) override {
    answers.emplace_back([found = std::move(found)] { found(std::nullopt); });
  }

  std::deque<Write> writes;                   // Not committed yet.
  std::deque<std::function<void()>> answers;  // Of commits, in their order.
  bool has_given_up = false;
};

}  // namespace perseus::server

#endif  // PERSEUS_TESTS_SERVER_SIMULATION_SIMULATED_STORE_H_
