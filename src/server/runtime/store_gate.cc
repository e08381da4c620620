// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "server/runtime/store_gate.h"

#include <memory>
#include <utility>

#include "server/domain/decide.h"
#include "server/planning/conditions_state.h"
#include "server/planning/job_spec.h"

namespace perseus::server {
namespace {

using store::Parts;

// Leaves objects out that cannot be built or read back: they are planned again.
void Build(const store::StoredJob& stored, Built* built) {
  if (built->job == nullptr) built->job = BuildJob(stored.job).value_or(nullptr);
  if (built->job == nullptr || !stored.curve) return;
  if (auto curve = Curve::Make(built->job, *stored.curve)) built->curve = *std::move(curve);
}

// Reads the parts; says so where there is no such job.
Result<void> ReadParts(store::Store& store, const std::string& id, Reading* reading) {
  auto stored = store.LoadJob(id, reading->parts);
  if (!stored) return tl::unexpected(stored.error());
  reading->is_gone = !stored->has_value();
  if (!reading->is_gone) reading->stored = **std::move(stored);
  return {};
}

Result<Reading> ReadNow(store::Store& store, const std::string& id, Known known) {
  Reading reading;
  reading.known = std::move(known);
  if (auto read = ReadParts(store, id, &reading); !read) return tl::unexpected(read.error());
  if (reading.is_gone) return reading;
  reading.parts = PartsToRead(reading.stored.marks, reading.known);
  if (reading.parts == Parts::kNone) return reading;
  if (auto read = ReadParts(store, id, &reading); !read) return tl::unexpected(read.error());
  if (reading.is_gone || !reading.stored.curve) return reading;
  reading.has_new_job = HasNewJob(reading.stored, reading.known);
  if (reading.has_new_job) {
    reading.parts = reading.parts | Parts::kProfile;
    if (auto read = ReadParts(store, id, &reading); !read) return tl::unexpected(read.error());
    if (reading.is_gone) return reading;
  } else {
    reading.built.job = reading.known.built.job;
  }
  Build(reading.stored, &reading.built);
  return reading;
}

}  // namespace

LoadedJob LifeOf(const store::StoredJob& stored) {
  Built built;
  // Notes on a given profile are shown at once. A planner builds a measured one, as it needs the
  // text, too.
  const bool is_given = stored.job.profile_source == kGivenSource;
  const bool is_over = stored.job.state == store::JobState::kFinished;
  if ((stored.curve || is_given) && !is_over) Build(stored, &built);
  return {.life = Replay(stored, built),
          .sums = {.own = stored.iterations_here,
                   .elsewhere = stored.iterations_elsewhere,
                   .history = stored.history_here}};
}

Result<std::optional<LoadedJob>> LoadJobLife(store::Store& store, const std::string& id) {
  const auto stored = store.LoadJob(id);
  if (!stored) return tl::unexpected(stored.error());
  if (!stored->has_value()) return std::nullopt;
  return LifeOf(**stored);
}

void StoreGate::Add(std::vector<store::Fact> facts, std::optional<std::int64_t> expected_revision,
                    std::function<bool()> is_wanted, Written written) {
  store_.Add(std::move(facts), std::move(written), expected_revision, std::move(is_wanted));
}

void StoreGate::ReadJob(const std::string& id, Known known, Read read) {
  readers_.Read(
      "read a job", [this, id, known = std::move(known)] { return ReadNow(store_, id, known); },
      std::move(read));
}

void StoreGate::FindProfile(const std::string& layout, const store::JobRecord& record,
                            ProfileFound found) {
  const auto find = [this, layout, record]() -> Result<std::optional<UseProfile>> {
    auto profile = store_.FindProfileOfLayout(layout);
    if (!profile) return tl::unexpected(profile.error());
    if (!profile->has_value()) return std::nullopt;
    store::JobRecord with_profile = record;
    with_profile.profile_csv = (*profile)->profile_csv;
    with_profile.blocking_power_watts = (*profile)->blocking_power_watts;
    if (const auto state = ParseConditionsState(record.conditions_json)) {
      with_profile.conditions_json = FormatConditionsState(StartedFrom(**profile, *state));
    }
    auto job = BuildJob(with_profile);
    if (!job) return tl::unexpected(job.error());
    return UseProfile{.profile = **std::move(profile), .job = *std::move(job)};
  };
  readers_.Read("reuse a profile", find, [found = std::move(found)](const auto& profile) {
    found(profile ? *profile : std::nullopt);
  });
}

void StoreGate::ReadIterations(const std::string& id, IterationsRead read) {
  const auto sums = [this, id]() -> Result<std::vector<store::IterationSummary>> {
    auto stored = store_.LoadJob(id, Parts::kIterations);
    if (!stored) return tl::unexpected(stored.error());
    if (!stored->has_value()) return {};
    return std::move((*stored)->iterations_elsewhere);
  };
  readers_.Read("read the sums of iterations", sums, std::move(read));
}

}  // namespace perseus::server
