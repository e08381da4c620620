// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "measure/profile_fit.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "common/numbers.h"
#include "measure/curve.h"

namespace perseus::measure {

namespace {

constexpr double kOutlier = 5;             // Robust standard deviations.
constexpr double kOfNormal = 1.4826;       // Standard over median absolute deviation.
constexpr double kLeastTimeSpread = 1e-3;  // Relative: what clocks of hosts blur.
constexpr double kVariesFrom = 0.02;       // Relative spread of work.
constexpr int kRounds = 3;

struct Line {
  double count = 0;
  double seconds = 0;
  double work = 0;
  double slope = 0;
  double squares = 0;  // Of the residuals.
};

Line FitLine(const std::vector<TimeSample>& samples, const std::vector<bool>& used, bool varies) {
  Line line;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    if (!used[i]) continue;
    line.count += 1;
    line.seconds += samples[i].seconds;
    line.work += samples[i].work;
  }
  line.seconds /= line.count;
  line.work /= line.count;
  double covariance = 0;
  double variance = 0;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    if (!used[i]) continue;
    const double work = samples[i].work - line.work;
    covariance += work * (samples[i].seconds - line.seconds);
    variance += work * work;
  }
  if (varies && variance > 0) line.slope = covariance / variance;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    if (!used[i]) continue;
    const double residual =
        samples[i].seconds - line.seconds - line.slope * (samples[i].work - line.work);
    line.squares += residual * residual;
  }
  return line;
}

bool WorkVaries(const std::vector<TimeSample>& samples) {
  double sum = 0;
  double squares = 0;
  for (const TimeSample& sample : samples) {
    if (!(sample.work > 0)) return false;
    sum += sample.work;
    squares += sample.work * sample.work;
  }
  const auto count = static_cast<double>(samples.size());
  const double mean = sum / count;
  return count >= 4 && squares / count - mean * mean > std::pow(kVariesFrom * mean, 2);
}

}  // namespace

TimeSummary SummariseTimes(const std::vector<TimeSample>& samples) {
  TimeSummary summary;
  if (samples.empty()) return summary;
  const bool varies = WorkVaries(samples);
  std::vector<bool> used(samples.size(), true);
  Line line = FitLine(samples, used, varies);
  for (int round = 0; round < kRounds; ++round) {
    // Residuals about their median, so that an outlier does not hide behind itself.
    std::vector<double> residuals;
    residuals.reserve(samples.size());
    for (const TimeSample& sample : samples) {
      residuals.push_back(sample.seconds - line.seconds - line.slope * (sample.work - line.work));
    }
    const double middle = UpperMedianOf(residuals);
    std::vector<double> distances;
    distances.reserve(samples.size());
    for (const double residual : residuals) distances.push_back(std::abs(residual - middle));
    const double spread =
        std::max(kOfNormal * UpperMedianOf(distances), kLeastTimeSpread * line.seconds);
    for (std::size_t i = 0; i < samples.size(); ++i) {
      used[i] = distances[i] <= kOutlier * spread;
    }
    line = FitLine(samples, used, varies);
  }
  summary.samples = static_cast<std::int64_t>(line.count);
  summary.seconds = line.seconds;
  summary.work = line.work;
  if (varies) summary.per_work = line.slope;
  const double freedom = std::max(1.0, line.count - (varies ? 2 : 1));
  summary.residual_variance = line.squares / freedom;
  return summary;
}

