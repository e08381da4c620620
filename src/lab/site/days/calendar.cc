// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "site/days/calendar.h"

#include <algorithm>
#include <cmath>

#include "common/word_hash.h"

namespace perseus::site {
namespace {

// The first word of every hash says what is drawn.
constexpr std::uint64_t kArrivalDraw = 11;
constexpr std::uint64_t kComingDraw = 12;
constexpr std::uint64_t kPipelineDraw = 13;
constexpr std::uint64_t kIterationDraw = 14;

constexpr double kSameMoment = 1e-6;

void DrawStragglers(const DaysJob& job, const WordHash& draws, JobCalendar* calendar) {
  const ChanceOfStragglers& chance = job.stragglers;
  const double likely =
      std::min(1.0, chance.share_of_gpus_per_day * job.gpus * kSecondsOfMinute / kSecondsOfDay);
  if (!(likely > 0)) return;
  std::vector<double> healthy_from(static_cast<std::size_t>(job.fleet.pipelines), 0.0);
  for (std::uint64_t minute = 0;; ++minute) {
    const double start = calendar->arrives_seconds + static_cast<double>(minute) * kSecondsOfMinute;
    if (start >= calendar->leaves_seconds) return;
    const WordHash draw = draws.With(minute);
    const double coming = draw.With(kComingDraw).Share();
    if (!(coming < likely)) continue;
    const double at = start + kSecondsOfMinute * coming / likely;
    const int pipeline = static_cast<int>(draw.With(kPipelineDraw).Share() * job.fleet.pipelines);
    double& from = healthy_from[static_cast<std::size_t>(pipeline)];
    if (at < from || at >= calendar->leaves_seconds) continue;
    from = at + chance.duration_seconds;
    calendar->straggling.push_back({pipeline, at, from});
  }
}

}  // namespace

std::vector<JobCalendar> DrawCalendar(const DaysSite& site, double seconds, std::uint64_t seed) {
  std::vector<JobCalendar> calendars;
  for (std::size_t j = 0; j < site.jobs.size(); ++j) {
    const DaysJob& job = site.jobs[j];
    JobCalendar calendar;
    calendar.arrives_seconds =
        job.arrives_seconds +
        job.spread_seconds * WordHash(seed).With(kArrivalDraw).With(j).Share();
    calendar.leaves_seconds = seconds;
    if (job.lasts_seconds) {
      calendar.leaves_seconds = std::min(seconds, calendar.arrives_seconds + *job.lasts_seconds);
    }
    DrawStragglers(job, WordHash(seed).With(kComingDraw).With(j), &calendar);
    calendars.push_back(std::move(calendar));
  }
  return calendars;
}

std::vector<double> SlowAt(const DaysJob& job, const JobCalendar& calendar, double seconds) {
  std::vector<double> slow;
  for (const StragglingTime& each : calendar.straggling) {
    if (each.from_seconds > seconds) break;
    // Pipelines that are late all the time are the first ones, and stay as they are.
    if (each.pipeline < static_cast<int>(job.fleet.late.size())) continue;
    if (seconds < each.to_seconds) slow.push_back(job.stragglers.slowdown);
  }
  return slow;
}

double NoiseOf(double noise, std::uint64_t seed, std::size_t job, std::int64_t number) {
  const WordHash draw =
      WordHash(seed).With(kIterationDraw).With(job).With(static_cast<std::uint64_t>(number));
  return 1 + noise * draw.StandardDraw();
}

double LimitCalendar::LimitOf(const PowerEvent& event) const {
  if (event.limit_watts) return *event.limit_watts;
  return event.limit_share.value_or(1) * site_.nodes[event.node].limit_watts;
}

double LimitCalendar::LimitAt(std::size_t node, double seconds) const {
  return LimitWithin(node, seconds, 0);
}

double LimitCalendar::LimitWithin(std::size_t node, double seconds, double ahead_seconds) const {
  double limit = site_.nodes[node].limit_watts;
  for (const PowerEvent& event : site_.events) {
    if (event.node != node) continue;
    const double end = event.start_seconds + event.duration_seconds;
    const bool is_known = seconds >= event.start_seconds - event.notice_seconds;
    const bool is_near = event.start_seconds <= seconds + ahead_seconds + kSameMoment;
    if (is_known && is_near && seconds < end) limit = std::min(limit, LimitOf(event));
  }
  return limit;
}

std::optional<double> LimitCalendar::NextChange(double seconds, double ahead_seconds) const {
  std::optional<double> next;
  const auto take = [&](double at) {
    if (at > seconds && (!next || at < *next)) next = at;
  };
  for (const PowerEvent& event : site_.events) {
    const double known = event.start_seconds - event.notice_seconds;
    take(known);
    take(std::max(known, event.start_seconds - ahead_seconds));
    take(event.start_seconds);
    take(event.start_seconds + event.duration_seconds);
  }
  return next;
}

}  // namespace perseus::site
