// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SWITCHING_LOOK_AHEAD_H_
#define PERSEUS_SWITCHING_LOOK_AHEAD_H_

#include <algorithm>
#include <limits>

// Which clock a rank that follows a plan calls for, and when: one rule, which the client obeys
// and the emulation of clients predicts (docs/explanation/emulation.md, "Calls ahead of time"). A
// pure function: no clock, no thread, no allocation. All times are in one unit, from one start.
namespace perseus::switching {

// How long calls take, and what a lower clock may cost.
struct CallRule {
  double high = 0;   // A call hardly ever takes longer,
  double least = 0;  // and never less.
  // A lower clock comes at most so much of a computation's time before its end.
  double max_early_loss = 0;
};

// Where in its rows a rank is.
struct RankPlace {
  double now = 0;
  int row = 0;           // That runs, or comes next.
  bool running = false;  // It runs.
  double since = 0;      // Its start; of the next: the end of the one before it.
  int called_row = -1;   // The last that was called for.
};

struct ClockChoice {
  int row = 0;
  int clock = 0;  // That should be in effect, or be called for, by now: of that row.
  // Of the call for the next change; infinity: it is not known yet.
  double due = std::numeric_limits<double>::infinity();
  double expected = 0;  // The running row's end, or the next one's start.
};

// `rows` knows the plan and what is expected of it; row size() is the first of the next iteration:
//   int size(), int Clock(int row), double Gap(int row) (before it), double Duration(int row)
//   bool Changes(int from, int to), bool Lowers(int from, int to)  of clocks
//   bool NothingIsDue(int row, double end, double soon)   Rows after `row`, which ends at `end`,
//       need no look, as nothing is due before `soon`.
//   bool looks_far()  Also for calls that are due after `expected`.
template <typename Rows>
ClockChoice LookAhead(Rows&& rows, const CallRule& rule, const RankPlace& place) {
  const int size = rows.size();
  double lasts = rows.Duration(place.row);
  ClockChoice choice;
  choice.row = place.row;
  choice.clock = rows.Clock(place.row);
  choice.expected = place.since + (place.running ? lasts : rows.Gap(place.row));
  const double soon = std::max(place.now, choice.expected);
  double end = place.running ? soon : soon + lasts;
  const int last = rows.NothingIsDue(place.row, end, soon) ? place.row : size;
  for (int next = place.row + 1; next <= last; ++next) {
    const bool fresh = next > place.called_row;
    // No call for this one or for a later one is due before `soon`.
    if (!rows.looks_far() && fresh && end - rule.high > soon) break;
    const int wanted = rows.Clock(next);
    const double starts = end + rows.Gap(next);
    if (rows.Changes(choice.clock, wanted)) {
      double due = starts - rule.high;
      if (rows.Lowers(choice.clock, wanted)) {
        due = std::max(due, end - rule.least - rule.max_early_loss * lasts);
      }
      due = std::min(end, due);
      // What was called for once is not taken back when predictions shift.
      if (fresh && due > place.now) {
        choice.due = due;
        break;
      }
      choice.row = next;
      choice.clock = wanted;
      // No change is passed over before it was called for: a latency that was once
      // measured too long could otherwise jump from low clock to low clock for good.
      if (fresh) break;
    }
    if (next == size) break;
    lasts = rows.Duration(next);
    end = starts + lasts;
  }
  return choice;
}

// A row's time or gap once more: what is expected is a mean in which each measurement counts half
// of the next, at first what the plan promises.
inline double Learned(double known, double measured, bool is_measured) {
  return is_measured ? (known + measured) / 2 : measured;
}

}  // namespace perseus::switching

#endif  // PERSEUS_SWITCHING_LOOK_AHEAD_H_
