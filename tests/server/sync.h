// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_TESTS_SERVER_SYNC_H_
#define PERSEUS_TESTS_SERVER_SYNC_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "server/runtime/job_service.h"
#include "server/runtime/waiting.h"

// What the server does for who waits: commands, and what comes of them.
namespace perseus::server::sync {

using JobPointer = std::shared_ptr<ManagedJob>;

inline Outcome<Answer> SetTarget(ManagedJob& job, const std::string& text) {
  return DoAndWait(job, server::SetTarget{text});
}
inline Outcome<std::int64_t> AddStraggler(ManagedJob& job, const server::AddStraggler& request) {
  const auto added = DoAndWait(job, request);
  if (!added) return tl::unexpected(added.error());
  return added->straggler;
}
inline Outcome<Answer> ClearStraggler(ManagedJob& job, std::int64_t id) {
  return DoAndWait(job, server::ClearStraggler{id});
}
inline Outcome<Answer> ClearStragglers(ManagedJob& job) {
  return DoAndWait(job, server::ClearStragglers{});
}
inline Outcome<Answer> Finish(ManagedJob& job) { return DoAndWait(job, FinishJob{}); }
inline Outcome<Answer> Reprofile(ManagedJob& job) { return DoAndWait(job, server::Reprofile{}); }
inline Outcome<Answer> CancelReprofile(ManagedJob& job) {
  return DoAndWait(job, server::CancelReprofile{});
}
inline Outcome<Answer> SetWatch(ManagedJob& job,
                                const std::function<void(WatchSettings* settings)>& change) {
  WatchSettings settings = job.View().watch.settings;
  change(&settings);
  return DoAndWait(job, server::SetWatch{.mode = settings.mode,
                                         .threshold = settings.shift.threshold,
                                         .window = settings.shift.window,
                                         .comparison = settings.comparison});
}
// What the tick begins has ended then.
inline void Tick(ManagedJob& job) {
  job.Tick();
  static_cast<void>(DoAndWait(job, Advance{}));
}
inline Outcome<void> Report(ManagedJob& job, const std::vector<IterationReport>& reports,
                            const std::vector<ClientReport>& clients = {}) {
  return Await<Outcome<void>>([&](auto&& done) { job.Report(reports, clients, done); });
}
inline Outcome<JobService::Created> Create(JobService& service, const JobSpec& spec,
                                           store::JobOrigin origin = store::JobOrigin::kApi) {
  return Await<Outcome<JobService::Created>>(
      [&](auto&& created) { service.Create(spec, origin, {}, created); });
}
inline Outcome<JobPointer> Get(JobService& service, const std::string& id) {
  return Await<Outcome<JobPointer>>([&](auto&& found) { service.Get(id, found); });
}
// Null: there is none, or the store cannot be asked.
inline JobPointer Find(JobService& service, const std::string& id) {
  return Get(service, id).value_or(nullptr);
}
inline Outcome<JobPointer> GetByKey(JobService& service, const std::string& key) {
  return Await<Outcome<JobPointer>>([&](auto&& found) { service.GetByKey(key, found); });
}
inline Outcome<Answer> Delete(JobService& service, const std::string& id) {
  const auto job = Get(service, id);
  if (!job) return tl::unexpected(job.error());
  auto deleted = DoAndWait(**job, DeleteJob{});
  if (deleted) service.Forget(id);
  return deleted;
}

}  // namespace perseus::server::sync

#endif  // PERSEUS_TESTS_SERVER_SYNC_H_
