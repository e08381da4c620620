// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "site/days/days_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "site/site.h"
#include "support/mentions.h"

namespace perseus::site {
namespace {

constexpr std::string_view kHead =
    "power = \"10kW\"\n[[job]]\nname = \"a\"\nplan = \"plans\"\n[emulate]\n";

Result<DaysFile> ReadDaysOf(const std::string& text) {
  DaysFile days;
  const Result<SiteFile> file =
      ParseSiteFile(std::string(kHead) + text, "s.toml",
                    {.days = [&](const TreeCursor& table) { ReadDays(table, "s.toml", &days); }});
  if (!file) return tl::unexpected(file.error());
  return days;
}

std::string DaysFault(const std::string& text) {
  const Result<DaysFile> days = ReadDaysOf(text);
  return days ? "no fault" : days.error().message;
}

TEST(DaysFile, ReadsAllKeys) {
  const Result<DaysFile> days = ReadDaysOf(
      "price = \"p.csv\"\ncarbon = \"c.csv\"\ncurrency = \"EUR\"\nramp_up = \"6kW/min\"\n"
      "ramp_down = \"200W/s\"\nwork = \"90%\"\nnoise = 0.01\nstraggler_rate = \"5%\"\n"
      "straggler_duration = \"2h\"\nstraggler_slowdown = \"1.3x\"\n"
      "[[emulate.event]]\nstart = \"18h\"\nduration = \"3h\"\npower = \"-25%\"\nnotice = \"30s\"\n"
      "limit = \"rack\"\nevery = \"24h\"\n"
      "[[emulate.event]]\nstart = 60\nduration = 90\npower = \"3kW\"\n"
      "[[emulate.job]]\nname = \"a\"\narrives = \"2h\"\nevery = \"1h\"\nspread = \"5min\"\n"
      "lasts = \"1d\"\niterations = 50\ndeadline = \"20h\"\nwork = 0.5\nnoise = 0\n"
      "straggler_rate = 0.1\n");
  ASSERT_TRUE(days) << days.error().message;
  EXPECT_EQ(days->price->text, "p.csv");
  EXPECT_EQ(days->carbon->place.line, 7);
  EXPECT_EQ(days->currency, "EUR");
  EXPECT_DOUBLE_EQ(days->ramp_up_watts_per_second, 100);
  EXPECT_DOUBLE_EQ(days->ramp_down_watts_per_second, 200);
  EXPECT_DOUBLE_EQ(days->work_share, 0.9);
  EXPECT_DOUBLE_EQ(days->noise, 0.01);
  EXPECT_DOUBLE_EQ(days->stragglers.share_of_gpus_per_day, 0.05);
  EXPECT_DOUBLE_EQ(days->stragglers.duration_seconds, 7200);
  EXPECT_DOUBLE_EQ(days->stragglers.slowdown, 1.3);
  ASSERT_EQ(days->events.size(), 2);
  EXPECT_DOUBLE_EQ(days->events[0].event.start_seconds, 18 * 3600);
  EXPECT_DOUBLE_EQ(*days->events[0].event.limit_share, 0.75);
  EXPECT_DOUBLE_EQ(days->events[0].event.notice_seconds, 30);
  EXPECT_EQ(days->events[0].limit->text, "rack");
  EXPECT_DOUBLE_EQ(*days->events[0].every_seconds, 86400);
  EXPECT_DOUBLE_EQ(*days->events[1].event.limit_watts, 3000);
  ASSERT_EQ(days->jobs.size(), 1);
  EXPECT_DOUBLE_EQ(*days->jobs[0].arrives_seconds, 7200);
  EXPECT_DOUBLE_EQ(*days->jobs[0].lasts_seconds, 86400);
  EXPECT_DOUBLE_EQ(*days->jobs[0].iterations, 50);
  EXPECT_DOUBLE_EQ(*days->jobs[0].deadline_seconds, 72000);
  EXPECT_DOUBLE_EQ(days->jobs[0].work_share, 0.5);
  EXPECT_DOUBLE_EQ(*days->jobs[0].noise, 0);
  EXPECT_DOUBLE_EQ(*days->jobs[0].straggler_rate, 0.1);
}

TEST(DaysFile, FaultsSayWhereAndWhat) {
  EXPECT_THAT(DaysFault("ramps = 3\n"), Mentions("s.toml:6:1:", "ramps", "ramp_up"));
  EXPECT_THAT(DaysFault("ramp_up = \"5kW\"\n"), Mentions("s.toml:6:11:", "ramp_up", "20kW/min"));
  EXPECT_THAT(DaysFault("work = \"120%\"\n"), Mentions("s.toml:6:8:", "work", "100%"));
  EXPECT_THAT(DaysFault("noise = 0.5\n"), Mentions("s.toml:6:9:", "noise", "25%"));
  EXPECT_THAT(DaysFault("straggler_slowdown = 0.5\n"),
              Mentions("s.toml:6:22:", "straggler_slowdown"));
  EXPECT_THAT(DaysFault("straggler_duration = 0\n"),
              Mentions("s.toml:6:22:", "straggler_duration"));
  EXPECT_THAT(DaysFault("price = \"\"\n"), Mentions("s.toml:6:9:", "price"));
  const std::string event = "[[emulate.event]]\nstart = 1\n";
  EXPECT_THAT(DaysFault(event + "duration = 5\n"), Mentions("s.toml:6:", "power"));
  EXPECT_THAT(DaysFault(event + "duration = 0\npower = \"3kW\"\n"),
              Mentions("s.toml:8:12:", "duration"));
  EXPECT_THAT(DaysFault(event + "duration = 5\npower = \"25%\"\n"),
              Mentions("s.toml:9:9:", "power", "-25%"));
  EXPECT_THAT(DaysFault(event + "duration = 5\npower = \"-100%\"\n"),
              Mentions("s.toml:9:9:", "power"));
  EXPECT_THAT(DaysFault(event + "duration = 5\npower = \"3kW\"\nevery = 2\n"),
              Mentions("s.toml:10:9:", "every", "duration"));
  const std::string job = "[[emulate.job]]\nname = \"a\"\n";
  EXPECT_THAT(DaysFault(job + "work = 0.5\n"), Mentions("s.toml:8:8:", "work", "deadline"));
  EXPECT_THAT(DaysFault(job + "lasts = -1\n"), Mentions("s.toml:8:9:", "lasts"));
  EXPECT_THAT(DaysFault(job + "iterations = 0\n"), Mentions("s.toml:8:14:", "iterations"));
}

TEST(DaysSeries, HoursAndIsoTimesAreTheSame) {
  const auto hours =
      ParseSeries("time_h,price_per_mwh\n0,36\n1.5,72\n", "p.csv", SeriesKind::kPrice);
  ASSERT_TRUE(hours) << hours.error().message;
  ASSERT_EQ(hours->size(), 2);
  EXPECT_DOUBLE_EQ((*hours)[1].seconds, 5400);
  EXPECT_DOUBLE_EQ((*hours)[1].value, 2e-8);
  const auto iso =
      ParseSeries("time,price_per_kwh\n2024-02-28T23:30+01:00,0.036\n2024-02-29 00:00:00Z,0.072\n",
                  "p.csv", SeriesKind::kPrice);
  ASSERT_TRUE(iso) << iso.error().message;
  EXPECT_DOUBLE_EQ((*iso)[0].seconds, 0);
  EXPECT_DOUBLE_EQ((*iso)[1].seconds, 5400);
  EXPECT_DOUBLE_EQ((*iso)[1].value, (*hours)[1].value);
  EXPECT_DOUBLE_EQ(ValueAt(*hours, 5399), 1e-8);
  EXPECT_DOUBLE_EQ(ValueAt(*hours, 5400), 2e-8);
  EXPECT_DOUBLE_EQ(ValueAt(*hours, -3), 1e-8);
  EXPECT_DOUBLE_EQ(ValueAt({}, 5), 0);
}

TEST(DaysSeries, FaultsSayWhereAndWhat) {
  const auto fault = [](std::string_view text, SeriesKind kind = SeriesKind::kPrice) {
    const auto series = ParseSeries(text, "p.csv", kind);
    return series ? std::string("no fault") : series.error().message;
  };
  EXPECT_THAT(fault(""), Mentions("p.csv:1:1:", "time_h", "price_per_kwh"));
  EXPECT_THAT(fault("time_h,price_per_kwh\n"), Mentions("p.csv:1:1:", "rows"));
  EXPECT_THAT(fault("hour,price_per_kwh\n0,1\n"), Mentions("p.csv:1:1:", "hour"));
  EXPECT_THAT(fault("time_h,price_per_kwh\n0,1\n", SeriesKind::kCarbon),
              Mentions("p.csv:1:8:", "co2_g_per_kwh"));
  EXPECT_THAT(fault("time_h,price_per_kwh\n0,1,2\n"), Mentions("p.csv:2:1:", "2"));
  EXPECT_THAT(fault("time_h,price_per_kwh\n0,x\n"), Mentions("p.csv:2:3:", "price_per_kwh"));
  EXPECT_THAT(fault("time_h,price_per_kwh\n1,1\n1,2\n"), Mentions("p.csv:3:1:", "sort"));
  EXPECT_THAT(fault("time,price_per_kwh\nyesterday,1\n"), Mentions("p.csv:2:1:", "yesterday"));
  EXPECT_THAT(fault("time,price_per_kwh\n2024-13-01T00:00Z,1\n"), Mentions("p.csv:2:1:"));
}

}  // namespace
}  // namespace perseus::site
