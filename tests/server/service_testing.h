// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_TESTS_SERVER_SERVICE_TESTING_H_
#define PERSEUS_TESTS_SERVER_SERVICE_TESTING_H_

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "common/temporary_directory.h"
#include "server/runtime/job_service.h"
#include "server/sync.h"
#include "wire/message.h"

namespace perseus::server {

// An object as the API shows it.
template <typename T>
nlohmann::ordered_json JsonOf(const wire::Message<T>& message, const T& object) {
  return nlohmann::ordered_json::parse(wire::Write(message, object));
}

// Two stages, three clocks.
extern const char* const kSmallProfile;
// 1F1B with four microbatches on two pipelines of two ranks.
extern const char* const kSmallSettings;
// The same; its ranks measure.
extern const char* const kUnmeasured;

// True as soon as `holds` is; false after a long while.
bool Eventually(const std::function<bool()>& holds);

// The rank of the small job with this number; pipelines first.
store::RankRecord SmallRank(int rank);
// What it measures of its stage.
store::Measurements Sweep(int rank, bool done = true);
// These wait for the answer.
Outcome<std::int64_t> Register(ManagedJob& job, const store::RankRecord& rank);
void RegisterAll(ManagedJob& job);
Outcome<void> Measure(ManagedJob& job, const store::Measurements& measured);
// Waits, while the search makes progress, until a version is there and no better plan is to come.
void AwaitRefined(const ManagedJob& job);
bool AwaitState(const ManagedJob& job, store::JobState state);

// A service on a store in a temporary folder, with a clock that the test sets.
class ServiceTest : public ::testing::Test {
 protected:
  ServiceTest() { Start(); }

  void Start(ServiceOptions options = {});
  // As after a crash: what was not durable is gone.
  void Restart(ServiceOptions options = {});

  std::shared_ptr<ManagedJob> Create(const std::string& settings = kSmallSettings,
                                     const std::string& profile = kSmallProfile,
                                     const std::string& client_key = "key");
  std::shared_ptr<ManagedJob> Find(const std::shared_ptr<ManagedJob>& job) const;

  TemporaryDirectory directory_;
  std::atomic<double> now_ = 1000;
  std::unique_ptr<JobService> service_;
};

}  // namespace perseus::server

#endif  // PERSEUS_TESTS_SERVER_SERVICE_TESTING_H_
