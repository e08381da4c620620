// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "measure/sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <random>
#include <utility>

namespace perseus::measure {
namespace {

constexpr std::size_t kMeasuredPerRefinement = 4;

}  // namespace

ClockOrder::ClockOrder(const std::vector<int>& clocks_mhz, const OrderSettings& settings)
    : coarse_(settings.coarse) {
  const auto stride = static_cast<std::size_t>(std::max(1, settings.stride));
  for (std::size_t i = 0; i < clocks_mhz.size(); i += stride) {
    const int mhz = clocks_mhz[clocks_mhz.size() - 1 - i];
    if (mhz >= settings.least_mhz || clocks_mhz_.empty()) clocks_mhz_.push_back(mhz);
  }
  visited_.resize(clocks_mhz_.size());
  if (settings.shuffle) shuffle_seed_ = settings.seed;
  for (std::size_t i = kCoarseStride; i < clocks_mhz_.size(); i += kCoarseStride) {
    first_pass_.push_back(i);
  }
  Shuffle(&first_pass_);
  if (!coarse_) QueueTheRest();
  if (clocks_mhz_.empty()) return;
  reach_ =
      static_cast<std::size_t>(std::count_if(clocks_mhz_.begin(), clocks_mhz_.end(), [&](int mhz) {
        return mhz >= kLeastShare * clocks_mhz_.front();
      }));
  current_ = 0;
  visited_[0] = true;
}

// The same on every machine, unlike std::shuffle.
void ClockOrder::Shuffle(std::deque<std::size_t>* queue) {
  if (!shuffle_seed_) return;
  std::mt19937_64 random(*shuffle_seed_ + queue->size());
  for (std::size_t i = queue->size(); i > 1; --i)
    std::swap((*queue)[i - 1], (*queue)[random() % i]);
}

void ClockOrder::Leave(const std::vector<int>& clocks_mhz) {
  for (const int mhz : clocks_mhz) {
    const auto found = std::find(clocks_mhz_.begin(), clocks_mhz_.end(), mhz);
    if (found == clocks_mhz_.end()) continue;
    const auto index = static_cast<std::size_t>(found - clocks_mhz_.begin());
    visited_[index] = true;
    if (current_ == index) current_.reset();
  }
  if (!current_) current_ = Take(&first_pass_, clocks_mhz_.size());
  if (!current_) current_ = Take(&fill_in_, clocks_mhz_.size());
  if (current_) visited_[*current_] = true;
}

std::vector<int> ClockOrder::PassedOver() const {
  std::vector<int> passed;
  const auto last = std::find(visited_.rbegin(), visited_.rend(), true);
  const auto end = static_cast<std::size_t>(visited_.rend() - last);
  for (std::size_t i = 0; i < end; ++i) {
    if (!visited_[i]) passed.push_back(clocks_mhz_[i]);
  }
  return passed;
}

std::vector<ClockOrder::Curve> ClockOrder::CurvesOf(
    const std::vector<Estimate>& rows, const std::optional<BlockingPower>& waiting) const {
  std::map<Kind, Curve> curves;
  for (const Estimate& row : rows) {
    const auto found = std::find(clocks_mhz_.begin(), clocks_mhz_.end(), row.mhz);
    if (found == clocks_mhz_.end()) continue;
    curves[row.kind].points.push_back({static_cast<std::size_t>(found - clocks_mhz_.begin()),
                                       row.seconds, row.joules, row.joules_std,
                                       static_cast<double>(row.samples)});
  }
  std::vector<Curve> sorted;
  for (auto& [kind, curve] : curves) {
    std::sort(curve.points.begin(), curve.points.end(),
              [](const Point& a, const Point& b) { return a.index < b.index; });
    const Point& highest = curve.points.front();
    curve.waiting = waiting.value_or(BlockingPower{
        highest.seconds > 0 ? kAssumedWaiting * highest.joules / highest.seconds : 0, 0});
    sorted.push_back(std::move(curve));
  }
  return sorted;
}

ClockOrder::Ends ClockOrder::EndsOf(const std::vector<Curve>& curves) const {
  const std::size_t all = clocks_mhz_.size();
  // The index from which on, to the lowest clock, a curve's energy has risen, less `share` of the
  // energy of waiting. `all`: it has not, or at too few clocks.
  const auto risen_from = [&](const Curve& curve, double share) {
    const std::vector<Point>& points = curve.points;
    const auto effective = [&](const Point& point) {
      return point.joules - share * curve.waiting.watts * point.seconds;
    };
    const Point& least = *std::min_element(
        points.begin(), points.end(),
        [&](const Point& a, const Point& b) { return effective(a) < effective(b); });
    std::size_t begin = points.size();
    for (; begin > 0 && points[begin - 1].index > least.index; --begin) {
      const Point& point = points[begin - 1];
      const double rise = effective(point) - effective(least);
      const double error =
          std::hypot(point.joules_std, least.joules_std,
                     share * curve.waiting.watts_std * (point.seconds - least.seconds));
      if (rise <= kSigmas * error || rise <= kLeastRise * least.joules) break;
    }
    return points.size() < begin + kRisesToStop ? all : points[begin].index;
  };
  Ends ends;
  for (const Curve& curve : curves) {
    const std::size_t joules = risen_from(curve, 0);
    std::size_t effective = risen_from(curve, 1);
    // Slower, and of more joules: only a rank that waits and waits could use it.
    if (joules < all) effective = std::min(effective, reach_);
    ends.measured = std::max(ends.measured, effective);
    ends.filled = std::max(ends.filled, std::min(joules, effective));
  }
  return curves.empty() ? Ends{all, all} : ends;
}

// A clock half way between an end and the lowest one that could be needed, to see whether energy
// falls again there. None: that was seen already.
std::optional<std::size_t> ClockOrder::Look(std::size_t end) const {
  if (end >= reach_) return std::nullopt;
  const std::size_t middle = (end + reach_) / 2;
  const auto begin = visited_.begin() + static_cast<std::ptrdiff_t>(middle);
  return std::find(begin, visited_.end(), true) == visited_.end() ? std::optional(middle)
                                                                  : std::nullopt;
}

// The middle of the interval in which the hull may lie furthest below its chord:
// within the triangle that the chord and the neighbours' slopes make.
std::optional<std::size_t> ClockOrder::Refinement(const std::vector<Curve>& curves) const {
  std::map<std::size_t, double> joules;  // By the clock that would be measured.
  for (const Curve& curve : curves) {
    const std::vector<Point>& points = curve.points;
    const double blocking_watts = curve.waiting.watts;
    const auto slope = [&](std::size_t i) {  // Joules saved per second from i to i + 1.
      const double seconds = points[i + 1].seconds - points[i].seconds;
      const double saved = points[i].joules - points[i + 1].joules + blocking_watts * seconds;
      return seconds > 0 ? saved / seconds : 0;
    };
    for (std::size_t i = 0; i + 1 < points.size(); ++i) {
      const std::size_t middle = (points[i].index + points[i + 1].index) / 2;
      if (middle == points[i].index || visited_[middle]) continue;
      const double seconds = points[i + 1].seconds - points[i].seconds;
      const double own = slope(i);
      const double next = i + 2 < points.size() ? std::max(0.0, slope(i + 1)) : 0;
      if (!(seconds > 0) || own <= next) continue;
      double depth = seconds * (own - next);
      if (i > 0) {
        const double before = slope(i - 1);
        depth = before > own ? depth * (before - own) / (before - next) : 0;
      }
      joules[middle] += depth * points[i].count;
    }
  }
  const auto most =
      std::max_element(joules.begin(), joules.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  if (most == joules.end() || !(most->second > 0)) return std::nullopt;
  return most->first;
}

// Queues the clocks that the first pass leaves out.
void ClockOrder::QueueTheRest() {
  const std::size_t all = clocks_mhz_.size();
  for (std::size_t pass = 1; pass < kCoarseStride; ++pass) {
    const bool is_up = pass != 2;
    std::deque<std::size_t> queue;
    // The middles first, then what is beside them.
    const std::size_t offset = pass == 1 ? kCoarseStride / 2 : pass == 2 ? 1 : kCoarseStride - 1;
    for (std::size_t i = offset; i < all; i += kCoarseStride) queue.push_back(i);
    if (is_up) std::reverse(queue.begin(), queue.end());
    Shuffle(&queue);
    fill_in_.insert(fill_in_.end(), queue.begin(), queue.end());
  }
}

std::optional<std::size_t> ClockOrder::Take(std::deque<std::size_t>* queue, std::size_t end) {
  std::erase_if(*queue, [&](std::size_t index) { return visited_[index]; });
  const auto found =
      std::find_if(queue->begin(), queue->end(), [&](std::size_t index) { return index < end; });
  return found == queue->end() ? std::nullopt : std::optional(*found);
}

void ClockOrder::Next(const std::vector<Estimate>& rows,
                      const std::optional<BlockingPower>& waiting, double jump) {
  if (!current_) return;
  ++measured_;
  const std::vector<Curve> curves = CurvesOf(rows, waiting);
  const Ends ends = EndsOf(curves);
  current_ = Take(&first_pass_, ends.measured);
  if (!current_) current_ = Look(ends.measured);
  first_pass_ended_ = first_pass_ended_ || !current_;
  if (!current_ && coarse_ && !refinements_left_) {
    refinements_left_ = measured_ / kMeasuredPerRefinement;
    rough_ = jump >= kRoughJump;
    if (rough_) {
      coarse_ = false;
      QueueTheRest();
    }
  }
  if (!current_ && coarse_ && *refinements_left_ > 0) {
    --*refinements_left_;
    current_ = Refinement(curves);
  }
  if (!current_ && !coarse_) current_ = Take(&fill_in_, ends.filled);
  if (current_) visited_[*current_] = true;
}

namespace {

std::vector<TimeSummary> SummariesOf(const std::vector<std::vector<Iteration>>& windows,
                                     std::size_t kinds) {
  std::vector<std::vector<TimeSample>> samples(kinds);
  for (const auto& window : windows) {
    for (const Iteration& iteration : window) {
      for (const Span& span : iteration.spans) {
        if (span.end_ns <= span.begin_ns) continue;
        samples[span.kind].push_back(
            {static_cast<double>(span.end_ns - span.begin_ns) * kSecondsPerNs, span.work});
      }
    }
  }
  std::vector<TimeSummary> summaries;
  summaries.reserve(samples.size());
  for (const auto& of_kind : samples) summaries.push_back(SummariseTimes(of_kind));
  return summaries;
}

}  // namespace

Sweep::Sweep(const std::vector<int>& clocks_mhz, const SweepSettings& settings)
    : settings_(settings), order_(clocks_mhz, settings.order) {
  ended_ = order_.clock_mhz() == 0;  // A card without clocks.
}

void Sweep::Leave(const std::vector<int>& clocks_mhz) {
  order_.Leave(clocks_mhz);
  left_default_clocks_ =
      std::find(clocks_mhz.begin(), clocks_mhz.end(), kDefaultClockMhz) != clocks_mhz.end();
  EndIfAllIsMeasured();
}

// At the driver's clocks, the highest clock's record is that of default clocks.
void Sweep::EndIfAllIsMeasured() {
  if (clock_mhz() != 0) return;
  ended_ =
      at_default_clocks_ || !settings_.default_clocks || left_default_clocks_ || at_driver_clocks_;
  at_default_clocks_ = !ended_;
}

void Sweep::ClockInEffect(std::int64_t at_ns) { in_effect_ns_ = at_ns; }

void Sweep::StayAtDriverClocks(const std::string& why) {
  if (!records_.empty()) return GiveUp(why);
  Note(why);
  at_driver_clocks_ = true;
  order_ = ClockOrder({order_.highest_mhz()}, {});
  ForgetClock();
}

void Sweep::GiveUp(const std::string& why) {
  if (!why.empty()) Note(why);
  ended_ = true;
}

std::size_t Sweep::KindOf(const Kind& kind) {
  const auto found = std::find(kinds_.begin(), kinds_.end(), kind);
  if (found != kinds_.end()) return static_cast<std::size_t>(found - kinds_.begin());
  if (kinds_.size() == kMaxKinds) return kMaxKinds;
  kinds_.push_back(kind);
  return kinds_.size() - 1;
}

void Sweep::BeginIteration(std::int64_t number, std::int64_t at_ns) {
  recorder_.BeginIteration(number, at_ns);
  joules_at_begin_ = counter_.joules();
  began_ns_ = at_ns;
}

void Sweep::EndIteration(std::int64_t at_ns) {
  if (ended_ || !recorder_.in_iteration()) return;
  recorder_.EndIteration(at_ns);
  const double seconds = static_cast<double>(at_ns - began_ns_) * kSecondsPerNs;
  const std::optional<double> now = counter_.joules();
  // The counter may be read for the first time, or have begun anew.
  const double joules = now && joules_at_begin_ ? std::max(0.0, *now - *joules_at_begin_) : 0;
  all_.Add(seconds, joules);
  if (in_effect_ns_ && began_ns_ >= *in_effect_ns_) at_clock_.Add(seconds, joules);
  TakeIterations();
}

void Sweep::AbandonIteration() {
  recorder_.AbandonIteration();
  TakeIterations();
}

void Sweep::Begin(const Kind& kind, std::int64_t at_ns) {
  const std::size_t index = KindOf(kind);
  if (index < kMaxKinds) recorder_.Begin(index, at_ns);
}

void Sweep::SetTimes(std::int64_t iteration,
                     const std::vector<std::pair<std::int64_t, std::int64_t>>& ns) {
  recorder_.SetTimes(iteration, ns);
  TakeIterations();
}

void Sweep::AddRead(double joules, std::int64_t begin_ns, std::int64_t end_ns) {
  if (ended_) return;
  if (const auto tick = counter_.Add(joules, begin_ns, end_ns)) ticks_.push_back(*tick);
}

void Sweep::AddConditions(std::optional<double> temperature_celsius, bool throttled) {
  if (!in_effect_ns_) return;
  if (temperature_celsius) {
    celsius_sum_ += *temperature_celsius;
    ++celsius_count_;
  }
  throttled_ = throttled_ || throttled;
}

void Sweep::AddClock(int mhz) {
  if (in_effect_ns_) ++clocks_seen_[mhz];
}

void Sweep::Note(const std::string& sentence) {
  if (std::find(noted_.begin(), noted_.end(), sentence) != noted_.end()) return;
  noted_.push_back(sentence);
  notes_.push_back(sentence);
}

void Sweep::TakeIterations() {
  for (const Recorded& recorded : recorder_.Take()) {
    if (!ended_) Count(recorded);
  }
}

void Sweep::Count(const Recorded& recorded) {
  const Iteration& iteration = recorded.iteration;
  if (!recorded.good) broken_ = true;
  if (!in_effect_ns_ || !recorded.good || iteration.end_ns < *in_effect_ns_) return;
  if (settled_ < settings_.settling) {
    ++settled_;
    return;
  }
  if (iteration.begin_ns < *in_effect_ns_) return;
  if (broken_) windows_.emplace_back();
  broken_ = false;
  windows_.back().push_back(iteration);
  if (++whole_iterations_ >= WantedIterations()) MeasuredClock();
}

// The highest clock is what savings and deadlines are measured against, and costs nothing. Where
// the sweep comes back to it, it is not measured for longer the first time: the card may be cold.
// Savings are measured against no clock, too, to which the sweep never comes back.
int Sweep::WantedIterations() const {
  const bool only_once = order_.clocks() < kFewestToGoBack && again_.empty();
  const bool longer = at_default_clocks_ || (clock_mhz() == order_.highest_mhz() && only_once);
  return (longer ? 2 : 1) * settings_.iterations;
}

// Seen at another clock than was asked for, most of the time.
bool Sweep::ClockDidNotTake() {
  if (at_driver_clocks_ || at_default_clocks_) return false;
  int looks = 0;
  std::pair<int, int> most = {0, 0};
  for (const auto& [mhz, count] : clocks_seen_) {
    looks += count;
    if (count > most.second) most = {mhz, count};
  }
  if (looks == 0 || std::abs(most.first - clock_mhz()) <= kSameMhz || 2 * most.second <= looks) {
    return false;
  }
  Note(fmt::format("clock {} did not take: {} seen; it is not in the profile", clock_mhz(),
                   most.first));
  return true;
}

void Sweep::MeasuredClock() {
  ClockRecord record;
  record.mhz = clock_mhz();
  record.visit = static_cast<double>(visits_++);
  record.throttled =
      throttled_ && !at_default_clocks_;  // A power cap is a part of how it runs then.
  if (celsius_count_ > 0) record.temperature_celsius = celsius_sum_ / celsius_count_;
  record.times = SummariesOf(windows_, kinds_.size());
  std::vector<KindScale> scales;
  for (const TimeSummary& time : record.times) {
    scales.push_back({time.seconds, time.per_work ? time.work : 0});
  }
  record.stretches = FitStretches(windows_, ticks_, scales, habit_);
  const bool enough = record.stretches.stretches >= kFewestStretches;
  if (!enough && whole_iterations_ < kPatience * WantedIterations()) return;
  if (clock_mhz() == order_.highest_mhz() && !at_highest_) at_highest_ = at_clock_;
  if (enough) {
    fruitless_ = 0;
    if (record.throttled) {
      Note(fmt::format("clock {} was measured while the card was throttled", clock_mhz()));
    }
    const bool took = !ClockDidNotTake();
    if (took) {
      records_.push_back(std::move(record));
      seen_.push_back({windows_, ticks_, scales});
      LearnHabit();
    }
    const ProfileFit fit = FitProfile(kinds_, records_, false);
    for (const Estimate& row : fit.rows) {
      if (took && row.mhz == clock_mhz()) rows_.push_back(row);
    }
    blocking_ = fit.blocking;
    NextClock(fit);
    return;
  }
  Note(at_default_clocks_
           ? fmt::format("at default clocks the energy counter said too little in {} iterations, "
                         "so no saving against that is stated",
                         whole_iterations_)
           : fmt::format("at {} MHz the energy counter said too little in {} iterations; this "
                         "clock is not in the profile",
                         clock_mhz(), whole_iterations_));
  NextClock(FitProfile(kinds_, records_, false));
  if (++fruitless_ < kFruitlessToStop || ended_) return;
  GiveUp(
      fmt::format("the energy counter said too little at {} clocks in a row; the rest of the "
                  "profile is not measured",
                  fruitless_));
}

// Once, as soon as the counter has stepped often enough, or at the end.
void Sweep::LearnHabit() {
  std::size_t steps = 0;
  for (const Visit& visit : seen_) steps += visit.ticks.size();
  if (knows_habit_ || (steps < 2 * kHabitSteps && !ended_)) return;
  knows_habit_ = true;
  habit_ = FitHabit(seen_).value_or(CounterHabit{});
  if (habit_ == CounterHabit{}) return;
  for (std::size_t i = 0; i < records_.size(); ++i) {
    records_[i].stretches = FitStretches(seen_[i].windows, seen_[i].ticks, seen_[i].scales, habit_);
  }
}

void Sweep::NextClock(const ProfileFit& fit) {
  if (at_default_clocks_) {
    // That was the last.
  } else if (again_.empty()) {
    order_.Next(fit.rows, fit.blocking, fit.jump);
    if (order_.rough()) {
      Note("times jump from clock to clock on this card, so every clock is measured");
    }
    if (order_.clock_mhz() == 0 && !went_back_) {
      GoBack(fit);
    } else if (order_.first_pass_ended() && !saw_reference_ && records_.size() >= kFewestToGoBack) {
      saw_reference_ = true;
      again_.push_back(order_.highest_mhz());
    }
  } else {
    again_.erase(again_.begin());
  }
  EndIfAllIsMeasured();
  ForgetClock();
}

// Upwards, so that what drifted all the time shows most at the highest clocks.
void Sweep::GoBack(const ProfileFit& fit) {
  went_back_ = true;
  if (records_.size() < kFewestToGoBack) return;
  const std::size_t count =
      std::clamp<std::size_t>(records_.size() / kClocksPerReturn, 2, kMostReturns);
  std::vector<int> clocks;
  for (const ClockRecord& record : records_) clocks.push_back(record.mhz);
  std::sort(clocks.begin(), clocks.end());
  for (std::size_t i = 1; i <= count; ++i) again_.push_back(clocks[i * clocks.size() / count - 1]);
  for (const Estimate& row : fit.rows) {
    if (IsDoubtful(row) && again_.size() < count + kMostDoubtful) again_.push_back(row.mhz);
  }
  std::sort(again_.begin(), again_.end());
  again_.erase(std::unique(again_.begin(), again_.end()), again_.end());
}

// Marks throttled clocks by times and powers, if the card did not report them. Returns the highest
// measured clock that the card follows.
int Sweep::MarkThrottled() {
  std::vector<Estimate> rows = FitProfile(kinds_, records_, false).rows;
  std::erase_if(rows, [](const Estimate& row) { return row.mhz == kDefaultClockMhz; });
  const std::vector<int> clocks = ThrottledClocks(rows);
  int follows_mhz = 0;
  for (ClockRecord& record : records_) {
    if (clocks.empty() || record.mhz < clocks.back()) {
      follows_mhz = std::max(follows_mhz, record.mhz);
    } else {
      record.throttled = true;
    }
  }
  if (clocks.empty()) return follows_mhz;
  Note(fmt::format(
      "from {} MHz up the card was no faster than at the clock below, and drew no more: "
      "it seems to be throttled there, so these times are doubtful",
      clocks.back()));
  return follows_mhz;
}

void Sweep::ForgetClock() {
  in_effect_ns_.reset();
  settled_ = 0;
  whole_iterations_ = 0;
  broken_ = true;
  windows_.clear();
  ticks_.clear();
  at_clock_ = {};
  celsius_sum_ = 0;
  celsius_count_ = 0;
  throttled_ = false;
  clocks_seen_.clear();
}

void Sweep::Finish() {
  if (!ended_ || done_) return;
  done_ = true;
  LearnHabit();
  if (habit_.lag_seconds > 0) {
    Note(fmt::format("the energy counter shows what was {:.0f} ms ago; energies are corrected",
                     1000 * habit_.lag_seconds));
  }
  if (habit_.duty < 1) {
    Note(
        fmt::format("the energy counter measures only {:.0f} % of the time; energies are less sure",
                    100 * habit_.duty));
  }
  // Predict only clocks below this: throttled ones are off the curve.
  const int follows_mhz = MarkThrottled();
  if (settings_.order.coarse && !order_.rough() && records_.size() >= kFewestToPredict) {
    for (const int mhz : order_.PassedOver()) {
      if (mhz < follows_mhz) records_.push_back(ClockRecord::Predicted(mhz));
    }
  }
  std::sort(records_.begin(), records_.end(),
            [](const ClockRecord& a, const ClockRecord& b) { return a.mhz > b.mhz; });
  ProfileFit fit = FitProfile(kinds_, records_, true);
  rows_ = std::move(fit.rows);
  blocking_ = fit.blocking;
  waiting_ = std::move(fit.waiting);
}

std::vector<Estimate> Sweep::TakeRows() { return std::exchange(rows_, {}); }

std::vector<std::string> Sweep::TakeNotes() { return std::exchange(notes_, {}); }

SweepCost Sweep::cost() const {
  SweepCost cost;
  cost.iterations = all_.iterations;
  cost.seconds = all_.seconds;
  cost.joules = all_.joules;
  if (at_highest_ && at_highest_->iterations > 0) {
    const double share =
        static_cast<double>(all_.iterations) / static_cast<double>(at_highest_->iterations);
    cost.extra_seconds = all_.seconds - share * at_highest_->seconds;
    cost.extra_joules = all_.joules - share * at_highest_->joules;
  }
  return cost;
}

}  // namespace perseus::measure
