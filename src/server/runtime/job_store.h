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
#include "server/store/facts.h"

namespace perseus::server {

// The store as jobs use it. No call waits. Each callback is called once, from any thread, and never
// before the call returns. Thread-safe.
class JobStore {
 public:
  using Written = std::function<void(const store::Revision&)>;
  using ProfileFound = std::function<void(std::optional<UseProfile>)>;

  JobStore() = default;
  JobStore(const JobStore&) = delete;
  JobStore& operator=(const JobStore&) = delete;
  virtual ~JobStore() = default;

  // As store::Store::Add(). Facts about one job are written in the order of the calls.
  virtual void Add(std::vector<store::Fact> facts, std::function<bool()> is_wanted,
                   Written written) = 0;
  // The job's memory is behind the store: this server must read all jobs anew.
  virtual void GiveUp(const std::string& why) = 0;

  // Finds the newest profile of this layout from which the job of `record` can be built.
  virtual void FindProfile(const std::string& layout, const store::JobRecord& record,
                           ProfileFound found) = 0;
};

}  // namespace perseus::server

#endif  // PERSEUS_SERVER_RUNTIME_JOB_STORE_H_
