// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "client/profile_sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace perseus::client {
namespace {

constexpr double kSecondsPerNs = 1e-9;
// With less waiting than this share of the time there is no power of waiting.
constexpr double kAlwaysBusy = 0.03;
constexpr std::size_t kMaxKinds = 64;  // Types and stages of one rank.

}  // namespace

ProfileSweep::ProfileSweep(const std::vector<int>& clocks_mhz, const SweepSettings& settings)
    : settings_(settings) {
  const auto stride = static_cast<std::size_t>(std::max(1, settings.stride));
  for (std::size_t i = 0; i < clocks_mhz.size(); i += stride) {
    const int mhz = clocks_mhz[clocks_mhz.size() - 1 - i];
    if (mhz >= settings.least_mhz || clocks_mhz_.empty()) clocks_mhz_.push_back(mhz);
  }
  done_ = clocks_mhz_.empty();
}

std::size_t ProfileSweep::KindOf(ComputationType type, int stage) {
  const Kind kind{type, stage};
  const auto found = std::find(kinds_.begin(), kinds_.end(), kind);
  if (found != kinds_.end()) return static_cast<std::size_t>(found - kinds_.begin());
  kinds_.push_back(kind);
  return kinds_.size() - 1;
}

void ProfileSweep::Handle(const Event& event, std::int64_t at_ns) {
  if (done_) return;
  switch (event.kind) {
    case EventKind::kStepBegin:
      in_iteration_ = true;
      iteration_begin_ns_ = at_ns;
      open_.reset();
      segments_.clear();
      readings_.clear();
      break;
    case EventKind::kStepEnd:
      if (in_iteration_) EndIteration(at_ns);
      in_iteration_ = false;
      break;
    case EventKind::kBegin:
      if (in_iteration_ && kinds_.size() < kMaxKinds) {
        open_ = Segment{.kind = KindOf(event.type, event.stage), .begin_ns = at_ns, .end_ns = 0};
      }
      break;
    case EventKind::kEnd:
      if (!open_) break;
      open_->end_ns = at_ns;
      segments_.push_back(*open_);
      open_.reset();
      break;
    case EventKind::kStepAbandon:
      in_iteration_ = false;
      open_.reset();
      break;
    case EventKind::kBusy:
    case EventKind::kWork:
      break;
  }
}

void ProfileSweep::AddEnergy(double joules, std::int64_t at_ns) {
  const bool moved = last_joules_ && joules > *last_joules_;
  last_joules_ = joules;
  if (moved && in_iteration_) readings_.push_back({at_ns, joules});
}

// Divides the iteration at steps of the counter that are far enough apart.
void ProfileSweep::CutStretches() {
  std::size_t from = 0;
  while (from < readings_.size() && readings_[from].at_ns < *in_effect_ns_) ++from;
  for (std::size_t to = from + 1; to < readings_.size(); ++to) {
    const Reading& begin = readings_[from];
    const Reading& end = readings_[to];
    if (end.at_ns - begin.at_ns < kMinStretchNs) continue;
    Stretch stretch{.seconds = std::vector<double>(kinds_.size() + 1),
                    .joules = end.joules - begin.joules};
    double waiting = static_cast<double>(end.at_ns - begin.at_ns) * kSecondsPerNs;
    for (const Segment& segment : segments_) {
      const std::int64_t overlap_ns =
          std::min(end.at_ns, segment.end_ns) - std::max(begin.at_ns, segment.begin_ns);
      if (overlap_ns <= 0) continue;
      const double seconds = static_cast<double>(overlap_ns) * kSecondsPerNs;
      stretch.seconds[segment.kind] += seconds;
      waiting -= seconds;
    }
    stretch.seconds.back() = std::max(0.0, waiting);
    stretches_.push_back(std::move(stretch));
    from = to;
  }
}