namespace {

constexpr std::size_t kFewestAlike = 3;  // Clocks.
constexpr std::size_t kBelow = 4;        // Clocks whose slope is compared.
// Slopes are of logarithms over that of the clock. Below the bend, time changes with the clock and
// power does, too; above it, by no more than this share of that.
constexpr double kLeastTimeSlope = 0.3;
constexpr double kLeastPowerSlope = 0.5;
constexpr double kMostShare = 0.2;
constexpr double kThrottleSigmas = 3;

struct Slope {
  double value = 0;
  double std = 0;
};

// Of one kind, from the highest clock down.
struct Logs {
  std::vector<double> clock;
  std::vector<double> time;
  std::vector<double> power;
};

// A line through [begin, end); its error from how far values are off it.
Slope SlopeOf(const std::vector<double>& clock, const std::vector<double>& value, std::size_t begin,
              std::size_t end) {
  const auto count = static_cast<double>(end - begin);
  double clock_mean = 0;
  double value_mean = 0;
  for (std::size_t i = begin; i < end; ++i) {
    clock_mean += clock[i] / count;
    value_mean += value[i] / count;
  }
  double squares = 0;
  double products = 0;
  for (std::size_t i = begin; i < end; ++i) {
    squares += (clock[i] - clock_mean) * (clock[i] - clock_mean);
    products += (clock[i] - clock_mean) * (value[i] - value_mean);
  }
  if (!(squares > 0)) return {};
  Slope slope = {products / squares, 0};
  double residuals = 0;
  for (std::size_t i = begin; i < end; ++i) {
    const double off = value[i] - value_mean - slope.value * (clock[i] - clock_mean);
    residuals += off * off;
  }
  slope.std = std::sqrt(residuals / std::max(1.0, count - 2) / squares);
  return slope;
}

// Whether a value hardly changes from the highest clock to the `alike`-th, and much below it.
bool Bends(const std::vector<double>& clock, const std::vector<double>& value, std::size_t alike,
           double least) {
  const Slope above = SlopeOf(clock, value, 0, alike);
  const Slope below = SlopeOf(clock, value, alike - 1, alike - 1 + kBelow);
  const double change = std::abs(below.value) - std::abs(above.value);
  return std::abs(below.value) >= least &&
         std::abs(above.value) <= kMostShare * std::abs(below.value) &&
         change > kThrottleSigmas * std::hypot(above.std, below.std);
}

bool IsThrottled(const Logs& logs, std::size_t alike) {
  return Bends(logs.clock, logs.time, alike, kLeastTimeSlope) &&
         Bends(logs.clock, logs.power, alike, kLeastPowerSlope);
}

}  // namespace

std::vector<int> ThrottledClocks(const std::vector<Estimate>& rows) {
  std::map<int, std::map<Kind, const Estimate*>, std::greater<>> by_clock;
  std::map<Kind, Logs> kinds;
  for (const Estimate& row : rows) {
    by_clock[row.mhz][row.kind] = &row;
    kinds[row.kind];
  }
  std::vector<int> clocks;
  for (const auto& [mhz, of_clock] : by_clock) {
    if (of_clock.size() != kinds.size()) continue;
    clocks.push_back(mhz);
    for (const auto& [kind, row] : of_clock) {
      Logs& logs = kinds[kind];
      logs.clock.push_back(std::log(mhz));
      logs.time.push_back(std::log(row->seconds));
      logs.power.push_back(std::log(row->joules / row->seconds));
    }
  }
  // The lowest bend: above it, the curve is flat all the way.
  for (std::size_t alike = clocks.size(); alike >= kFewestAlike; --alike) {
    if (alike - 1 + kBelow > clocks.size()) continue;
    const bool all = std::all_of(kinds.begin(), kinds.end(),
                                 [&](const auto& kind) { return IsThrottled(kind.second, alike); });
    if (all) return {clocks.begin(), clocks.begin() + static_cast<std::ptrdiff_t>(alike) - 1};
  }
  return {};
}

namespace {

// A value to fit: the power of a kind at a clock, whatever the visits to it were like.
struct Target {
  int mhz = 0;
  CurvePoint point;  // Its curve is the kind.
};

struct PriorsTried {
  bool several = false;
  bool drifts = false;            // Among several.
  bool waiting_by_clock = false;  // Else the power of waiting is one number.
};

struct FittedWatts {
  CurveValues power;                      // [target]
  std::vector<std::vector<double>> work;  // [record][kind]; see the unknowns in stretch_fit.h.
  BlockingPower waiting;                  // At the highest clock.
  std::optional<WaitingCurve> waiting_curve;
  double spread = 0;  // Relative spread of the power of single computations.
};

// The point of a kind's curve that a record measured.
CurvePoint PointOf(const ClockRecord& record, std::size_t kind, int highest_mhz) {
  const bool default_clocks = record.mhz == kDefaultClockMhz;
  return {.curve = kind,
          .below = default_clocks ? 0 : 1 - static_cast<double>(record.mhz) / highest_mhz,
          .apart = record.throttled,
          .default_clocks = default_clocks,
          .visit = record.visit};
}

constexpr std::size_t kMostPowers = 200;  // Of one fit.
// Of a pause's power before it is measured, relative to the mean of all.
constexpr double kPauseMean = 0.4;
constexpr double kPauseSpread = 0.4;

// Unknowns of a fit beyond those that a record's columns have: slope and bend of waiting by clock.
constexpr std::size_t kFirstSlope = kFirstKindColumn;

// A Gaussian belief about waiting and rest, and about slope and bend of waiting where they are
// fitted.
struct PauseBelief {
  explicit PauseBelief(bool by_clock)
      : mean(kFirstKindColumn + (by_clock ? kWaitingSpreads.size() : 0)), precision(mean.size()) {}
  bool by_clock() const { return mean.size() > kFirstKindColumn; }

