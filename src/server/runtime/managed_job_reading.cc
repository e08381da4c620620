// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// How a job learns what other servers wrote, and who waits for that.

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "server/base/without_throwing.h"
#include "server/runtime/ask_store.h"
#include "server/runtime/managed_job.h"
#include "server/runtime/tentative_change.h"

namespace perseus::server {
namespace {

// Of one refresh: the job's curve, whose rows are read only where it is a new one, may be replaced
// between the look at the marks and the reading.
constexpr int kMostReadings = 5;
// Of waiting for a plan, with what the waiter's owner adds.
constexpr double kSoonSeconds = 2;
// Between two looks at what other servers were told of iterations.
constexpr double kIterationsSeconds = 1;

}  // namespace

void ManagedJob::Refresh(Refreshed done) {
  if (!is_shared() || is_gone_) return done({});
  const Strand::Turn turn(strand_);
  WhenRead(std::move(done));
}

// Calls `done` after a reading that begins from now on.
void ManagedJob::WhenRead(Refreshed done) {
  of_next_reading_.push_back(std::move(done));
  if (!is_reading_) StartReading();
}

void ManagedJob::StartReading() {
  is_reading_ = true;
  of_this_reading_ = std::exchange(of_next_reading_, {});
  ReadOnce(board_.last_ticket(), 1);
}

void ManagedJob::ReadOnce(std::int64_t last_waiter, int readings) {
  strand_.Then([self = shared_from_this(), known = KnownOf(life_), last_waiter, readings] {
    const auto read = [&] {
      self->context_->store.ReadJob(self->id(), known,
                                    [self, last_waiter, readings](const Result<Reading>& reading) {
                                      const Strand::Turn turn(self->strand_);
                                      self->OnRead(reading, last_waiter, readings);
                                    });
    };
    AskStore("read a job", read, [&](const Error& why) {
      const Strand::Turn turn(self->strand_);
      self->Tell(why.message);
      self->OnRead(tl::unexpected(why), last_waiter, readings);
    });
  });
}

void ManagedJob::OnRead(const Result<Reading>& reading, std::int64_t last_waiter, int readings) {
  if (!reading) return EndReading(tl::unexpected(reading.error()), last_waiter);
  constexpr std::string_view kTake = "take what was read";
  const Result<bool> fits = WithoutThrowing(kTake, [&] {
    strand_.IsHeld();
    return TakeReading(*reading);
  });
  if (!fits) {
    NoteThrow({kTake, 0}, fits.error().message, {});
    life_.marks.rows = 0;  // Half of them may have come.
    return EndReading(tl::unexpected(fits.error()), last_waiter);
  }
  throws_.erase({kTake, 0});
  if (!*fits && readings < kMostReadings) return ReadOnce(last_waiter, readings + 1);
  if (!*fits) {
    return EndReading(
        MakeError(ErrorCode::kConflict, "other servers change the job faster than it can be read"),
        last_waiter);
  }
  checked_rows_ = reading->stored.marks.rows;
  EndReading({}, last_waiter);
}

// False: the reading is of a job that has changed since; see Absorb().
Result<bool> ManagedJob::TakeReading(const Reading& reading) {
  TentativeChange change(&life_);
  const Phase& before = change.before();
  const std::int64_t revision = life_.marks.revision;
  const std::int64_t rows = life_.marks.rows;
  const std::size_t measurements = life_.measurements;
  const bool fits = Absorb(reading, &life_);
  const Moment now = context_->now();
  if (life_.marks.revision != revision || life_.phase.is_gone != before.is_gone) {
    // Whoever wrote the version looked at the stragglers then; what began or expired since is news
    // here, too, lest that server is gone.
    looked_at_day_seconds_ = std::min(now.day_seconds, life_.phase.version.at_seconds);
    OnPhase(before);
  }
  if (life_.marks.rows != rows) {
    places_.SetAll(life_.ranks);
    looked_at_day_seconds_.reset();  // A slow node may have one more rank.
    if (life_.measurements != measurements) last_measured_seconds_ = now.seconds;
  }
  SeeMarks();
  change.Keep();
  return fits;
}

void ManagedJob::EndReading(const Result<void>& outcome, std::int64_t last_waiter) {
  is_reading_ = false;
  if (outcome) {
    strand_.Then([self = shared_from_this(), last_waiter] { self->board_.Confirm(last_waiter); });
  }
  for (Refreshed& done : of_this_reading_) {
    strand_.Then([done = std::move(done), outcome] { done(outcome); });
  }
  of_this_reading_.clear();
  if (!of_next_reading_.empty()) StartReading();
  if (outcome) AdvanceJob();
}

// Once in a while.
bool ManagedJob::MayReadIterations() {
  const double now = context_->now().seconds;
  const Strand::Turn turn(strand_);
  if (now - iterations_read_at_seconds_ < kIterationsSeconds) return false;
  iterations_read_at_seconds_ = now;
  return true;
}

void ManagedJob::RefreshAll(Refreshed done) {
  if (!is_shared() || is_gone_) return done({});
  Refresh([self = shared_from_this(), done = std::move(done)](const Result<void>& read) {
    if (!read || !self->MayReadIterations()) return done(read);
    // What cannot be read now is shown as it was.
    const auto ask = [&] {
      self->context_->store.ReadIterations(self->id(), [self, done](const auto& iterations) {
        if (iterations) {
          const Strand::Turn turn(self->strand_);
          self->sums_.SetElsewhere(*iterations);
        }
        done({});
      });
    };
    AskStore("read the sums of iterations", ask, [&](const Error&) { done({}); });
  });
}

bool ManagedJob::IsBehind(const store::JobMarks& marks) const {
  return marks.revision != seen_revision_ || marks.rows != seen_rows_;
}

std::int64_t ManagedJob::AwaitPlan(std::int64_t after, double seconds, PlanBoard::Waiter waiter) {
  HearRanks();
  const std::int64_t ticket = board_.Wait(after, seconds, std::move(waiter));
  if (ticket == 0 || after <= board_.version()) return ticket;
  if (!is_shared()) {
    board_.Confirm(ticket);
  } else if (seconds < kSoonSeconds) {
    Refresh([](const Result<void>&) {});  // Who hardly waits is told while it does.
  } else {
    context_->refresh_soon(id());
  }
  return ticket;
}

std::optional<store::RankRecord> ManagedJob::KnownRank(int rank) const {
  const Strand::Turn turn(strand_);
  const auto record = life_.ranks.find(rank);
  if (record == life_.ranks.end()) return std::nullopt;
  return record->second;
}

void ManagedJob::FindRank(int rank, RankFound found) {
  if (const auto place = places_.Find(rank)) return found(*place);
  const auto none = [rank] {
    return Fail(FailureCode::kNotFound,
                fmt::format("rank {} is not registered; register it first", rank), "rank");
  };
  const bool may_be_elsewhere = is_shared() && rank >= 0 && rank < shape_.world_size();
  if (!may_be_elsewhere) return found(none());
  Refresh([self = shared_from_this(), rank, found = std::move(found), none](const auto& read) {
    if (!read) return found(Unavailable(read.error()));
    const auto place = self->places_.Find(rank);
    found(place ? Outcome<RankPlace>(*place) : none());
  });
}

}  // namespace perseus::server