void ProfileSweep::EndIteration(std::int64_t /*at_ns*/) {
  if (!in_effect_ns_) return;
  for (const Segment& segment : segments_) {
    if (segment.begin_ns < *in_effect_ns_) continue;
    Sum& sum = sums_[segment.kind];
    sum.seconds += static_cast<double>(segment.end_ns - segment.begin_ns) * kSecondsPerNs;
    ++sum.count;
  }
  CutStretches();
  if (iteration_begin_ns_ < *in_effect_ns_) return;
  ++whole_iterations_;
  if (whole_iterations_ < settings_.iterations) return;
  if (FinishClock()) {
    fruitless_ = 0;
    NextClock();
  } else if (whole_iterations_ >= kPatience * settings_.iterations) {
    complaint_ = fmt::format(
        "at {} MHz the energy counter said too little in {} iterations; this clock is not in the "
        "profile",
        clock_mhz(), whole_iterations_);
    NextClock();
    if (++fruitless_ < kFruitlessToStop || done_) return;
    complaint_ = fmt::format(
        "the energy counter said too little at {} clocks in a row; the rest of the profile is not "
        "measured",
        fruitless_);
    GiveUp();
  }
}

// Watts of each kind, and of waiting (0: too little of it was seen). Kinds that
// cannot be told apart share one.
std::optional<std::vector<double>> ProfileSweep::Watts() const {
  const std::size_t kinds = kinds_.size();
  PowerFit apart(kinds + 1);
  PowerFit apart_busy(kinds);
  PowerFit together(2);
  PowerFit all(1);
  double waited = 0;
  double whole = 0;
  for (const Stretch& stretch : stretches_) {
    std::vector<double> seconds(stretch.seconds.begin(), stretch.seconds.end() - 1);
    seconds.resize(kinds);  // A kind may have appeared since.
    const double waiting = stretch.seconds.back();
    const double busy = std::accumulate(seconds.begin(), seconds.end(), 0.0);
    waited += waiting;
    whole += waiting + busy;
    apart_busy.Add(seconds, stretch.joules);
    together.Add({busy, waiting}, stretch.joules);
    all.Add({busy + waiting}, stretch.joules);
    seconds.push_back(waiting);
    apart.Add(seconds, stretch.joules);
  }
  const bool always_busy = waited <= kAlwaysBusy * whole;
  if (!always_busy) {
    if (auto watts = apart.Solve()) return watts;
    if (const auto watts = together.Solve()) {
      std::vector<double> each(kinds, (*watts)[0]);
      each.push_back((*watts)[1]);
      return each;
    }
    return std::nullopt;
  }
  std::optional<std::vector<double>> each = apart_busy.Solve();
  if (!each) {
    const auto watts = all.Solve();
    if (!watts) return std::nullopt;
    each.emplace(kinds, (*watts)[0]);
  }
  each->push_back(0);
  return each;
}

bool ProfileSweep::FinishClock() {
  const std::optional<std::vector<double>> watts = Watts();
  if (!watts || sums_.empty()) return false;
  bool all_rise = true;
  for (const auto& [kind, sum] : sums_) {
    const double seconds = sum.seconds / static_cast<double>(sum.count);
    const double joules = (*watts)[kind] * seconds;
    measurements_.push_back({.type = kinds_[kind].first,
                             .stage = kinds_[kind].second,
                             .mhz = clock_mhz(),
                             .seconds = seconds,
                             .joules = joules,
                             .samples = sum.count});
    const auto last = last_energy_.find(kind);
    rises_[kind] = last != last_energy_.end() && joules > last->second ? rises_[kind] + 1 : 0;
    last_energy_[kind] = joules;
    all_rise = all_rise && rises_[kind] >= kRisesToStop;
  }
  if (watts->back() > 0) {
    for (const Stretch& stretch : stretches_) {
      blocking_seconds_ += stretch.seconds.back();
      blocking_joules_ += stretch.seconds.back() * watts->back();
    }
  }
  if (all_rise) done_ = true;
  return true;
}

void ProfileSweep::ForgetSamples() {
  whole_iterations_ = 0;
  sums_.clear();
  stretches_.clear();
  in_effect_ns_.reset();
}

void ProfileSweep::NextClock() {
  ForgetSamples();
  if (++at_ >= clocks_mhz_.size()) done_ = true;
}

std::vector<Measurement> ProfileSweep::TakeMeasurements() {
  return std::exchange(measurements_, {});
}

std::optional<double> ProfileSweep::blocking_watts() const {
  if (!(blocking_joules_ > 0)) return std::nullopt;
  return blocking_joules_ / blocking_seconds_;
}

std::optional<std::string> ProfileSweep::TakeComplaint() {
  return std::exchange(complaint_, std::nullopt);
}

}  // namespace perseus::client
