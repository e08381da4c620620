// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SWITCHING_LOOK_AHEAD_H_
#define PERSEUS_SWITCHING_LOOK_AHEAD_H_

#include <algorithm>
#include <cmath>
#include <limits>

// Decides which clock a rank that follows a plan should call for, and when. The client and the
// emulation of clients share this one rule (docs/explanation/emulation.md, "Clocks").
// A pure function without allocation. All times have the same unit and the same origin.
namespace perseus::switching {

// Limits of normal call times, in spreads around the mean: the 90th percentile, under which nearly
// all lie, and the minimum of 64, over which all lie.
inline constexpr double kHighSpreads = 1.3;
inline constexpr double kLeastSpreads = 2.2;

// How long calls for a clock take.
struct CallTime {
  double high = 0;   // Nearly all take at most this long.
  double least = 0;  // All take at least this long.
};

// How much time clocks may cost, and what holds for calls of all clocks.
struct CallRule {
  double most_high = 0;  // CallTime::high of any clock.
  // A lower clock may take effect before a computation ends by at most this share of its time.
  double max_early_loss = 0;
  double least_interval = 0;  // Between two calls.
};

// The position of a rank in its rows.
struct RankPlace {
  double now = 0;
  int row = 0;           // The row that runs or comes next.
  bool running = false;  // Whether `row` runs.
  double since = 0;      // If it runs: its start. If not: the end of the row before it.
  int called_row = -1;   // The last row whose clock was called for.
  bool waits = false;    // Whether the clock that was called for last is that of waiting.
};

struct ClockChoice {
  int row = 0;
  int clock = 0;  // The clock of `row`: it should be in effect, or called for, by now.
  // When the call for the next change is due; infinity: not known yet.
  double due = std::numeric_limits<double>::infinity();
  double expected = 0;  // Expected end of the running row, or start of the next row.
};

// `rows` knows the plan and what is expected of it; row size() is the first of the next iteration:
//   int size(), int Clock(int row), double Gap(int row) (before it), double Duration(int row)
//   bool Changes(int from, int to), bool Lowers(int from, int to), CallTime TimeOf(int clock)
//   bool NothingIsDue(int row, double end, double soon)   Rows after `row`, which ends at `end`,
//       need no look, as nothing is due before `soon`.
//   bool looks_far()  Also for calls that are due after `expected`.
//   bool HasWaitingClock(), int WaitingClock()  At which the rank waits, if it has one.
//   double Doubt(int row)  How far Gap(row) is usually off.
// A rank waits at its waiting clock while a gap is surely long enough: for a call down, the least
// interval, and a call up that ends before the next row may begin. Until when it may, where `row`
// is expected at `starts`: then the call for its clock is due.
template <typename Rows>
double WaitsUntil(Rows&& rows, int row, double starts) {
  constexpr double kDoubts = 4;  // As TCP's timer takes: Jacobson (1988).
  return starts - kDoubts * rows.Doubt(row) - rows.TimeOf(rows.Clock(row)).high;
}
template <typename Rows>
bool IsWorthWaiting(Rows&& rows, const CallRule& rule, double from, double until) {
  return until - from > rows.TimeOf(rows.WaitingClock()).high + rule.least_interval;
}

template <typename Rows>
ClockChoice LookAhead(Rows&& rows, const CallRule& rule, const RankPlace& place) {
  const int size = rows.size();
  double lasts = rows.Duration(place.row);
  ClockChoice choice;
  choice.row = place.row;
  choice.clock = rows.Clock(place.row);
  choice.expected = place.since + (place.running ? lasts : rows.Gap(place.row));
  if (rows.HasWaitingClock() && !place.running && place.row > place.called_row) {
    const double until = WaitsUntil(rows, place.row, choice.expected);
    if (place.waits ? until > place.now : IsWorthWaiting(rows, rule, place.now, until)) {
      choice.row = place.row - 1;
      choice.clock = rows.WaitingClock();
      choice.due = until;
      return choice;
    }
  }
  const double soon = std::max(place.now, choice.expected);
  double end = place.running ? soon : soon + lasts;
  const int last = rows.NothingIsDue(place.row, end, soon) ? place.row : size;
  for (int next = place.row + 1; next <= last; ++next) {
    const bool fresh = next > place.called_row;
    // No call for this one or for a later one is due before `soon`.
    if (!rows.looks_far() && fresh && end - rule.most_high > soon) break;
    const int wanted = rows.Clock(next);
    const double starts = end + rows.Gap(next);
    // Then the clock changes when the row before has ended.
    if (rows.HasWaitingClock() && fresh && next < size &&
        IsWorthWaiting(rows, rule, end, WaitsUntil(rows, next, starts))) {
      break;
    }
    if (rows.Changes(choice.clock, wanted)) {
      const CallTime takes = rows.TimeOf(wanted);
      double due = starts - takes.high;
      if (rows.Lowers(choice.clock, wanted)) {
        due = std::max(due, end - takes.least - rule.max_early_loss * lasts);
      }
      due = std::min(end, due);
      // A clock that was called for stays, even if predictions shift.
      if (fresh && due > place.now) {
        choice.due = due;
        break;
      }
      choice.row = next;
      choice.clock = wanted;
      // Do not skip a change whose clock was not called for yet. Otherwise one latency that was
      // measured too long could make the rank skip all high clocks from then on.
      if (fresh) break;
    }
    if (next == size) break;
    lasts = rows.Duration(next);
    end = starts + lasts;
  }
  return choice;
}

// The expected time or gap of a row after another measurement: a mean in which each measurement
// counts half as much as the next one. At first it is that of the plan.
inline double Learned(double known, double measured, bool is_measured) {
  return is_measured ? (known + measured) / 2 : measured;
}

// How far a gap is usually from what was expected, after another measurement. The first one says
// nothing of it, so half of the gap is taken, as TCP does.
inline double LearnedDoubt(double known, double expected, double measured, bool is_measured) {
  if (!is_measured) return measured / 2;
  constexpr double kNothing = 1.0 / 1024;  // Of the gap.
  const double doubt = (known + std::abs(measured - expected)) / 2;
  return doubt > kNothing * measured ? doubt : 0;
}

}  // namespace perseus::switching

#endif  // PERSEUS_SWITCHING_LOOK_AHEAD_H_
