// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_RUNTIME_JOB_STORE_H_
#define PERSEUS_SERVER_RUNTIME_JOB_STORE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "perseus/result.h"
#include "server/domain/decide.h"
#include "server/domain/reading.h"
#include "server/store/facts.h"

namespace perseus::server {

// The store as jobs use it. No call waits. Each callback is called once, from any thread, and never
// before the call returns. Thread-safe.
class JobStore {
 public:
  using Written = std::function<void(const Result<store::JobMarks>&)>;
  using Read = std::function<void(const Result<Reading>&)>;
  using ProfileFound = std::function<void(std::optional<UseProfile>)>;
  using IterationsRead = std::function<void(const Result<std::vector<store::IterationSummary>>&)>;

  JobStore() = default;
  JobStore(const JobStore&) = delete;
  JobStore& operator=(const JobStore&) = delete;
  virtual ~JobStore() = default;

  // Whether other servers may write at the same time.
  virtual bool is_shared() const = 0;

  // As store::Store::Add(). Facts about one job are written in the order of the calls.
  virtual void Add(std::vector<store::Fact> facts, std::optional<std::int64_t> expected_revision,
                   std::function<bool()> is_wanted, Written written) = 0;

  // Reads the job's changes since the state `known`, and builds its objects.
  virtual void ReadJob(const std::string& id, Known known, Read read) = 0;

  // Finds the newest profile of this layout from which the job of `record` can be built.
  virtual void FindProfile(const std::string& layout, const store::JobRecord& record,
                           ProfileFound found) = 0;

  // Reads the sums of iterations that ranks reported to other servers.
  virtual void ReadIterations(const std::string& id, IterationsRead read) = 0;
};

}  // namespace perseus::server

#endif  // PERSEUS_SERVER_RUNTIME_JOB_STORE_H_
