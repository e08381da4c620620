// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_RUNTIME_STORE_GATE_H_
#define PERSEUS_SERVER_RUNTIME_STORE_GATE_H_

#include <optional>
#include <string>
#include <vector>

#include "server/detect/iteration_sums.h"
#include "server/runtime/job_store.h"
#include "server/runtime/readers.h"
#include "server/store/store.h"

namespace perseus::server {

// The JobStore of a real store. Thread-safe.
class StoreGate : public JobStore {
 public:
  // `store` and `readers` must outlive this object.
  StoreGate(store::Store& store, Readers& readers) : store_(store), readers_(readers) {}

  bool is_shared() const override { return store_.is_shared(); }
  void Add(std::vector<store::Fact> facts, std::optional<std::int64_t> expected_revision,
           std::function<bool()> is_wanted, Written written) override;
  void ReadJob(const std::string& id, Known known, Read read) override;
  void FindProfile(const std::string& layout, const store::JobRecord& record,
                   ProfileFound found) override;
  void ReadIterations(const std::string& id, IterationsRead read) override;

 private:
  store::Store& store_;
  Readers& readers_;
};

// A job as loaded from the store. LoadJobLife() waits for the store.
struct LoadedJob {
  JobLife life;
  StoredSums sums;
};
Result<std::optional<LoadedJob>> LoadJobLife(store::Store& store, const std::string& id);
LoadedJob LifeOf(const store::StoredJob& stored);

}  // namespace perseus::server

#endif  // PERSEUS_SERVER_RUNTIME_STORE_GATE_H_
