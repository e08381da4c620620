// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "server/detect/iteration_history.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

namespace perseus::server {
namespace {

using store::HistoryRow;
using store::Resolution;

constexpr double kNoon = 20'000 * 86'400.0 + 43'200;

const HistoryRow* Of(const std::vector<store::Fact>& facts, Resolution resolution) {
  for (const store::Fact& fact : facts) {
    const auto* const row = std::get_if<HistoryRow>(&fact);
    if (row != nullptr && row->resolution == resolution) return row;
  }
  return nullptr;
}

TEST(IterationHistoryTest, OneReportIsInAMinuteAnHourAndADay) {
  IterationHistory history("j-1", {});
  EXPECT_FALSE(history.has_news());
  history.Add({.seconds = 2, .joules = 100, .predicted_joules = 10, .measured_saved_joules = -5}, 8,
              kNoon + 3725);
  const std::vector<store::Fact> facts = history.Take();
  ASSERT_EQ(facts.size(), 3U);
  const auto noon = static_cast<std::int64_t>(kNoon);
  EXPECT_EQ(Of(facts, Resolution::kMinute)->start, noon + 3720);
  EXPECT_EQ(Of(facts, Resolution::kHour)->start, noon + 3600);
  EXPECT_EQ(Of(facts, Resolution::kDay)->start, noon - 43'200);
  EXPECT_EQ(*Of(facts, Resolution::kDay), (HistoryRow{.job = "j-1",
                                                      .resolution = Resolution::kDay,
                                                      .start = noon - 43'200,
                                                      .ranks = 8,
                                                      .first_seconds = kNoon + 3723,
                                                      .last_seconds = kNoon + 3725,
                                                      .reports = 1,
                                                      .total_seconds = 2,
                                                      .energy_reports = 1,
                                                      .joules = 100,
                                                      .predicted_joules = 10,
                                                      .compared_joules = 100,
                                                      .measured_saved_joules = -5}));
  EXPECT_FALSE(history.has_news());
}

TEST(IterationHistoryTest, ARowSaysFromWhenToWhen) {
  IterationHistory history("j-1", {});
  history.Add({.seconds = 4}, 8, kNoon + 1);
  history.Add({.seconds = 2}, 8, kNoon + 10);
  history.Add({.seconds = 2}, 8, kNoon + 9);
  const std::vector<store::Fact> facts = history.Take();
  EXPECT_EQ(Of(facts, Resolution::kDay)->first_seconds, kNoon - 3);
  EXPECT_EQ(Of(facts, Resolution::kDay)->last_seconds, kNoon + 10);
  // No row says more than its span.
  EXPECT_EQ(Of(facts, Resolution::kHour)->first_seconds, kNoon);
  EXPECT_EQ(Of(facts, Resolution::kMinute)->first_seconds, kNoon);
}

TEST(IterationHistoryTest, WhatWasNotMeasuredDoesNotCountAsEnergy) {
  IterationHistory history("j-1", {});
  history.Add({.seconds = 2, .predicted_joules = 10, .measured_saved_joules = 5}, 8, kNoon);
  history.Add({.seconds = 3, .joules = 7}, 8, kNoon);
  const std::vector<store::Fact> facts = history.Take();
  const HistoryRow& row = *Of(facts, Resolution::kDay);
  EXPECT_EQ(row.reports, 2);
  EXPECT_EQ(row.total_seconds, 5);
  EXPECT_EQ(row.energy_reports, 1);
  EXPECT_EQ(row.joules, 7);
  EXPECT_EQ(row.predicted_joules, 0);
  EXPECT_EQ(row.compared_joules, 0);
}

TEST(IterationHistoryTest, AnIterationCountsOnceAsLongAsItsSlowestRank) {
  IterationHistory history("j-1", {});
  // No rank reported in this time.
  history.AddIteration({.ranks = 2, .seconds = 3}, kNoon);
  EXPECT_FALSE(history.has_news());
  history.Add({.seconds = 2}, 2, kNoon);
  history.Written(history.Take());
  // Each rank told its energy; one did; none did.
  history.AddIteration({.ranks = 2, .seconds = 3, .energy_ranks = 2, .energy_ranks_joules = 90},
                       kNoon);
  history.AddIteration({.ranks = 2, .seconds = 5, .energy_ranks = 1, .energy_ranks_joules = 40},
                       kNoon);
  history.AddIteration({.ranks = 1, .seconds = 7}, kNoon);
  const std::vector<store::Fact> facts = history.Take();
  ASSERT_EQ(facts.size(), 3U);
  for (const Resolution resolution : {Resolution::kMinute, Resolution::kHour, Resolution::kDay}) {
    const HistoryRow& row = *Of(facts, resolution);
    EXPECT_EQ(row.reports, 1);
    EXPECT_EQ(row.joules, 0);
    EXPECT_EQ(row.times, (store::IterationTimes{.iterations = 3, .reports = 5, .seconds = 15}));
    EXPECT_EQ(row.measured_times,
              (store::IterationTimes{.iterations = 1, .reports = 2, .seconds = 3}));
    EXPECT_EQ(row.measured_joules, 90);
  }
}

// Though no report came with it.
TEST(IterationHistoryTest, AnIterationThatTheStoreDoesNotHaveKeepsItsSpan) {
  IterationHistory history("j-1", {});
  history.Add({.seconds = 2}, 8, kNoon);
  const std::vector<store::Fact> first = history.Take();
  history.AddIteration({.ranks = 8, .seconds = 3}, kNoon);
  history.Written(first);
  const std::vector<store::Fact> second = history.Take();
  history.Add({.seconds = 2}, 8, kNoon + 60);  // The minute is over.
  history.Written(first);
  history.Unwritten(second);
  EXPECT_EQ(history.Take().size(), 4U);
}

TEST(IterationHistoryTest, AClosedSpanThatTheStoreRefusedIsWrittenAgain) {
  IterationHistory history("j-1", {});
  history.Add({.seconds = 2}, 8, kNoon);
  const std::vector<store::Fact> refused = history.Take();
  history.Add({.seconds = 2}, 8, kNoon + 60);
  history.Unwritten(refused);
  const std::vector<store::Fact> again = history.Take();
  EXPECT_EQ(again.size(), 4U);  // Two minutes, an hour, a day.
  history.Written(again);
  // Now it is forgotten: to say once more that it was refused changes nothing.
  history.Unwritten(refused);
  EXPECT_EQ(history.Take().size(), 2U);
}

TEST(IterationHistoryTest, WhileTheClockGoesBackTheLastSpanGoesOn) {
  IterationHistory history("j-1", {});
  history.Add({.seconds = 2}, 8, kNoon + 60);
  history.Add({.seconds = 2}, 8, kNoon + 59);
  const std::vector<store::Fact> facts = history.Take();
  EXPECT_EQ(facts.size(), 3U);
  EXPECT_EQ(Of(facts, Resolution::kMinute)->reports, 2);
}

// While the store is away for days.
TEST(IterationHistoryTest, OnlySoManySpansWait) {
  IterationHistory history("j-1", {});
  constexpr int kDays = 40;
  for (int minute = 0; minute < kDays * 24 * 60; minute += 7) {
    history.Add({.seconds = 2}, 8, kNoon + 60.0 * minute);
  }
  EXPECT_LE(history.Take().size(), 24U * 60 / 7 + 31 * 24 + kDays + 5);
}

// Two servers, each with a store that takes what it is given, refuses it, or takes it and cannot
// say so, and with jobs that rest and processes that begin anew.
class Servers {
 public:
  Servers() {
    Begin(0);
    Begin(1);
  }

  void Add(std::size_t server, const IterationCost& cost, double now) {
    histories_[server]->Add(cost, 4, now);
    pending_[server].Count(cost);
  }
  // An iteration with this report as its last.
  void Complete(std::size_t server, const IterationCost& cost, const IterationFigures& figures,
                double now) {
    Add(server, cost, now);
    histories_[server]->AddIteration(figures, now);
    ++pending_[server].iterations;
    pending_[server].seconds += figures.seconds;
  }
  // 0: written; 1: refused; 2: written, and not known.
  void Flush(std::size_t server, int outcome) {
    const std::vector<store::Fact> facts = histories_[server]->Take();
    if (outcome != 1) {
      for (const store::Fact& fact : facts) {
        const auto& row = std::get<HistoryRow>(fact);
        rows_[{writers_[server], row.resolution, row.start}] = row;
      }
      durable_.Add(pending_[server]);
      pending_[server] = {};
    }
    if (outcome == 0) {
      histories_[server]->Written(facts);
    } else {
      histories_[server]->Unwritten(facts);
    }
  }
  // As after SIGKILL: what was not written is gone.
  void Begin(std::size_t server) {
    writers_[server] = ++last_writer_;
    pending_[server] = {};
    Load(server);
  }
  // Of a job that rests, the store has all.
  void Rest(std::size_t server) {
    Flush(server, 0);
    Load(server);
  }
  // Whether rows of each resolution add up to what the store took.
  bool AreExact() const {
    for (const Resolution resolution : {Resolution::kMinute, Resolution::kHour, Resolution::kDay}) {
      Sums sums;
      for (const auto& [key, row] : rows_) {
        if (row.resolution != resolution) continue;
        sums.reports += row.reports;
        sums.energy_reports += row.energy_reports;
        sums.joules += row.joules;
        sums.predicted += row.predicted_joules;
        sums.measured += row.measured_saved_joules;
        sums.iterations += row.times.iterations;
        sums.seconds += row.times.seconds;
      }
      if (sums != durable_) return false;
    }
    return true;
  }

 private:
  struct Sums {
    std::int64_t reports = 0;
    std::int64_t energy_reports = 0;
    double joules = 0;
    double predicted = 0;
    double measured = 0;
    std::int64_t iterations = 0;
    double seconds = 0;

    void Count(const IterationCost& cost) {
      ++reports;
      if (!cost.joules) return;
      ++energy_reports;
      joules += *cost.joules;
      predicted += cost.predicted_joules;
      measured += cost.measured_saved_joules.value_or(0);
    }
    void Add(const Sums& other) {
      reports += other.reports;
      energy_reports += other.energy_reports;
      joules += other.joules;
      predicted += other.predicted;
      measured += other.measured;
      iterations += other.iterations;
      seconds += other.seconds;
    }
    friend bool operator==(const Sums&, const Sums&) = default;
  };

  void Load(std::size_t server) {
    std::map<Resolution, HistoryRow> last;
    for (const auto& [key, row] : rows_) {
      if (std::get<0>(key) == writers_[server]) last[row.resolution] = row;
    }
    std::vector<HistoryRow> own;
    for (const auto& [resolution, row] : last) own.push_back(row);
    histories_[server] = std::make_unique<IterationHistory>("j-1", own);
  }

  std::array<std::unique_ptr<IterationHistory>, 2> histories_;
  std::array<int, 2> writers_ = {};
  std::array<Sums, 2> pending_;
  int last_writer_ = 0;
  Sums durable_;  // What the store has, whether or not it could say so.
  std::map<std::tuple<int, Resolution, std::int64_t>, HistoryRow> rows_;
};

// Whole numbers, so that sums are exact.
RC_GTEST_PROP(IterationHistoryProperty, MinutesHoursAndDaysHoldWhatTheStoreTookOnce, ()) {
  Servers servers;
  double now = kNoon;
  const auto steps = *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 1 << 16));
  for (const int step : steps) {
    const std::size_t server = step % 2;
    const int value = step / 2 % 64;
    switch (step / 128 % 8) {
      case 0:
        servers.Flush(server, value % 3);
        break;
      case 1:
        if (value % 4 == 0) {
          servers.Begin(server);
        } else {
          servers.Rest(server);
        }
        break;
      case 2:
        now += value % 8 == 0 ? 7000 : value - 16;  // It also goes back.
        break;
      default: {
        IterationCost cost{.seconds = 1};
        if (value % 4 != 0) cost.joules = value;
        cost.predicted_joules = value % 7;
        if (value % 3 == 0) cost.measured_saved_joules = value % 5 - 2;
        if (value % 4 == 1) {
          servers.Complete(server, cost, {.ranks = 4, .seconds = 1.0 * value}, now);
        } else {
          servers.Add(server, cost, now);
        }
      }
    }
    RC_ASSERT(servers.AreExact());
  }
}

}  // namespace
}  // namespace perseus::server
