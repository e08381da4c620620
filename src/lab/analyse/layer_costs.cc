// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "analyse/layer_costs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace perseus::analyse {
namespace {

constexpr int kMostLayers = 1000;
constexpr double kSameSeconds = 1e-9;  // Relative.
constexpr double kNever = std::numeric_limits<double>::infinity();

const Option* BaselineOf(const Profile& profile, int stage, ComputationType type) {
  const OptionTable* table = profile.Find(stage, type);
  return table == nullptr ? nullptr : &table->options[table->baseline];
}

double LayersShare(double own, int own_layers, double inner, int inner_layers) {
  if (!(own > 0)) return 1;
  return std::min(1.0, inner / inner_layers * own_layers / own);
}

// Divides an outer stage into its layers and what it has besides.
void DivideOuterStage(const Profile& profile, int inner, LayerCosts* costs, StagePart* extra) {
  StagePart& layer = costs->layer[extra->stage];
  const int own_layers = costs->measured_layers[extra->stage];
  const int inner_layers = costs->measured_layers[inner];
  for (const ComputationType type : kComputationTypes) {
    const Option* a = BaselineOf(profile, extra->stage, type);
    const Option* b = BaselineOf(profile, inner, type);
    Share layers;  // All of it where there is nothing to compare with.
    if (a != nullptr && b != nullptr) {
      layers.time = LayersShare(a->time_seconds, own_layers, b->time_seconds, inner_layers);
      layers.energy = LayersShare(a->energy_joules, own_layers, b->energy_joules, inner_layers);
    }
    extra->Of(type) = {1 - layers.time, 1 - layers.energy};
    layer.Of(type) = {layers.time / own_layers, layers.energy / own_layers};
  }
}

// Chooses where stages end, stage after stage, by what is best up to there.
class PartitionSearch {
 public:
  PartitionSearch(const Profile& profile, const LayerCosts& costs)
      : measured_(costs.measured_layers),
        num_stages_(static_cast<int>(measured_.size())),
        first_extra_(PartSeconds(profile, costs.first_extra)),
        last_extra_(PartSeconds(profile, costs.last_extra)) {
    seconds_before_.push_back(0);
    for (int stage = 0; stage < num_stages_; ++stage) {
      const double layer = PartSeconds(profile, costs.layer[stage]);
      for (int k = 0; k < measured_[stage]; ++k) {
        seconds_before_.push_back(seconds_before_.back() + layer);
      }
    }
    num_layers_ = static_cast<int>(seconds_before_.size()) - 1;
  }

  std::vector<int> Run() const {
    const double slowest = Search([](double before, double seconds, int, int) {
                             return std::max(before, seconds);
                           }).cost;
    const double limit = slowest * (1 + kSameSeconds);
    return Search([&](double before, double seconds, int stage, int layers) {
             return seconds <= limit ? before + std::abs(layers - measured_[stage]) : kNever;
           })
        .layers;
  }

 private:
  struct Found {
    double cost = kNever;
    std::vector<int> layers;
  };

  double Seconds(int stage, int from, int to) const {
    return seconds_before_[to] - seconds_before_[from] + (stage == 0 ? first_extra_ : 0) +
           (stage + 1 == num_stages_ ? last_extra_ : 0);
  }

  // `extend(cost so far, seconds of the stage, stage, its layers)`.
  template <typename Extend>
  Found Search(Extend extend) const {
    std::vector<double> least(num_layers_ + 1, kNever);
    least[0] = 0;
    std::vector<std::vector<int>> start(num_stages_, std::vector<int>(num_layers_ + 1, 0));
    for (int stage = 0; stage < num_stages_; ++stage) {
      std::vector<double> next(num_layers_ + 1, kNever);
      for (int to = stage + 1; to <= num_layers_; ++to) {
        for (int from = stage; from < to; ++from) {
          if (least[from] == kNever) continue;
          const double cost = extend(least[from], Seconds(stage, from, to), stage, to - from);
          if (cost < next[to]) {
            next[to] = cost;
            start[stage][to] = from;
          }
        }
      }
      least = std::move(next);
    }
    Found found;
    found.cost = least[num_layers_];
    found.layers.resize(num_stages_);
    int to = num_layers_;
    for (int stage = num_stages_ - 1; stage >= 0; --stage) {
      found.layers[stage] = to - start[stage][to];
      to = start[stage][to];
    }
    return found;
  }

  std::vector<int> measured_;
  int num_stages_;
  int num_layers_ = 0;
  double first_extra_;
  double last_extra_;
  std::vector<double> seconds_before_;  // Of layers before the k-th.
};

}  // namespace

Result<LayerCosts> InferLayerCosts(const Profile& profile, const std::vector<int>& layers) {
  const int stages = profile.num_stages;
  if (static_cast<int>(layers.size()) != stages) {
    return InvalidInput(
        fmt::format("layers are given for {} stages, but {} has {}; give one count "
                    "per stage, such as 12,12,12,13",
                    layers.size(), profile.source, stages));
  }
  std::int64_t all_layers = 0;
  for (const int count : layers) {
    if (count < 1) {
      return InvalidInput(
          fmt::format("a stage has {} layers; expected at least one for each", count));
    }
    all_layers += count;
  }
  if (all_layers > kMostLayers) {
    return InvalidInput(
        fmt::format("the stages have {} layers together; expected at most {}, those of the model",
                    all_layers, kMostLayers));
  }
  if (stages < 3) {
    return InvalidInput(fmt::format(
        "{} has {} stages, too few to tell a layer from the embedding and the head: that takes an "
        "inner stage; leave the layers out",
        profile.source, stages));
  }
  LayerCosts costs;
  costs.measured_layers = layers;
  for (int stage = 0; stage < stages; ++stage) {
    StagePart layer;
    layer.stage = stage;
    layer.shares.fill({1.0 / layers[stage], 1.0 / layers[stage]});
    costs.layer.push_back(layer);
  }
  costs.first_extra.stage = 0;
  costs.last_extra.stage = stages - 1;
  DivideOuterStage(profile, 1, &costs, &costs.first_extra);
  DivideOuterStage(profile, stages - 2, &costs, &costs.last_extra);
  return costs;
}

std::vector<int> BestPartition(const Profile& profile, const LayerCosts& costs) {
  return PartitionSearch(profile, costs).Run();
}

Result<Profile> PartitionedProfile(const Profile& profile, const LayerCosts& costs,
                                   const std::vector<int>& layers) {
  std::vector<std::vector<StagePart>> stages(layers.size());
  int from = 0;  // The measured stage whose layers come next,
  int left = costs.measured_layers[0];
  for (std::size_t stage = 0; stage < layers.size(); ++stage) {
    std::vector<StagePart>& parts = stages[stage];
    for (int wanted = layers[stage]; wanted > 0;) {
      if (left == 0) left = costs.measured_layers[++from];  // and how many of them.
      const int taken = std::min(wanted, left);
      StagePart part = costs.layer[from];
      for (Share& share : part.shares) {
        share.time *= taken;
        share.energy *= taken;
      }
      parts.push_back(part);
      wanted -= taken;
      left -= taken;
    }
  }
  // The first layer is always in the first stage, the last in the last.
  const auto add = [](const StagePart& extra, StagePart* part) {
    for (std::size_t type = 0; type < extra.shares.size(); ++type) {
      part->shares[type].time += extra.shares[type].time;
      part->shares[type].energy += extra.shares[type].energy;
    }
  };
  add(costs.first_extra, &stages.front().front());
  add(costs.last_extra, &stages.back().back());
  return ComposeProfile(profile, stages);
}

}  // namespace perseus::analyse
