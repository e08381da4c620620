// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "emulate/stragglers.h"

#include <algorithm>

#include "model/noise.h"

namespace perseus::emulate {
namespace {

constexpr double kNone = -1;
constexpr double kSecondsPerDay = 86400;

}  // namespace

void RankLimits::Add(StragglerKind kind, double value) {
  switch (kind) {
    case StragglerKind::kSlow:
      slow *= value;
      break;
    case StragglerKind::kClockCap:
      most_mhz = std::min(most_mhz, value);
      break;
    case StragglerKind::kPowerCap:
      most_watts = std::min(most_watts, value);
      break;
    case StragglerKind::kDataStall:
      stall_seconds = std::max(stall_seconds, value);
      break;
  }
}

StragglerCalendar::StragglerCalendar(const CostedPipeline& pipeline, const EmulationSpec& spec)
    : pipeline_(pipeline), spec_(spec), there_(spec.pipelines) {
  for (std::size_t i = 0; i < spec.stragglers.size(); ++i) {
    const Straggler& straggler = spec.stragglers[i];
    const int index = static_cast<int>(i);
    changes_.push_back({straggler.first_iteration, index, true});
    // The subtraction cannot overflow, the sum of both could.
    if (straggler.iterations &&
        *straggler.iterations < spec.iterations - straggler.first_iteration) {
      changes_.push_back({straggler.first_iteration + *straggler.iterations, index, false});
    }
  }
  std::stable_sort(changes_.begin(), changes_.end(),
                   [](const Change& a, const Change& b) { return a.iteration < b.iteration; });
  if (spec.random_stragglers.share_of_gpus_per_day > 0) {
    random_end_seconds_.assign(static_cast<std::size_t>(spec.pipelines) * pipeline.dag.num_ranks,
                               kNone);
  }
}

void StragglerCalendar::Advance(double start_seconds, double last_seconds) {
  ++iteration_;
  changed_.clear();
  for (; next_change_ < changes_.size() && changes_[next_change_].iteration <= iteration_;
       ++next_change_) {
    const Change& change = changes_[next_change_];
    const int pipeline = spec_.stragglers[change.straggler].pipeline;
    std::vector<int>& there = there_[pipeline];
    const auto place = std::lower_bound(there.begin(), there.end(), change.straggler);
    if (change.comes) {
      there.insert(place, change.straggler);
      ++came_;
    } else {
      there.erase(place);
    }
    changed_.push_back(pipeline);
  }
  if (!random_end_seconds_.empty()) DrawRandom(start_seconds, last_seconds);
  std::sort(changed_.begin(), changed_.end());
  changed_.erase(std::unique(changed_.begin(), changed_.end()), changed_.end());
  for (const int p : changed_) {
    if (LimitsOf(p).empty()) {
      straggling_.erase(p);
    } else {
      straggling_.insert(p);
    }
  }
}

void StragglerCalendar::DrawRandom(double start_seconds, double last_seconds) {
  const RandomStragglers& random = spec_.random_stragglers;
  const double probability =
      std::min(1.0, random.share_of_gpus_per_day * pipeline_.tensor_parallel * last_seconds /
                        kSecondsPerDay);
  const WordHash seed = WordHash(spec_.seed).With(model::kStragglerDraw);
  std::size_t slot = 0;
  for (int p = 0; p < spec_.pipelines; ++p) {
    const WordHash of_pipeline = seed.With(p);
    for (int rank = 0; rank < pipeline_.dag.num_ranks; ++rank, ++slot) {
      double& end = random_end_seconds_[slot];
      if (end >= 0 && end <= start_seconds) {
        end = kNone;
        changed_.push_back(p);
      }
      if (end < 0 && of_pipeline.With(rank).With(iteration_).Share() < probability) {
        end = start_seconds + random.duration_seconds;
        ++came_;
        changed_.push_back(p);
      }
    }
  }
}

std::vector<RankLimits> StragglerCalendar::LimitsOf(int pipeline) const {
  const int ranks = pipeline_.dag.num_ranks;
  std::vector<RankLimits> limits;
  for (const int index : there_[pipeline]) {
    const Straggler& straggler = spec_.stragglers[index];
    limits.resize(ranks);
    if (straggler.rank) {
      limits[*straggler.rank].Add(straggler.kind, straggler.value);
    } else if (straggler.kind == StragglerKind::kDataStall) {
      limits[0].Add(straggler.kind, straggler.value);
    } else {
      for (RankLimits& rank : limits) rank.Add(straggler.kind, straggler.value);
    }
  }
  if (random_end_seconds_.empty()) return limits;
  for (int rank = 0; rank < ranks; ++rank) {
    if (random_end_seconds_[static_cast<std::size_t>(pipeline) * ranks + rank] < 0) continue;
    limits.resize(ranks);
    limits[rank].Add(spec_.random_stragglers.kind, spec_.random_stragglers.value);
  }
  return limits;
}

}  // namespace perseus::emulate
