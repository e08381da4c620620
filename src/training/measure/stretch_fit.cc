// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "common/numbers.h"
#include "measure/profile_fit.h"

namespace perseus::measure {
namespace {

// Of stretches that one computation covers; shorter ones are joined. Bounds the band.
constexpr double kMostPerComputation = 12;
// Besides: reads and counters are not exact, and their last digit is a millijoule.
constexpr double kFloorJoules = 2e-3;
constexpr double kFirstSpread = 0.03;
// Relative, in each stretch: waiting is a kernel that spins, now and then a transfer; the
// rest is anything from an optimizer's step to nothing at all.
constexpr double kWaitingSpread = 0.03;
constexpr double kRestSpread = 1.0;

// A window's end moves with its begin, so a step's unknown time changes less of its energy, and
// nothing of the next stretch's.
constexpr double kOfMovedWindow = 0.5;

constexpr std::array<double, 5> kDuties = {1, 0.75, 0.5, 0.25, 0.1};
constexpr double kMostLagSeconds = 1;
constexpr double kLeastLagStep = 1e-3;
constexpr double kMostLagStep = 0.02;
constexpr double kStepsPerComputation = 4;
constexpr int kHalvings = 6;  // Of the step about the best lag.
// Of the logarithm of the likelihood, per step: less may come of noise that is not as assumed.
constexpr double kLeastGain = 0.15;
// And for all: hundreds of habits are tried, so that with few steps one of them is likely by
// chance.
constexpr double kLeastGainOfAny = 10;
constexpr std::size_t kFewestHabitSteps = 20;

struct Piece {
  double begin_ns = 0;
  double end_ns = 0;
  std::size_t column = 0;
  double work_seconds = 0;  // Of the work column, for the whole of it.
  std::size_t work_column = 0;
};

// The stretches of one window.
struct Run {
  std::vector<std::vector<double>> columns;  // [column][stretch]
  std::vector<double> joules;
  std::vector<double> samples;  // Of each stretch: how often it was measured.
  double duty = 1;
  std::vector<double> tick_seconds;       // Standard deviation of each tick's time, one more.
  std::vector<std::size_t> tick_columns;  // What ran at each tick.
  struct Part {
    std::size_t stretch = 0;
    std::size_t column = 0;
    double seconds = 0;
  };
  std::vector<std::vector<Part>> computations;  // In which stretches each ran, for how long.
  std::size_t band = 1;
};

std::vector<Piece> PiecesOf(const std::vector<Iteration>& window,
                            const std::vector<KindScale>& scales) {
  std::vector<Piece> pieces;
  const auto pause = [&](double begin_ns, double end_ns, std::size_t column) {
    if (end_ns > begin_ns) pieces.push_back({begin_ns, end_ns, column, 0, 0});
  };
  for (std::size_t i = 0; i < window.size(); ++i) {
    const Iteration& iteration = window[i];
    auto at_ns = static_cast<double>(iteration.begin_ns);
    for (const Span& span : iteration.spans) {
      const auto begin_ns = std::max(at_ns, static_cast<double>(span.begin_ns));
      const auto end_ns = static_cast<double>(span.end_ns);
      pause(at_ns, begin_ns, kWaitingColumn);
      if (end_ns <= begin_ns) continue;
      const KindScale& scale = scales[span.kind];
      Piece& piece = pieces.emplace_back();
      piece = {begin_ns, end_ns, PowerColumn(span.kind), 0, WorkColumn(span.kind)};
      if (scale.mean_work > 0 && span.work > 0) {
        piece.work_seconds = (span.work / scale.mean_work - 1) * scale.mean_seconds;
      }
      at_ns = end_ns;
    }
    const std::int64_t next_ns = i + 1 < window.size() ? window[i + 1].begin_ns : iteration.end_ns;
    pause(at_ns, static_cast<double>(next_ns), kRestColumn);
  }
  return pieces;
}

// A step of the counter, at the time at which the card had used what it showed, and since when it
// had measured.
struct Mark {
  Tick tick;
  double sampled_ns = 0;
};

std::vector<Mark> MarksOf(const std::vector<Tick>& ticks, const CounterHabit& habit) {
  std::vector<Mark> marks;
  marks.reserve(ticks.size());
  const auto lag_ns = static_cast<std::int64_t>(std::llround(habit.lag_seconds / kSecondsPerNs));
  for (Tick tick : ticks) {
    tick.after_ns -= lag_ns;
    tick.by_ns -= lag_ns;
    const double before_ns = marks.empty() ? tick.at_ns() : marks.back().tick.at_ns();
    marks.push_back({tick, tick.at_ns() - habit.duty * (tick.at_ns() - before_ns)});
  }
  return marks;
}

// The stretches between marks, each of which ends one; what was measured in them.
struct Stretches {
  std::vector<Tick> ticks;
  struct Sample {
    double begin_ns = 0;
    double end_ns = 0;
    std::size_t stretch = 0;
  };
  std::vector<Sample> samples;
};

// Runs of ticks that follow each other within a window, at least `least_ns` apart.
std::vector<Stretches> StretchesOf(const std::vector<Iteration>& window,
                                   const std::vector<Mark>& marks, double least_ns) {
  std::vector<Stretches> runs;
  const std::int64_t begin_ns = window.front().begin_ns;
  const std::int64_t end_ns = window.back().end_ns;
  bool open = false;
  for (const Mark& mark : marks) {
    const Tick& tick = mark.tick;
    if (!tick.follows) open = false;
    if (tick.after_ns < begin_ns || tick.by_ns > end_ns) continue;
    if (!open) {
      runs.emplace_back().ticks.push_back(tick);
      open = true;
      continue;
    }
    Stretches& run = runs.back();
    run.samples.push_back({mark.sampled_ns, tick.at_ns(), run.ticks.size() - 1});
    if (tick.at_ns() - run.ticks.back().at_ns() >= least_ns) run.ticks.push_back(tick);
  }
  for (Stretches& run : runs) {  // Those of a stretch that did not end.
    std::erase_if(run.samples, [&](const Stretches::Sample& sample) {
      return sample.stretch + 1 >= run.ticks.size();
    });
  }
  return runs;
}

Run MakeRun(const std::vector<Piece>& pieces, const Stretches& stretches, std::size_t columns,
            double duty) {
  Run run;
  const std::vector<Tick>& ticks = stretches.ticks;
  const std::size_t count = ticks.size() - 1;
  run.columns.assign(columns, std::vector<double>(count));
  run.samples.assign(count, 0);
  run.duty = duty;
  auto piece_at = pieces.begin();
  for (const Tick& tick : ticks) {
    const double width_ns = static_cast<double>(tick.by_ns - tick.after_ns);
    run.tick_seconds.push_back(width_ns * kSecondsPerNs / std::sqrt(12.0));
    while (piece_at != pieces.end() && piece_at->end_ns <= tick.at_ns()) ++piece_at;
    run.tick_columns.push_back(piece_at == pieces.end() ? kRestColumn : piece_at->column);
  }
  for (std::size_t i = 0; i < count; ++i) {
    run.joules.push_back(ticks[i + 1].joules - ticks[i].joules);
  }
  const std::vector<Stretches::Sample>& samples = stretches.samples;
  for (const Stretches::Sample& sample : samples) run.samples[sample.stretch] += 1;
  std::size_t first = 0;  // Sample in which the piece begins.
  for (const Piece& piece : pieces) {
    while (first < samples.size() && samples[first].end_ns <= piece.begin_ns) ++first;
    std::vector<Run::Part> parts;
    for (std::size_t i = first; i < samples.size() && samples[i].begin_ns < piece.end_ns; ++i) {
      const double overlap_ns =
          std::min(piece.end_ns, samples[i].end_ns) - std::max(piece.begin_ns, samples[i].begin_ns);
      if (overlap_ns <= 0) continue;
      const std::size_t stretch = samples[i].stretch;
      const double seconds = overlap_ns * kSecondsPerNs / duty;
      run.columns[piece.column][stretch] += seconds;
      if (piece.work_seconds != 0) {
        run.columns[piece.work_column][stretch] +=
            piece.work_seconds * overlap_ns / duty / (piece.end_ns - piece.begin_ns);
      }
      if (parts.empty() || parts.back().stretch != stretch) {
        parts.push_back({stretch, piece.column, 0});
      }
      parts.back().seconds += seconds;
    }
    if (parts.empty() || piece.column < kFirstKindColumn) continue;
    run.band = std::max(run.band, parts.back().stretch - parts.front().stretch);
    run.computations.push_back(std::move(parts));
  }
  return run;
}

BandedWhitener CovarianceOf(const Run& run, const std::vector<double>& watts, double spread) {
  const std::size_t count = run.joules.size();
  BandedWhitener covariance(count, run.band);
  const auto tick_variance = [&](std::size_t tick) {
    const double joules = watts[run.tick_columns[tick]] * run.tick_seconds[tick];
    return joules * joules + kFloorJoules * kFloorJoules;
  };
  for (std::size_t i = 0; i < count; ++i) {
    const double waiting = kWaitingSpread * watts[kWaitingColumn] * run.columns[kWaitingColumn][i];
    const double rest = kRestSpread * watts[kRestColumn] * run.columns[kRestColumn][i];
    covariance.at(i, i) += waiting * waiting + rest * rest;
    if (run.duty < 1) {
      covariance.at(i, i) +=
          run.samples[i] * tick_variance(i + 1) * std::pow(kOfMovedWindow / run.duty, 2);
      continue;
    }
    covariance.at(i, i) += tick_variance(i) + tick_variance(i + 1);
    if (i > 0) covariance.at(i, i - 1) -= tick_variance(i);
  }
  for (const auto& parts : run.computations) {
    for (std::size_t a = 0; a < parts.size(); ++a) {
      const double left = spread * watts[parts[a].column] * parts[a].seconds;
      for (std::size_t b = 0; b <= a; ++b) {
        const double right = spread * watts[parts[b].column] * parts[b].seconds;
        covariance.at(parts[a].stretch, parts[b].stretch) += left * right;
      }
    }
  }
  return covariance;
}

void AddRun(const Run& run, const std::vector<double>& watts, double spread,
            NormalEquations* equations) {
  BandedWhitener covariance = CovarianceOf(run, watts, spread);
  covariance.Factor();
  std::vector<std::vector<double>> columns = run.columns;
  std::vector<double> joules = run.joules;
  for (auto& column : columns) covariance.Whiten(&column);
  covariance.Whiten(&joules);
  for (std::size_t i = 0; i < columns.size(); ++i) {
    for (std::size_t j = 0; j <= i; ++j) {
      equations->normal.Add(
          i, j, std::inner_product(columns[i].begin(), columns[i].end(), columns[j].begin(), 0.0));
    }
    equations->right[i] +=
        std::inner_product(columns[i].begin(), columns[i].end(), joules.begin(), 0.0);
  }
  equations->squares += std::inner_product(joules.begin(), joules.end(), joules.begin(), 0.0);
  equations->log_determinant += covariance.LogDeterminant();
}

NormalEquations FitRuns(const std::vector<Run>& runs, const std::vector<double>& watts,
                        double spread) {
  NormalEquations equations;
  equations.normal = SymmetricMatrix(watts.size());
  equations.right.assign(watts.size(), 0);
  for (const Run& run : runs) AddRun(run, watts, spread, &equations);
  return equations;
}

// Watts for weights only: pulled to the mean of all where stretches say little.
std::vector<double> RoughWatts(const NormalEquations& equations, double mean_watts) {
  SymmetricMatrix matrix = equations.normal;
  std::vector<double> right = equations.right;
  const double precision = 1 / (0.25 * mean_watts * mean_watts);
  for (std::size_t i = 0; i < right.size(); ++i) {
    matrix.at(i, i) += precision;
    const bool is_power = i < kFirstKindColumn || (i - kFirstKindColumn) % 2 == 0;
    if (is_power) right[i] += precision * mean_watts;
  }
  std::vector<double> watts = Cholesky(matrix).Solve(std::move(right));
  for (double& value : watts) value = std::clamp(value, 0.05 * mean_watts, 4 * mean_watts);
  return watts;
}

double LeastNs(const std::vector<KindScale>& scales) {
  double longest = 0;
  for (const KindScale& scale : scales) longest = std::max(longest, scale.mean_seconds);
  return longest / kMostPerComputation / kSecondsPerNs;
}

// A window of a visit, with what is needed to try a habit on it.
struct Trial {
  const std::vector<Iteration>* window = nullptr;
  const std::vector<KindScale>* scales = nullptr;
  std::vector<Piece> pieces;
  std::vector<Tick> ticks;  // Those that are in the window whatever the lag.
};

std::vector<Trial> TrialsOf(const std::vector<Visit>& visits, double most_lag) {
  std::vector<Trial> trials;
  std::size_t steps = 0;
  for (const Visit& visit : visits) {
    for (const auto& window : visit.windows) {
      if (window.empty() || steps >= kHabitSteps) continue;
      Trial trial;
      trial.window = &window;
      trial.scales = &visit.scales;
      for (const Tick& tick : visit.ticks) {
        const auto since_ns = static_cast<double>(tick.after_ns - window.front().begin_ns);
        const bool is_in =
            since_ns * kSecondsPerNs > most_lag && tick.by_ns <= window.back().end_ns;
        if (is_in && steps + trial.ticks.size() < kHabitSteps) trial.ticks.push_back(tick);
      }
      if (trial.ticks.size() < 3) continue;
      steps += trial.ticks.size();
      trial.pieces = PiecesOf(window, visit.scales);
      trials.push_back(std::move(trial));
    }
  }
  return steps < kFewestHabitSteps ? std::vector<Trial>() : trials;
}

double SecondsOf(const std::vector<Iteration>& window) {
  return window.empty()
             ? 0
             : static_cast<double>(window.back().end_ns - window.front().begin_ns) * kSecondsPerNs;
}

// The logarithm of the likelihood of a trial's ticks, but for what all habits have in common.
double LogLikelihoodOf(const Trial& trial, const CounterHabit& habit) {
  const std::size_t columns = NumColumns(trial.scales->size());
  std::vector<Run> runs;
  double joules = 0;
  double seconds = 0;
  double count = 0;
  for (const Stretches& stretches :
       StretchesOf(*trial.window, MarksOf(trial.ticks, habit), LeastNs(*trial.scales))) {
    if (stretches.ticks.size() < 2) continue;
    const Run& run = runs.emplace_back(MakeRun(trial.pieces, stretches, columns, habit.duty));
    joules += std::accumulate(run.joules.begin(), run.joules.end(), 0.0);
    seconds += (stretches.ticks.back().at_ns() - stretches.ticks.front().at_ns()) * kSecondsPerNs;
    count += static_cast<double>(run.joules.size());
  }
  if (count < 1 || !(joules > 0)) return 0;
  std::vector<double> watts(columns, joules / seconds);
  const NormalEquations equations = FitRuns(runs, watts, kFirstSpread);
  watts = RoughWatts(equations, watts.front());
  double squares = equations.squares;
  for (std::size_t i = 0; i < columns; ++i) {
    squares -= 2 * watts[i] * equations.right[i];
    for (std::size_t j = 0; j < columns; ++j) {
      const double normal = i < j ? equations.normal.at(j, i) : equations.normal.at(i, j);
      squares += watts[i] * watts[j] * normal;
    }
  }
  return -0.5 * (count * std::log(std::max(squares, 1e-9) / count) + equations.log_determinant);
}

}  // namespace

std::optional<CounterHabit> FitHabit(const std::vector<Visit>& visits) {
  double longest = 0;  // Window.
  double shortest = kMostLagStep * kStepsPerComputation;
  for (const Visit& visit : visits) {
    for (const auto& window : visit.windows) longest = std::max(longest, SecondsOf(window));
    for (const KindScale& scale : visit.scales) {
      if (scale.mean_seconds > 0) shortest = std::min(shortest, scale.mean_seconds);
    }
  }
  const double most_lag = std::min(kMostLagSeconds, longest / 2);
  const std::vector<Trial> trials = TrialsOf(visits, most_lag);
  if (trials.empty()) return std::nullopt;
  const auto likelihood_of = [&](const CounterHabit& habit) {
    double likelihood = 0;
    for (const Trial& trial : trials) likelihood += LogLikelihoodOf(trial, habit);
    return likelihood;
  };
  double steps = 0;
  for (const Trial& trial : trials) steps += static_cast<double>(trial.ticks.size());
  const double grid = std::clamp(shortest / kStepsPerComputation, kLeastLagStep, kMostLagStep);
  // The likeliest lag for a duty. Iterations repeat, so a lag looks much like one that is longer by
  // a period: the shortest of those that are as likely is taken.
  const auto fit_lag = [&](double duty) {
    std::vector<double> likelihoods;
    for (int i = 0; i * grid <= most_lag; ++i) {
      likelihoods.push_back(likelihood_of({i * grid, duty}));
    }
    const std::size_t count = likelihoods.size();
    const double enough =
        *std::max_element(likelihoods.begin(), likelihoods.end()) - kLeastGain * steps;
    std::size_t peak = 0;
    const auto is_peak = [&](std::size_t i) {
      return likelihoods[i] >= enough && (i == 0 || likelihoods[i] >= likelihoods[i - 1]) &&
             (i + 1 == count || likelihoods[i] >= likelihoods[i + 1]);
    };
    while (peak + 1 < count && !is_peak(peak)) ++peak;
    std::pair<double, CounterHabit> best = {likelihoods[peak],
                                            {static_cast<double>(peak) * grid, duty}};
    const auto consider = [&](double lag) {
      if (lag < 0 || lag > most_lag) return;
      const double likelihood = likelihood_of({lag, duty});
      if (likelihood > best.first) best = {likelihood, {lag, duty}};
    };
    double step = grid;
    for (int i = 0; i < kHalvings; ++i) {
      step /= 2;
      const double middle = best.second.lag_seconds;
      consider(middle - step);
      consider(middle + step);
    }
    return best;
  };
  // The simpler habit, unless the other one is much likelier.
  std::pair<double, CounterHabit> best = {likelihood_of({}), {}};
  for (const double duty : kDuties) {
    const std::pair<double, CounterHabit> other = fit_lag(duty);
    const double least = best.second.duty == 1 ? kLeastGain * steps + kLeastGainOfAny : 0;
    if (other.first - best.first > least) best = other;
  }
  return best.second;
}

StretchFit FitStretches(const std::vector<std::vector<Iteration>>& windows,
                        const std::vector<Tick>& ticks, const std::vector<KindScale>& scales,
                        const CounterHabit& habit) {
  const std::size_t columns = NumColumns(scales.size());
  const double least_ns = LeastNs(scales);
  const std::vector<Mark> marks = MarksOf(ticks, habit);
  StretchFit fit;
  std::vector<Run> runs;
  for (const auto& window : windows) {
    if (window.empty()) continue;
    const std::vector<Piece> pieces = PiecesOf(window, scales);
    for (const Stretches& stretches : StretchesOf(window, marks, least_ns)) {
      if (stretches.ticks.size() < 2) continue;
      const Run& run = runs.emplace_back(MakeRun(pieces, stretches, columns, habit.duty));
      fit.stretches += run.joules.size();
      fit.joules += std::accumulate(run.joules.begin(), run.joules.end(), 0.0);
      fit.seconds +=
          (stretches.ticks.back().at_ns() - stretches.ticks.front().at_ns()) * kSecondsPerNs;
      const auto& waiting = run.columns[kWaitingColumn];
      fit.waiting_seconds += std::accumulate(waiting.begin(), waiting.end(), 0.0);
    }
  }
  std::vector<double> watts(columns, fit.seconds > 0 ? fit.joules / fit.seconds : 1.0);
  if (fit.stretches > 0) watts = RoughWatts(FitRuns(runs, watts, kFirstSpread), watts.front());
  for (std::size_t i = 0; i < kPowerSpreads.size(); ++i) {
    fit.by_spread[i] = FitRuns(runs, watts, kPowerSpreads[i]);
  }
  return fit;
}

}  // namespace perseus::measure
