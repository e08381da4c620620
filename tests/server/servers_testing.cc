// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "server/servers_testing.h"

#include <chrono>
#include <stdexcept>
#include <thread>
#include <utility>

namespace perseus::server {

std::unique_ptr<PostgresServer> ServersTest::postgres_;

void ServersTest::SetUpTestSuite() {
  if (PostgresServer::WhyMissing().empty()) postgres_ = std::make_unique<PostgresServer>();
}

void ServersTest::TearDownTestSuite() { postgres_.reset(); }

void ServersTest::SetUp() {
  if (postgres_ == nullptr) GTEST_SKIP() << PostgresServer::WhyMissing();
  static int databases = 0;
  database_ = "servers" + std::to_string(++databases);
  postgres_->Run("CREATE DATABASE " + database_);
  Start(0);
  Start(1);
}

std::unique_ptr<store::Store> ServersTest::OpenStore() const {
  Result<std::unique_ptr<store::Store>> store = store::Store::Open(postgres_->Uri(database_));
  if (!store) throw std::runtime_error(store.error().message);
  return *std::move(store);
}

void ServersTest::Start(int server, std::function<void(const std::string&)> on_problem) {
  ServiceOptions options;
  options.now_seconds = [&now = now_[server]] { return now.load(); };
  options.steady_seconds = options.now_seconds;
  options.tick_seconds = 0.005;
  options.on_problem = std::move(on_problem);
  Result<std::unique_ptr<JobService>> service = JobService::Start(OpenStore(), std::move(options));
  if (!service) throw std::runtime_error(service.error().message);
  services_[server] = *std::move(service);
}

Outcome<JobService::Created> ServersTest::CreateAt(int server, const std::string& settings,
                                                   const std::string& profile,
                                                   const std::string& client_key) {
  Outcome<JobSpec> spec = MakeJobSpec(settings, profile);
  if (!spec) throw std::runtime_error(spec.error().message);
  spec->client_key = client_key;
  return sync::Create(*services_[server], *spec);
}

std::shared_ptr<ManagedJob> ServersTest::Create(const std::string& settings,
                                                const std::string& profile,
                                                const std::string& client_key) {
  const auto created = CreateAt(0, settings, profile, client_key);
  if (!created) throw std::runtime_error(created.error().message);
  return created->job;
}

std::shared_ptr<ManagedJob> ServersTest::Other(const std::shared_ptr<ManagedJob>& job) {
  return sync::Find(*services_[1], job->id());
}

void ServersTest::MakeRunning() {
  jobs_[0] = Create();
  jobs_[1] = Other(jobs_[0]);
  ASSERT_NE(jobs_[1], nullptr);
  for (int rank = 0; rank < 4; ++rank) {
    ASSERT_TRUE(Register(*jobs_[rank % 2], SmallRank(rank)));
  }
  for (const auto& job : jobs_) {
    ASSERT_TRUE(Eventually([&] {
      const JobView view = job->View();
      return view.refined && view.record.state == store::JobState::kRunning;
    }));
  }
}

bool ServersTest::AgreesOn(std::int64_t version) {
  const auto agree = [&] {
    return VersionOf(*jobs_[0]) == version && VersionOf(*jobs_[1]) == version;
  };
  if (!Eventually(agree)) return false;
  // Long enough for ticks of both and what they lead to.
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  return agree();
}

}  // namespace perseus::server
