// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "robust/paths.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>

#include "robust/bounds.h"

namespace perseus::robust {
namespace {

constexpr int kBins = 33;           // Of lateness.
constexpr double kBinShare = 0.03;  // Of the mean duration.

// How a computation's start follows from its rank's lateness before it.
struct Slack {
  double gap = 0;      // The rank waits so long before it.
  double arrival = 0;  // What it waits for comes so long after its start: at most 0.
};

std::vector<Slack> SlackOf(const CostedPipeline& pipeline, const std::vector<double>& seconds) {
  const PipelineDag& dag = pipeline.dag;
  std::vector<double> end(dag.size(), 0.0);
  std::vector<int> previous(dag.size(), -1);
  for (const std::vector<int>& order : dag.rank_order) {
    for (std::size_t k = 1; k < order.size(); ++k) previous[order[k]] = order[k - 1];
  }
  std::vector<Slack> slack(dag.size());
  for (int i = 0; i < dag.size(); ++i) {
    double arrival = dag.start_delay_seconds[i];
    double start = arrival;
    for (int k = dag.first_precedence[i]; k < dag.first_precedence[i + 1]; ++k) {
      const Precedence& precedence = dag.precedences[k];
      const double at = end[precedence.from] + precedence.delay_seconds;
      start = std::max(start, at);
      if (precedence.from != previous[i]) arrival = std::max(arrival, at);
    }
    const double own = previous[i] < 0 ? start : end[previous[i]];
    slack[i] = {std::max(0.0, start - own), std::min(0.0, arrival - start)};
    end[i] = start + seconds[i];
  }
  return slack;
}

struct Follower {
  double cost = std::numeric_limits<double>::infinity();
  double late = 0;
  int from = -1;
};

}  // namespace

std::vector<int> KnobsAlong(const CostedPipeline& pipeline, const Lead& lead, double change_joules,
                            double stiffness) {
  const std::vector<Slack> slack = SlackOf(pipeline, lead.seconds);
  double mean = 0;
  double joules = 0;
  for (int i = 0; i < pipeline.dag.size(); ++i) {
    mean += lead.seconds[i] / pipeline.dag.size();
    joules += pipeline.TableOf(i).baseline.energy_joules / pipeline.dag.size();
  }
  mean = std::max(mean, 1e-12);
  const double bin = kBinShare * mean;
  const double weight = stiffness * joules / (mean * mean);
  const std::size_t knobs = pipeline.knobs.size();
  std::vector<int> chosen(pipeline.dag.size(), 0);
  std::vector<Follower> now(knobs * kBins);
  std::vector<Follower> next(knobs * kBins);
  std::vector<int> from;
  for (const std::vector<int>& order : pipeline.dag.rank_order) {
    if (order.empty()) continue;
    from.assign(order.size() * knobs * kBins, -1);
    std::fill(now.begin(), now.end(), Follower{});
    for (std::size_t knob = 0; knob < knobs; ++knob) now[knob * kBins + kBins / 2].cost = 0;
    for (std::size_t k = 0; k < order.size(); ++k) {
      const int i = order[k];
      const CostTable& table = pipeline.TableOf(i);
      std::fill(next.begin(), next.end(), Follower{});
      for (int b = 0; b < kBins; ++b) {
        std::size_t cheapest = 0;
        for (std::size_t knob = 1; knob < knobs; ++knob) {
          if (now[knob * kBins + b].cost < now[cheapest * kBins + b].cost) cheapest = knob;
        }
        const double after_change = now[cheapest * kBins + b].cost + (k == 0 ? 0 : change_joules);
        if (!(after_change < std::numeric_limits<double>::infinity())) continue;
        for (const CostOption& option : table.all_options) {
          const auto knob = static_cast<std::size_t>(option.knob);
          const bool changes = now[knob * kBins + b].cost > after_change;
          const std::size_t before = changes ? cheapest : knob;
          const Follower& old = now[before * kBins + b];
          const double late = std::max(old.late - slack[i].gap, slack[i].arrival) +
                              option.time_seconds - lead.seconds[i];
          const double cost = (changes ? after_change : old.cost) + EffectiveEnergy(table, option) +
                              lead.price[i] * option.time_seconds + weight * late * late;
          const int to =
              std::clamp(static_cast<int>(std::lround(late / bin)) + kBins / 2, 0, kBins - 1);
          Follower& follower = next[knob * kBins + to];
          if (cost < follower.cost) {
            follower = {cost, late, 0};
            from[(k * knobs + knob) * kBins + to] = static_cast<int>(before * kBins + b);
          }
        }
      }
      std::swap(now, next);
    }
    std::size_t at = 0;
    for (std::size_t s = 1; s < now.size(); ++s) {
      if (now[s].cost < now[at].cost) at = s;
    }
    for (std::size_t k = order.size(); k-- > 0;) {
      chosen[order[k]] = static_cast<int>(at / kBins);
      at = static_cast<std::size_t>(from[k * knobs * kBins + at]);
    }
  }
  return chosen;
}

std::vector<int> KnobsAlongWithin(const CostedPipeline& pipeline, const Lead& lead,
                                  double stiffness, int most_changes, double* change_joules) {
  constexpr int kSteps = 6;
  constexpr double kFirstFactor = 1.5;
  std::vector<int> best;
  double low = 0;
  double high = 0;
  double price = std::max(*change_joules, 1e-9);
  double factor = kFirstFactor;
  for (int k = 0; k < kSteps; ++k) {
    std::vector<int> knobs = KnobsAlong(pipeline, lead, price, stiffness);
    if (CountChanges(pipeline.dag, knobs) <= most_changes) {
      high = price;
      best = std::move(knobs);
    } else {
      low = price;
    }
    if (high == 0 || low == 0) {
      price *= high == 0 ? factor : 1 / factor;
      factor *= factor;
    } else {
      price = std::sqrt(low * high);
    }
  }
  if (high > 0) *change_joules = high;
  return best;
}

}  // namespace perseus::robust
