// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "server/detect/drift_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace perseus::server {
namespace {

// The option at this clock; null: there is none.
const Option* FindOption(const Profile& profile, const ProfileKey& key) {
  const OptionTable* const table = profile.Find(key.stage, key.type);
  if (table == nullptr) return nullptr;
  const auto found =
      std::find_if(table->options.begin(), table->options.end(), [&](const Option& option) {
        return profile.knobs[static_cast<std::size_t>(option.knob)].number == key.clock_mhz;
      });
  return found == table->options.end() ? nullptr : &*found;
}

}  // namespace

std::vector<DriftNews> DriftWatch::Add(const KindReport& report, const Profile& profile) {
  const Option* const option = FindOption(profile, report.key);
  if (option == nullptr || report.count <= 0) return {};
  Kind& kind = kinds_[report.key];
  kind.reports.push_back(report);
  kind.computations += report.count;
  const auto is_enough_without_first = [&] {
    return kind.reports.size() > kMostReports ||
           (kind.reports.size() > kLeastReports &&
            kind.computations - kind.reports.front().count >= kLeastComputations);
  };
  while (is_enough_without_first()) {
    kind.computations -= kind.reports.front().count;
    kind.reports.pop_front();
  }
  if (kind.reports.size() < kLeastReports || kind.computations < kLeastComputations) return {};

  double seconds = 0;
  for (const KindReport& each : kind.reports) {
    seconds += static_cast<double>(each.count) * each.time_seconds;
  }
  const double expected = option->time_seconds;
  kind.last = {.key = report.key,
               .measured_seconds = seconds / static_cast<double>(kind.computations),
               .profile_seconds = expected,
               .computations = kind.computations};
  const double limit = std::max(kSigmas * option->time_std_seconds / expected, kLeastShare);
  const double off = kind.last.ratio() - 1;
  const bool lasts =
      std::all_of(kind.reports.end() - static_cast<std::ptrdiff_t>(kLeastReports),
                  kind.reports.end(), [&](const KindReport& each) {
                    return std::copysign(1.0, off) * (each.time_seconds / expected - 1) > limit / 2;
                  });
  if (!kind.drifts && std::abs(off) > limit && lasts) {
    kind.drifts = true;
    return {{.drift = kind.last}};
  }
  if (kind.drifts && std::abs(off) < limit / 2) {
    kind.drifts = false;
    return {{.drift = kind.last, .is_over = true}};
  }
  return {};
}

std::vector<Drift> DriftWatch::Drifts() const {
  std::vector<Drift> drifts;
  for (const auto& [key, kind] : kinds_) {
    if (kind.drifts) drifts.push_back(kind.last);
  }
  return drifts;
}

std::string DriftText(const Drift& drift) {
  const double percent = 100 * (drift.ratio() - 1);
  return fmt::format(
      "{} takes {:.1f} % {} than its profile says ({:.4g} s against {:.4g} s, mean "
      "of {} computations)",
      ProfileKeyText(drift.key), std::abs(percent), percent < 0 ? "less time" : "longer",
      drift.measured_seconds, drift.profile_seconds, drift.computations);
}

}  // namespace perseus::server
