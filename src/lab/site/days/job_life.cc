// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "site/days/job_life.h"

#include <algorithm>
#include <cmath>

namespace perseus::site {
namespace {

constexpr double kSameInstant = 1e-7;  // Seconds: rounding of a week's iterations.

}  // namespace

JobLife::Order JobLife::MakeOrder(double at, const JobRun& run, std::vector<double> slow) const {
  const JobPace pace = PaceOf(job_, run, slow);
  return {at, run, std::move(slow), pace};
}

double JobLife::IterationSeconds(const Order& order, std::int64_t number) const {
  if (job_.noise <= 0) return order.pace.seconds;
  return order.pace.seconds * NoiseOf(job_.noise, seed_, index_, number);
}

void JobLife::AdvanceIn(const Order& order, double seconds, Place* place) const {
  if (order.pace.seconds >= kPaused) {
    place->begin = std::max(place->begin, seconds);
    return;
  }
  if (job_.noise <= 0) {
    const double count = std::floor((seconds - place->begin + kSameInstant) / order.pace.seconds);
    if (!(count > 0)) return;
    place->begin += count * order.pace.seconds;
    place->number += static_cast<std::int64_t>(count);
    place->done += count;
    return;
  }
  while (true) {
    const double end = place->begin + IterationSeconds(order, place->number);
    if (end > seconds + kSameInstant) return;
    place->begin = end;
    ++place->number;
    place->done += 1;
  }
}

void JobLife::Begin(Order order) {
  now_ = std::move(order);
  next_.reset();
  span_from_ = now_.at;
}

void JobLife::Arrive(double seconds, const JobRun& run, std::vector<double> slow) {
  is_here_ = true;
  place_.begin = seconds;
  Begin(MakeOrder(seconds, run, std::move(slow)));
}

void JobLife::EndSpan(double seconds) {
  if (!(seconds > span_from_)) return;
  const JobPace full = PaceOf(job_, FullRun(job_), now_.slow);
  JobSpan span;
  span.from_seconds = span_from_;
  span.to_seconds = seconds;
  span.watts = now_.pace.watts;
  span.iteration_seconds = now_.pace.seconds;
  span.speed = job_.fleet.full_speed_seconds * now_.pace.iterations_per_second();
  span.full_speed = job_.fleet.full_speed_seconds * full.iterations_per_second();
  span.full_watts = full.watts;
  span.too_slow = now_.pace.seconds > AcceptedSeconds(job_, now_.slow) * (1 + 1e-6) ||
                  now_.pace.seconds >= kPaused;
  spans_.push_back(span);
}

void JobLife::Leave(double seconds) {
  Advance(seconds);
  EndSpan(seconds);
  place_.done = DoneAt(seconds);
  is_here_ = false;
  next_.reset();
}

double JobLife::NextBegin(double seconds) const {
  Place place = place_;
  AdvanceIn(now_, seconds, &place);
  if (place.begin >= seconds - kSameInstant) return place.begin;
  return place.begin + IterationSeconds(now_, place.number);
}

void JobLife::Tell(double begin_seconds, const JobRun& run, std::vector<double> slow) {
  next_.reset();
  if (run.choice != now_.run.choice || run.healthy.time_seconds != now_.run.healthy.time_seconds ||
      slow != now_.slow) {
    next_ = MakeOrder(begin_seconds, run, std::move(slow));
  }
}

void JobLife::TellNow(double seconds, const JobRun& run, std::vector<double> slow) {
  Advance(seconds);
  EndSpan(seconds);
  place_.done = DoneAt(seconds);
  place_.begin = seconds;
  Begin(MakeOrder(seconds, run, std::move(slow)));
}

void JobLife::Advance(double seconds) {
  if (!is_here_) return;
  if (next_ && next_->at <= seconds + kSameInstant) {
    AdvanceIn(now_, next_->at, &place_);
    place_.begin = next_->at;
    EndSpan(next_->at);
    if (next_->run.choice != now_.run.choice) ++plan_changes_;
    Begin(*std::move(next_));
  }
  AdvanceIn(now_, seconds, &place_);
}

double JobLife::DoneAt(double seconds) const {
  if (!is_here_ || now_.pace.seconds >= kPaused) return place_.done;
  Place place = place_;
  AdvanceIn(now_, seconds, &place);
  const double part = (seconds - place.begin) / IterationSeconds(now_, place.number);
  return place.done + std::clamp(part, 0.0, 1.0);
}

std::optional<double> JobLife::TimeOf(double iterations, double until) const {
  Place place = place_;
  const auto end_in = [&](const Order& order, double last) -> std::optional<double> {
    if (order.pace.seconds >= kPaused) return std::nullopt;
    Place at = place;
    if (job_.noise <= 0) {
      const double end = at.begin + std::ceil(iterations - at.done) * order.pace.seconds;
      return end <= last + kSameInstant ? std::optional<double>(std::max(end, at.begin))
                                        : std::nullopt;
    }
    while (at.done < iterations) {
      at.begin += IterationSeconds(order, at.number);
      ++at.number;
      at.done += 1;
      if (at.begin > last + kSameInstant) return std::nullopt;
    }
    return at.begin;
  };
  const double change = next_ ? std::min(next_->at, until) : until;
  if (const auto end = end_in(now_, change)) return end;
  if (!next_ || next_->at > until) return std::nullopt;
  AdvanceIn(now_, next_->at, &place);
  place.begin = next_->at;
  return end_in(*next_, until);
}

double JobLife::longest_iteration() const {
  constexpr double kMostDraws = 3.47;  // Of noise, in standard deviations.
  double longest = 0;
  if (now_.pace.seconds < kPaused) longest = now_.pace.seconds;
  if (next_ && next_->pace.seconds < kPaused) longest = std::max(longest, next_->pace.seconds);
  return longest * (1 + kMostDraws * job_.noise);
}

}  // namespace perseus::site
