// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include <span>
#include <utility>

#include "common/input_limits.h"
#include "common/nearest_name.h"
#include "common/numbers.h"
#include "job/duration_text.h"
#include "job/quantity_text.h"
#include "job/share_text.h"
#include "site/days/days_file.h"

namespace perseus::site {
namespace {

constexpr double kMostDaysWatts = 1e12;
constexpr std::size_t kMostEvents = 10'000;

double ReadLong(const TreeCursor& found) {
  if (!found.IsString()) return found.Number(kNotNegative);
  const Result<double> seconds = job::ParseLongDuration(found.String());
  if (!seconds) found.Fail(seconds.error().message);
  return seconds.value_or(0);
}

double ReadShareOf(const TreeCursor& found, const NumberRange& range) {
  const Result<double> share = found.IsString() ? job::ParseShare(found.String(), range)
                                                : job::CheckShare(found.Number(), range);
  if (!share) found.Fail(share.error().message);
  return share.value_or(range.most);
}

// "20kW/min", "500W/s".
double ReadRamp(const TreeCursor& found) {
  const std::string text = found.String();
  std::string_view watts = text;
  double seconds = 1;
  bool has_time = true;
  if (TakeUnit(&watts, "/min")) {
    seconds = 60;
  } else if (!TakeUnit(&watts, "/s")) {
    has_time = false;
  }
  const std::optional<double> value = ParseWithUnit(watts, kPowerUnits);
  if (!has_time || !value || !(*value > 0) || *value > kMostDaysWatts) {
    found.FailExpected("a power in a time above 0, such as \"20kW/min\" or \"500W/s\"");
    return kNoPowerLimit;
  }
  return *value / seconds;
}

double ReadStragglerFactor(const TreeCursor& found) {
  constexpr NumberRange kRange = {.least = 1, .most = 100, .above_least = true};
  if (!found.IsString()) return found.Number(kRange);
  const Result<double> factor = job::ParseQuantity(found.String(), kRange, job::kInTimes);
  if (!factor) found.Fail(factor.error().message);
  return factor.value_or(kRange.most);
}

PlacedText ReadPlaced(const TreeCursor& found, const std::string& file) {
  PlacedText placed{found.String(),
                    {file, found.node().position.line, found.node().position.column}};
  if (placed.text.empty()) found.FailExpected("a text that is not empty");
  return placed;
}

// "-25%" of the usual limit, or a power.
void ReadEventPower(const TreeCursor& found, PowerEvent* event) {
  if (!found.IsString()) {
    event->limit_watts = found.Number(kPositive);
    return;
  }
  const std::string text = found.String();
  std::string_view share = text;
  if (TakeUnit(&share, "%")) {
    const std::optional<double> percent = ParseFinite(share);
    if (percent && *percent < 0 && *percent > -100) {
      event->limit_share = 1 + *percent / 100;
      return;
    }
  } else {
    const std::optional<double> watts = ParseWithUnit(text, kPowerUnits);
    if (watts && *watts > 0 && *watts <= kMostDaysWatts) {
      event->limit_watts = *watts;
      return;
    }
  }
  found.FailExpected("less power than usual, such as \"-25%\", or a limit such as \"30kW\"");
}

DaysEvent ReadEvent(const TreeCursor& table, const std::string& file) {
  static constexpr std::string_view kKeys[] = {"start",  "duration", "power",
                                               "notice", "limit",    "every"};
  table.AllowOnly(kKeys);
  DaysEvent event;
  event.event.start_seconds = ReadLong(table.Get("start"));
  const TreeCursor duration = table.Get("duration");
  event.event.duration_seconds = ReadLong(duration);
  ReadEventPower(table.Get("power"), &event.event);
  if (const auto found = table.Find("notice")) event.event.notice_seconds = ReadLong(*found);
  if (const auto found = table.Find("limit")) event.limit = ReadPlaced(*found, file);
  if (const auto found = table.Find("every")) {
    event.every_seconds = ReadLong(*found);
    if (!(*event.every_seconds > event.event.duration_seconds)) {
      found->FailExpected("a time longer than the event's 'duration'");
    }
  }
  if (!(event.event.duration_seconds > 0)) duration.FailExpected("a time above 0");
  return event;
}

DaysOfJob ReadDaysOfJob(const TreeCursor& table, const std::string& file) {
  static constexpr std::string_view kKeys[] = {"name",  "arrives",       "every",    "spread",
                                               "lasts", "iterations",    "deadline", "work",
                                               "noise", "straggler_rate"};
  table.AllowOnly(kKeys);
  DaysOfJob job;
  job.name = ReadPlaced(table.Get("name"), file);
  if (const auto found = table.Find("arrives")) job.arrives_seconds = ReadLong(*found);
  if (const auto found = table.Find("every")) job.every_seconds = ReadLong(*found);
  if (const auto found = table.Find("spread")) job.spread_seconds = ReadLong(*found);
  if (const auto found = table.Find("lasts")) {
    job.lasts_seconds = ReadLong(*found);
    if (!(*job.lasts_seconds > 0)) found->FailExpected("a time above 0");
  }
  if (const auto found = table.Find("iterations")) {
    job.iterations = found->Number({.least = 1, .most = 1e12});
  }
  if (const auto found = table.Find("deadline")) {
    job.deadline_seconds = ReadLong(*found);
    if (!(*job.deadline_seconds > 0)) found->FailExpected("a time above 0");
  }
  if (const auto found = table.Find("work")) {
    job.work_share = ReadShareOf(*found, {.least = 0, .most = 1, .above_least = true});
    if (!job.deadline_seconds) {
      found->Fail("it says how much work is due by the deadline; give 'deadline', too");
    }
  }
  if (const auto found = table.Find("noise")) {
    job.noise = ReadShareOf(*found, {.least = 0, .most = kMostNoise});
  }
  if (const auto found = table.Find("straggler_rate")) {
    job.straggler_rate = ReadShareOf(*found, {.least = 0, .most = 1});
  }
  return job;
}

}  // namespace

void ReadDays(const TreeCursor& table, const std::string& file, DaysFile* days) {
  static constexpr std::string_view kKeys[] = {"price",
                                               "carbon",
                                               "currency",
                                               "ramp_up",
                                               "ramp_down",
                                               "work",
                                               "noise",
                                               "straggler_rate",
                                               "straggler_duration",
                                               "straggler_slowdown",
                                               "event",
                                               "job"};
  table.AllowOnly(kKeys);
  if (const auto found = table.Find("price")) days->price = ReadPlaced(*found, file);
  if (const auto found = table.Find("carbon")) days->carbon = ReadPlaced(*found, file);
  if (const auto found = table.Find("currency")) days->currency = found->String();
  if (const auto found = table.Find("ramp_up")) days->ramp_up_watts_per_second = ReadRamp(*found);
  if (const auto found = table.Find("ramp_down")) {
    days->ramp_down_watts_per_second = ReadRamp(*found);
  }
  if (const auto found = table.Find("work")) {
    days->work_share = ReadShareOf(*found, {.least = 0, .most = 1, .above_least = true});
  }
  if (const auto found = table.Find("noise")) {
    days->noise = ReadShareOf(*found, {.least = 0, .most = kMostNoise});
  }
  if (const auto found = table.Find("straggler_rate")) {
    days->stragglers.share_of_gpus_per_day = ReadShareOf(*found, {.least = 0, .most = 1});
  }
  if (const auto found = table.Find("straggler_duration")) {
    days->stragglers.duration_seconds = ReadLong(*found);
    if (!(days->stragglers.duration_seconds > 0)) found->FailExpected("a time above 0");
  }
  if (const auto found = table.Find("straggler_slowdown")) {
    days->stragglers.slowdown = ReadStragglerFactor(*found);
  }
  if (const auto found = table.Find("event")) {
    if (found->Size() > kMostEvents) {
      found->Fail(fmt::format("{} events; at most {} are allowed", found->Size(), kMostEvents));
      return;
    }
    for (std::size_t k = 0; k < found->Size(); ++k) {
      days->events.push_back(ReadEvent(found->At(k), file));
    }
  }
  if (const auto found = table.Find("job")) {
    for (std::size_t k = 0; k < found->Size(); ++k) {
      days->jobs.push_back(ReadDaysOfJob(found->At(k), file));
    }
  }
}

}  // namespace perseus::site
