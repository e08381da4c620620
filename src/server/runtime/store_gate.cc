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

// Leaves objects out that cannot be built or read back: they are planned again.
void Build(const store::StoredJob& stored, Built* built) {
  if (built->job == nullptr) built->job = BuildJob(stored.job).value_or(nullptr);
  if (built->job == nullptr || !stored.curve) return;
  if (auto curve = Curve::Make(built->job, *stored.curve)) built->curve = *std::move(curve);
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
          .sums = {.iterations = stored.iterations, .history = stored.history}};
}

Result<std::optional<LoadedJob>> LoadJobLife(store::Store& store, const std::string& id) {
  const auto stored = store.LoadJob(id);
  if (!stored) return tl::unexpected(stored.error());
  if (!stored->has_value()) return std::nullopt;
  return LifeOf(**stored);
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

}  // namespace perseus::server