  std::vector<double> mean;
  SymmetricMatrix precision;
};

// The highest clock that the card kept; `highest_mhz` if it kept none.
int HighestFollowed(const std::vector<ClockRecord>& records, int highest_mhz) {
  int follows_mhz = 0;
  for (const ClockRecord& record : records) {
    if (!record.predicted && !record.throttled) follows_mhz = std::max(follows_mhz, record.mhz);
  }
  return follows_mhz > 0 ? follows_mhz : highest_mhz;
}

// Records [begin, end), in one fit. The unknowns are the pauses, then the power of each kind in
// each record, then the work columns of those whose work varies.
class Problem {
 public:
  Problem(const std::vector<ClockRecord>& records, std::size_t begin, std::size_t end,
          const std::vector<bool>& varies, double scale, int highest_mhz, const PauseBelief& pauses)
      : records_(records),
        scale_(scale),
        follows_mhz_(HighestFollowed(records, highest_mhz)),
        pauses_(pauses),
        begin_(begin),
        end_(end) {
    for (const bool is_work : {false, true}) {
      Block& block = is_work ? works_ : powers_;
      block.first = is_work ? powers_.first + powers_.points.size() : pauses.mean.size();
      for (std::size_t kind = 0; kind < varies.size(); ++kind) {
        if (is_work && !varies[kind]) continue;
        for (std::size_t i = begin; i < end; ++i) {
          if (records[i].predicted || !records[i].Has(kind)) continue;
          block.points.push_back(PointOf(records[i], kind, highest_mhz));
          block.records.push_back(i);
        }
      }
    }
    unknowns_ = works_.first + works_.points.size();
  }

  struct Solution {
    double log_likelihood = 0;
    std::vector<double> watts;
    SymmetricMatrix covariance;  // Empty where it was not asked for.
  };
  Solution Solve(std::size_t spread, const CurvePrior& prior, bool with_covariance) const {
    SymmetricMatrix precision(unknowns_);
    std::vector<double> mean(unknowns_);
    double prior_log_determinant = 0;  // Of the prior's covariance.
    for (std::size_t i = 0; i < pauses_.mean.size(); ++i) {
      mean[i] = pauses_.mean[i];
      for (std::size_t j = 0; j < pauses_.mean.size(); ++j) {
        precision.at(i, j) = pauses_.precision.at(i, j);
      }
    }
    CurvePrior of_work = prior;
    of_work.drift = 0;
    for (const Block* block : {&powers_, &works_}) {
      const bool is_work = block == &works_;
      const Cholesky factor(CurveCovariance(block->points, is_work ? of_work : prior));
      const SymmetricMatrix inverse = factor.Inverse();
      const std::size_t count = block->points.size();
      for (std::size_t i = 0; i < count; ++i) {
        mean[block->first + i] = is_work ? 0 : scale_;
        for (std::size_t j = 0; j < count; ++j) {
          precision.at(block->first + i, block->first + j) = inverse.at(i, j) / (scale_ * scale_);
        }
      }
      prior_log_determinant +=
          factor.LogDeterminant() + 2 * static_cast<double>(count) * std::log(scale_);
    }
    // Add the stretches. Residuals are taken about the prior's mean.
    std::vector<double> right(unknowns_);
    double squares = 0;
    double log_determinant = 0;
    for (std::size_t record = begin_; record < end_; ++record) {
      if (records_[record].predicted) continue;
      const NormalEquations& equations = records_[record].stretches.by_spread[spread];
      const std::vector<Place> places = PlacesOf(record);
      squares += equations.squares;
      log_determinant += equations.log_determinant;
      for (const Place& place : places) {
        const double own = place.weight * equations.right[place.column];
        double pulled = own;
        for (const Place& other : places) {
          const double value =
              place.weight * other.weight * equations.normal.at(place.column, other.column);
          precision.at(place.unknown, other.unknown) += value;
          pulled -= value * mean[other.unknown];
        }
        right[place.unknown] += pulled;
        squares -= mean[place.unknown] * (own + pulled);
      }
    }
    const Cholesky factor(precision);
    Solution solution;
    solution.watts = factor.Solve(right);
    const double explained =
        std::inner_product(right.begin(), right.end(), solution.watts.begin(), 0.0);
    solution.log_likelihood = -0.5 * (squares - explained + log_determinant +
                                      factor.LogDeterminant() + prior_log_determinant);
    for (std::size_t i = 0; i < unknowns_; ++i) solution.watts[i] += mean[i];
    if (with_covariance) solution.covariance = factor.Inverse();
    return solution;
  }

