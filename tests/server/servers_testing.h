// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_TESTS_SERVER_SERVERS_TESTING_H_
#define PERSEUS_TESTS_SERVER_SERVERS_TESTING_H_

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "server/runtime/job_service.h"
#include "server/service_testing.h"
#include "support/postgres.h"

namespace perseus::server {

// Two servers on one PostgreSQL, each with a clock that the test sets.
class ServersTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite();
  static void TearDownTestSuite();
  void SetUp() override;

  static void OnProblem(const std::string& sentence) { ADD_FAILURE() << sentence; }
  void Start(int server, std::function<void(const std::string&)> on_problem = OnProblem);
  std::unique_ptr<store::Store> OpenStore() const;

  // At server 0.
  std::shared_ptr<ManagedJob> Create(const std::string& settings = kSmallSettings,
                                     const std::string& profile = kSmallProfile,
                                     const std::string& client_key = "key");
  Outcome<JobService::Created> CreateAt(int server, const std::string& settings,
                                        const std::string& profile, const std::string& client_key);
  // The same job as the other server knows it.
  std::shared_ptr<ManagedJob> Other(const std::shared_ptr<ManagedJob>& job);
  // A job that runs and that no better plan is to come for, as both servers see it.
  void MakeRunning();
  static std::int64_t VersionOf(ManagedJob& job) { return job.board().version(); }
  // Both have the same version, and it stays so for some ticks.
  bool AgreesOn(std::int64_t version);

  std::string database_;
  std::array<std::atomic<double>, 2> now_ = {1000, 1000};
  std::array<std::unique_ptr<JobService>, 2> services_;
  std::array<std::shared_ptr<ManagedJob>, 2> jobs_;

  static std::unique_ptr<PostgresServer> postgres_;
};

}  // namespace perseus::server

#endif  // PERSEUS_TESTS_SERVER_SERVERS_TESTING_H_
