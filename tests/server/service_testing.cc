// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "server/service_testing.h"

#include <fmt/format.h>

#include <chrono>
#include <future>
#include <stdexcept>
#include <thread>
#include <utility>

namespace perseus::server {

const char* const kSmallProfile =
    "stage,instruction,frequency,time,energy\n"
    "0,forward,1400,1,100\n0,forward,1200,1.25,70\n0,forward,1000,1.6,60\n"
    "0,backward,1400,2,200\n0,backward,1200,2.5,140\n0,backward,1000,3.2,120\n"
    "1,forward,1400,1.5,150\n1,forward,1200,1.9,110\n1,forward,1000,2.4,95\n"
    "1,backward,1400,3,300\n1,backward,1200,3.8,220\n1,backward,1000,4.8,190\n";

const char* const kSmallSettings =
    R"({"schedule":"1f1b","microbatches":4,"stages":2,"data_parallel":2,"blocking_power":20,)"
    R"("effort":0.05})";

const char* const kUnmeasured =
    R"({"schedule":"1f1b","microbatches":4,"stages":2,"data_parallel":2,"effort":0.05})";

bool Eventually(const std::function<bool()>& holds) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(120);
  while (!holds()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

void ServiceTest::Start(ServiceOptions options) {
  Result<std::unique_ptr<store::Store>> store =
      store::Store::Open("sqlite:" + directory_.Path("store.sqlite"));
  if (!store) throw std::runtime_error(store.error().message);
  if (!options.now_seconds) options.now_seconds = [this] { return now_.load(); };
  if (!options.steady_seconds) options.steady_seconds = options.now_seconds;
  options.tick_seconds = 0.005;
  Result<std::unique_ptr<JobService>> service =
      JobService::Start(*std::move(store), std::move(options));
  if (!service) throw std::runtime_error(service.error().message);
  service_ = *std::move(service);
}

void ServiceTest::Restart(ServiceOptions options) {
  service_.reset();
  Start(std::move(options));
}

std::shared_ptr<ManagedJob> ServiceTest::Create(const std::string& settings,
                                                const std::string& profile,
                                                const std::string& client_key) {
  Outcome<JobSpec> spec = MakeJobSpec(settings, profile);
  if (!spec) throw std::runtime_error(spec.error().message);
  spec->client_key = client_key;
  spec->name = "small";
  const Outcome<JobService::Created> created = sync::Create(*service_, *spec);
  if (!created) throw std::runtime_error(created.error().message);
  return created->job;
}

std::shared_ptr<ManagedJob> ServiceTest::Find(const std::shared_ptr<ManagedJob>& job) const {
  return sync::Find(*service_, job->id());
}

store::RankRecord SmallRank(int rank) {
  return {.rank = rank,
          .dp_rank = rank / 2,
          .pp_rank = rank % 2,
          .tp_rank = 0,
          .gpu_uuid = fmt::format("GPU-{}", rank),
          .gpu_name = "A100",
          .node = fmt::format("node{}", rank / 2),
          .clocks_mhz = {1000, 1200, 1400}};
}

store::Measurements Sweep(int rank, bool done) {
  store::Measurements measured{.rank = rank, .done = done};
  const int stage = rank % 2;
  for (const int clock : {1400, 1200, 1000}) {
    const double slow = 1400.0 / clock;
    const double base = stage == 0 ? 1 : 1.5;
    measured.rows.push_back({.stage = stage,
                             .type = ComputationType::kForward,
                             .clock_mhz = clock,
                             .time_seconds = base * slow,
                             .energy_joules = 100 * base / slow / slow});
    measured.rows.push_back({.stage = stage,
                             .type = ComputationType::kBackward,
                             .clock_mhz = clock,
                             .time_seconds = 2 * base * slow,
                             .energy_joules = 200 * base / slow / slow});
  }
  measured.blocking_power_watts = 20;
  return measured;
}

Outcome<std::int64_t> Register(ManagedJob& job, const store::RankRecord& rank) {
  std::promise<Outcome<std::int64_t>> answer;
  job.Do(RegisterRank{rank}, {}, [&](const Outcome<Answer>& met) {
    answer.set_value(met ? Outcome<std::int64_t>(met->plan_version) : tl::unexpected(met.error()));
  });
  return answer.get_future().get();
}

void RegisterAll(ManagedJob& job) {
  for (int rank = 0; rank < job.shape().world_size(); ++rank) {
    const Outcome<std::int64_t> registered = Register(job, SmallRank(rank));
    ASSERT_TRUE(registered) << registered.error().message;
  }
}

Outcome<void> Measure(ManagedJob& job, const store::Measurements& measured) {
  const auto taken = DoAndWait(job, TakeMeasurements{measured});
  if (!taken) return tl::unexpected(taken.error());
  return {};
}

void AwaitRefined(const ManagedJob& job) {
  // A search may take long, as under ThreadSanitizer, but not without progress.
  JobView seen = job.View();
  while (!seen.refined) {
    const double before = seen.progress;
    ASSERT_TRUE(Eventually([&] {
      seen = job.View();
      return seen.refined || seen.progress != before;
    }));
  }
}

bool AwaitState(const ManagedJob& job, store::JobState state) {
  return Eventually([&] { return job.View().record.state == state; });
}

}  // namespace perseus::server