  // The power at the targets, in watts: what the visits have in common.
  CurveValues PowerAt(const std::vector<Target>& targets, const CurvePrior& prior,
                      const Solution& solution) const {
    const std::size_t count = powers_.points.size();
    const Cholesky factor(CurveCovariance(powers_.points, prior));
    CurveValues at = {.values = {}, .covariance = SymmetricMatrix(targets.size())};
    std::vector<std::vector<double>> shared;
    std::vector<std::vector<double>> gain;  // Of a target, by the power of each unknown.
    std::vector<std::vector<double>> spread;
    for (const Target& target : targets) {
      std::vector<double>& with = shared.emplace_back();
      for (const CurvePoint& point : powers_.points) {
        with.push_back(CovarianceOfCurves(target.point, point, prior));
      }
      const std::vector<double>& row = gain.emplace_back(factor.Solve(with));
      std::vector<double>& spread_row = spread.emplace_back(count);
      double value = scale_;
      for (std::size_t i = 0; i < count; ++i) {
        value += row[i] * (solution.watts[powers_.first + i] - scale_);
      }
      for (std::size_t i = 0; i < count; ++i) {
        for (std::size_t j = 0; j < count; ++j) {
          spread_row[j] += row[i] * solution.covariance.at(powers_.first + i, powers_.first + j);
        }
      }
      at.values.push_back(value);
      const std::size_t here = at.values.size() - 1;
      for (std::size_t other = 0; other <= here; ++other) {
        double covariance =
            scale_ * scale_ * CovarianceOfCurves(target.point, targets[other].point, prior);
        for (std::size_t i = 0; i < count; ++i) {
          covariance +=
              spread_row[i] * gain[other][i] - scale_ * scale_ * row[i] * shared[other][i];
        }
        at.covariance.at(here, other) = at.covariance.at(other, here) = covariance;
      }
    }
    return at;
  }

  void TakeWork(const Solution& solution, std::vector<std::vector<double>>* work) const {
    for (std::size_t i = 0; i < works_.points.size(); ++i) {
      (*work)[works_.records[i]][works_.points[i].curve] = solution.watts[works_.first + i];
    }
  }

 private:
  struct Block {
    std::vector<CurvePoint> points;
    std::vector<std::size_t> records;
    std::size_t first = 0;  // Unknown.
  };
  struct Place {
    std::size_t column = 0;   // In the equations of a record,
    std::size_t unknown = 0;  // and among those of the fit,
    double weight = 1;        // of which the column's watts are this many.
  };

  std::vector<Place> PlacesOf(std::size_t record) const {
    std::vector<Place> places = {{.column = kWaitingColumn, .unknown = kWaitingColumn},
                                 {.column = kRestColumn, .unknown = kRestColumn}};
    if (pauses_.by_clock()) {
      const int mhz = records_[record].mhz;
      const auto shape = WaitingShape(mhz == kDefaultClockMhz ? follows_mhz_ : mhz, follows_mhz_);
      for (std::size_t i = 0; i < kWaitingSpreads.size(); ++i) {
        places.push_back(
            {.column = kWaitingColumn, .unknown = kFirstSlope + i, .weight = shape[i + 1]});
      }
    }
    const std::size_t columns = records_[record].stretches.by_spread[0].right.size();
    for (const Block* block : {&powers_, &works_}) {
      for (std::size_t i = 0; i < block->points.size(); ++i) {
        const std::size_t kind = block->points[i].curve;
        const std::size_t column = block == &works_ ? WorkColumn(kind) : PowerColumn(kind);
        if (block->records[i] != record || column >= columns) continue;
        places.push_back({.column = column, .unknown = block->first + i});
      }
    }
    return places;
  }

  const std::vector<ClockRecord>& records_;
  double scale_;
  int follows_mhz_;
  const PauseBelief& pauses_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  std::size_t unknowns_ = 0;
  Block powers_;
  Block works_;
};

// How much the power of single computations varies: the likeliest at all clocks, each
// for itself.
std::size_t LikeliestSpread(const std::vector<ClockRecord>& records,
                            const std::vector<bool>& varies, double scale, int highest_mhz,
                            const PauseBelief& pauses) {
  std::size_t best = 0;
  double best_likelihood = -std::numeric_limits<double>::infinity();
  for (std::size_t spread = 0; spread < kPowerSpreads.size(); ++spread) {
    double likelihood = 0;
    for (std::size_t i = 0; i < records.size(); ++i) {
      if (records[i].predicted) continue;
      const Problem alone(records, i, i + 1, varies, scale, highest_mhz, pauses);
      likelihood += alone.Solve(spread, CurvePrior{}, false).log_likelihood;
    }
    if (likelihood > best_likelihood) {
      best_likelihood = likelihood;
      best = spread;
    }
  }
  return best;
}

// Priors with what their own weight and the stretches say of them; the likeliest first.
std::vector<std::pair<double, CurvePrior>> LikelyPriors(const Problem& problem, std::size_t spread,
                                                        const PriorsTried& tried) {
  if (!tried.several) return {{0, CurvePrior{}}};
  const auto likelihood_of = [&](const CurvePrior& prior) {
    return problem.Solve(spread, prior, false).log_likelihood;
  };
  std::pair<double, double> bend = {-std::numeric_limits<double>::infinity(), kBends.front()};
  for (const double each : kBends) {
    for (const auto& [weight, prior] : PriorsOf({}, each, false)) {
      bend = std::max(bend, {likelihood_of(prior), each});
    }
  }
  std::vector<std::pair<double, CurvePrior>> priors = PriorsOf({}, bend.second, tried.drifts);
  for (auto& [likelihood, prior] : priors) likelihood += likelihood_of(prior);
  std::stable_sort(priors.begin(), priors.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  const double least = priors.front().first - kNegligible;
  std::erase_if(priors, [&](const auto& each) { return each.first < least; });
  return priors;
}

PauseBelief FirstBelief(double scale, bool by_clock) {
  PauseBelief belief(by_clock);
  for (std::size_t i = 0; i < belief.mean.size(); ++i) {
    const bool is_slope = i >= kFirstSlope;
    belief.mean[i] = is_slope ? 0 : kPauseMean * scale;
    const double spread = is_slope ? kWaitingSpreads[i - kFirstSlope] : kPauseSpread;
    belief.precision.at(i, i) = 1 / std::pow(spread * scale, 2);
  }
  return belief;
}

PauseBelief BeliefOf(const Problem::Solution& solution, bool by_clock) {
  PauseBelief belief(by_clock);
  SymmetricMatrix covariance(belief.mean.size());
  for (std::size_t i = 0; i < belief.mean.size(); ++i) {
    belief.mean[i] = solution.watts[i];
    for (std::size_t j = 0; j < belief.mean.size(); ++j) {
      covariance.at(i, j) = solution.covariance.at(i, j);
    }
  }
  belief.precision = Cholesky(covariance).Inverse();
  return belief;
}

// Precondition: slope and bend were fitted.
WaitingCurve CurveOf(const Problem::Solution& solution, int highest_mhz) {
  constexpr std::array<std::size_t, kWaitingUnknowns> kUnknowns = {kWaitingColumn, kFirstSlope,
                                                                   kFirstSlope + 1};
  WaitingCurve curve;
  curve.highest_mhz = highest_mhz;
  for (std::size_t i = 0; i < kWaitingUnknowns; ++i) {
    curve.watts[i] = solution.watts[kUnknowns[i]];
    for (std::size_t j = 0; j < kWaitingUnknowns; ++j) {
      curve.covariance.at(i, j) = solution.covariance.at(kUnknowns[i], kUnknowns[j]);
    }
  }
  return curve;
}

FittedWatts FitWatts(const std::vector<ClockRecord>& records, const std::vector<bool>& varies,
                     const std::vector<Target>& targets, const PriorsTried& tried) {
  FittedWatts fitted;
  fitted.power = {.values = std::vector<double>(targets.size()),
                  .covariance = SymmetricMatrix(targets.size())};
  fitted.work.assign(records.size(), std::vector<double>(varies.size()));
  double joules = 0;
  double seconds = 0;
  int highest_mhz = 1;
  for (const ClockRecord& record : records) {
    joules += record.stretches.joules;
    seconds += record.stretches.seconds;
    highest_mhz = std::max(highest_mhz, record.mhz);
  }
  if (!(joules > 0) || !(seconds > 0)) return fitted;
  const double scale = joules / seconds;
  PauseBelief pauses = FirstBelief(scale, tried.waiting_by_clock);
  const std::size_t spread = LikeliestSpread(records, varies, scale, highest_mhz, pauses);
  fitted.spread = kPowerSpreads[spread];
  const std::size_t chunk =
      std::max<std::size_t>(1, kMostPowers / std::max<std::size_t>(1, varies.size()));
  for (std::size_t begin = 0; begin < records.size(); begin += chunk) {
    const std::size_t end = std::min(records.size(), begin + chunk);
    std::vector<std::size_t> places;  // Of the targets that these records are about.
    std::vector<Target> here;
    for (std::size_t i = 0; i < targets.size(); ++i) {
      const bool is_here =
          std::any_of(records.begin() + static_cast<std::ptrdiff_t>(begin),
                      records.begin() + static_cast<std::ptrdiff_t>(end),
                      [&](const ClockRecord& record) { return record.mhz == targets[i].mhz; });
      if (!is_here) continue;
      places.push_back(i);
      here.push_back(targets[i]);
    }
    const Problem problem(records, begin, end, varies, scale, highest_mhz, pauses);
    Averaged averaged;
    std::optional<Problem::Solution> likeliest;
    for (const auto& [likelihood, prior] : LikelyPriors(problem, spread, tried)) {
      Problem::Solution solution = problem.Solve(spread, prior, true);
      averaged.Add(likelihood, problem.PowerAt(here, prior, solution));
      if (!likeliest) likeliest = std::move(solution);
    }
    const CurveValues power = averaged.Take();
    for (std::size_t i = 0; i < places.size(); ++i) {
      fitted.power.values[places[i]] = power.values[i];
      for (std::size_t j = 0; j < places.size(); ++j) {
        fitted.power.covariance.at(places[i], places[j]) = power.covariance.at(i, j);
      }
    }
    problem.TakeWork(*likeliest, &fitted.work);
    fitted.waiting = {likeliest->watts[kWaitingColumn],
                      std::sqrt(likeliest->covariance.at(kWaitingColumn, kWaitingColumn))};
    if (tried.waiting_by_clock) {
      fitted.waiting_curve = CurveOf(*likeliest, HighestFollowed(records, highest_mhz));
    }
    pauses = BeliefOf(*likeliest, tried.waiting_by_clock);
  }
  return fitted;
}

// With less waiting than this share of the time there is no power of waiting,
// nor where its standard error is more than this share of it.
constexpr double kLeastWaiting = 0.01;
constexpr double kMostBlockingError = 0.25;
constexpr std::size_t kFewestWaitingClocks = 4;  // For a curve of three unknowns.
constexpr double kLeastResidual = 1e-3;
// Of joules. Where iterations last as long each time, the counter's steps fall at the same places
// in them, and that does not average out.
constexpr double kLeastEnergyError = 1e-3;

// Mean work over all clocks; 0: not known.
double MeanWork(const std::vector<ClockRecord>& records, std::size_t kind) {
  double work = 0;
  double count = 0;
  for (const ClockRecord& record : records) {
    if (kind >= record.times.size()) continue;
    const auto samples = static_cast<double>(record.times[kind].samples);
    work += samples * record.times[kind].work;
    count += samples;
  }
  return count > 0 ? work / count : 0;
}

// The logarithms of seconds at the targets, each kind at its mean work.
struct FittedTimes {
  CurveValues logs;               // [target]
  std::vector<double> residuals;  // [kind]: spread of single computations, relative.
  double jump = 0;                // See ProfileFit.
};

double ResidualOf(const std::vector<ClockRecord>& records, std::size_t kind) {
  double squares = 0;
  double freedom = 0;
  for (const ClockRecord& record : records) {
    if (record.predicted || !record.Has(kind) || record.times[kind].samples < 2) continue;
    const TimeSummary& time = record.times[kind];
    const double count = static_cast<double>(time.samples) - 1;
    squares += count * time.residual_variance / (time.seconds * time.seconds);
    freedom += count;
  }
  return std::max(kLeastResidual, freedom > 0 ? std::sqrt(squares / freedom) : 0);
}

FittedTimes FitTimes(const std::vector<ClockRecord>& records, const std::vector<double>& works,
                     const std::vector<Target>& targets, int highest_mhz, bool drifts) {
  FittedTimes fitted;
  std::vector<CurvePoint> points;
  std::vector<double> logs;
  std::vector<double> variances;
  for (std::size_t kind = 0; kind < works.size(); ++kind) {
    fitted.residuals.push_back(ResidualOf(records, kind));
    const double residual = fitted.residuals.back();
    for (const ClockRecord& record : records) {
      if (record.predicted || !record.Has(kind)) continue;
      const TimeSummary& time = record.times[kind];
      const double seconds = std::max(
          time.seconds * 0.1, time.seconds + time.per_work.value_or(0) * (works[kind] - time.work));
      points.push_back(PointOf(record, kind, highest_mhz));
      logs.push_back(std::log(seconds));
      variances.push_back(residual * residual / static_cast<double>(time.samples));
    }
  }
  std::vector<CurvePoint> at;
  at.reserve(targets.size());
  for (const Target& target : targets) at.push_back(target.point);
  SmoothedCurves smooth = SmoothCurves(points, logs, variances, at, drifts);
  fitted.logs = std::move(smooth.at);
  fitted.jump = smooth.jump;
  return fitted;
}

// The measurements of a kind at a clock, in all its visits.
struct Measured {
  std::int64_t samples = 0;
  TimeSummary time;  // Of the last visit.
  double extra_watts = 0;
  bool throttled = true;  // In all visits.
  double celsius_sum = 0;
  int celsius_count = 0;

  void Add(const ClockRecord& record, std::size_t kind, double work_watts) {
    if (record.predicted || !record.Has(kind)) return;
    time = record.times[kind];
    samples += time.samples;
    extra_watts = work_watts;
    throttled = throttled && record.throttled;
    if (!record.temperature_celsius) return;
    celsius_sum += *record.temperature_celsius;
    ++celsius_count;
  }
};

// The clocks, with every kind that has a curve there.
std::vector<Target> TargetsOf(const std::vector<ClockRecord>& records, std::size_t kinds,
                              int highest_mhz) {
  std::vector<bool> has_curve(kinds);
  for (const ClockRecord& record : records) {
    for (std::size_t kind = 0; kind < kinds; ++kind) {
      if (!record.predicted && record.Has(kind)) has_curve[kind] = true;
    }
  }
  std::vector<Target> targets;
  for (const ClockRecord& record : records) {
    for (std::size_t kind = 0; kind < kinds; ++kind) {
      const bool measured = !record.predicted && record.stretches.stretches > 0;
      if (!record.Has(kind) || !has_curve[kind] || !(measured || record.predicted)) continue;
      const auto known = std::find_if(targets.begin(), targets.end(), [&](const Target& target) {
        return target.mhz == record.mhz && target.point.curve == kind;
      });
      if (known == targets.end()) {
        targets.push_back({record.mhz, PointOf(record, kind, highest_mhz)});
      } else {
        known->point.apart = known->point.apart && record.throttled;
      }
    }
  }
  return targets;
}

// The clocks that were measured and that the card kept, highest first.
std::set<int, std::greater<>> MeasuredClocks(const std::vector<ClockRecord>& records) {
  std::set<int, std::greater<>> clocks;
  for (const ClockRecord& record : records) {
    const bool default_clocks = record.mhz == kDefaultClockMhz;
    if (!record.predicted && !record.throttled && !default_clocks && record.stretches.stretches > 0)
      clocks.insert(record.mhz);
  }
  return clocks;
}

// With the power of waiting by clock where that shows, else with one number.
FittedWatts FitWattsAndWaiting(const std::vector<ClockRecord>& records,
                               const std::vector<bool>& varies, const std::vector<Target>& targets,
                               PriorsTried tried) {
  const std::set<int, std::greater<>> clocks = MeasuredClocks(records);
  tried.waiting_by_clock = tried.several && clocks.size() >= kFewestWaitingClocks;
  FittedWatts watts = FitWatts(records, varies, targets, tried);
  if (!watts.waiting_curve || watts.waiting_curve->DependsOnClock(*clocks.rbegin())) return watts;
  tried.waiting_by_clock = false;
  return FitWatts(records, varies, targets, tried);
}

bool WentBack(const std::vector<ClockRecord>& records) {
  std::set<int> clocks;
  return !std::all_of(records.begin(), records.end(),
                      [&](const ClockRecord& record) { return clocks.insert(record.mhz).second; });
}

}  // namespace

ProfileFit FitProfile(const std::vector<Kind>& kinds, const std::vector<ClockRecord>& records,
                      bool thorough) {
  std::vector<bool> varies(kinds.size());
  int highest_mhz = 1;
  for (const ClockRecord& record : records) {
    highest_mhz = std::max(highest_mhz, record.mhz);
    for (std::size_t kind = 0; kind < record.times.size(); ++kind) {
      if (record.times[kind].per_work) varies[kind] = true;
    }
  }
  std::vector<double> works;
  for (std::size_t kind = 0; kind < kinds.size(); ++kind) works.push_back(MeanWork(records, kind));
  ProfileFit fit;
  const std::vector<Target> targets = TargetsOf(records, kinds.size(), highest_mhz);
  if (targets.empty()) return fit;
  // Nothing tells how much a card drifts that was at each clock once.
  const bool drifts = thorough && WentBack(records);
  const FittedWatts watts =
      FitWattsAndWaiting(records, varies, targets, {.several = thorough, .drifts = drifts});
  const FittedTimes times = FitTimes(records, works, targets, highest_mhz, drifts);
  fit.jump = times.jump;
  SymmetricMatrix power_covariance(targets.size());  // Relative.
  for (std::size_t i = 0; i < targets.size(); ++i) {
    for (std::size_t j = 0; j < targets.size(); ++j) {
      power_covariance.at(i, j) =
          watts.power.covariance.at(i, j) / (watts.power.values[i] * watts.power.values[j]);
    }
  }
  std::vector<std::vector<double>> time_sources;
  std::vector<std::vector<double>> power_sources;
  if (thorough) {
    time_sources = LargestFactors(times.logs.covariance, kErrorSources);
    power_sources = LargestFactors(power_covariance, kErrorSources);
  }
  for (std::size_t i = 0; i < targets.size(); ++i) {
    const std::size_t kind = targets[i].point.curve;
    Measured measured;
    for (std::size_t record = 0; record < records.size(); ++record) {
      if (records[record].mhz != targets[i].mhz) continue;
      measured.Add(records[record], kind, watts.work[record][kind]);
    }
    const TimeSummary& time = measured.time;
    const double power = watts.power.values[i];
    const double time_variance = std::max(0.0, times.logs.covariance.at(i, i));  // Relative.
    Estimate row;
    row.kind = kinds[kind];
    row.mhz = targets[i].mhz;
    row.seconds = std::exp(times.logs.values[i]);
    row.joules = power * row.seconds;
    if (time.per_work && time.work > 0) {
      row.joules += measured.extra_watts * time.seconds * (works[kind] / time.work - 1);
    }
    row.samples = measured.samples;
    row.seconds_std = std::sqrt(time_variance) * row.seconds;
    row.joules_std = std::sqrt(std::max(0.0, power_covariance.at(i, i)) + time_variance +
                               kLeastEnergyError * kLeastEnergyError) *
                     power * row.seconds;
    for (const auto& source : time_sources) row.time_errors.push_back(source[i]);
    for (const auto& source : power_sources) row.power_errors.push_back(source[i]);
    row.seconds_residual_std = times.residuals[kind] * row.seconds;
    row.joules_residual_std = std::hypot(times.residuals[kind], watts.spread) * row.joules;
    row.work = works[kind];
    if (time.per_work && time.work > 0) {
      row.seconds_per_work = time.per_work;
      row.joules_per_work =
          power * *time.per_work + measured.extra_watts * time.seconds / time.work;
    }
    if (measured.celsius_count > 0) {
      row.temperature_celsius = measured.celsius_sum / measured.celsius_count;
    }
    row.throttled = measured.samples > 0 && measured.throttled;
    if (row.joules > 0) fit.rows.push_back(row);
  }
  double seconds = 0;
  double waiting = 0;
  for (const ClockRecord& record : records) {
    seconds += record.stretches.seconds;
    waiting += record.stretches.waiting_seconds;
  }
  const BlockingPower& blocking = watts.waiting;
  if (waiting > kLeastWaiting * seconds &&
      blocking.watts_std < kMostBlockingError * blocking.watts) {
    fit.blocking = blocking;
    if (watts.waiting_curve) {
      for (const int mhz : MeasuredClocks(records)) {
        fit.waiting.push_back({.mhz = mhz, .power = watts.waiting_curve->At(mhz)});
      }
    }
  }
  return fit;
}

}  // namespace perseus::measure
