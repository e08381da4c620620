// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "server/planning/measured_times.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "common/numbers.h"
#include "model/saving_interval.h"

namespace perseus::server {
namespace {

// Error of a time in training beside its standard error: by heat, and by the work beside it.
constexpr double kLeastError = 0.0005;
// How exact an option of a profile is that does not say it.
constexpr double kUnsaidError = 0.001;

// A number with its standard error.
struct Ratio {
  double value = 1;
  double error = 0;
};

// The mean of several, by their errors.
class Mean {
 public:
  void Add(const Ratio& ratio) {
    const double weight = 1 / (ratio.error * ratio.error);
    weight_ += weight;
    sum_ += weight * ratio.value;
  }
  // Precondition: something was added.
  Ratio Get() const { return {.value = sum_ / weight_, .error = 1 / std::sqrt(weight_)}; }

 private:
  double weight_ = 0;
  double sum_ = 0;
};

// The time of an option in training over the expected time.
struct Shown {
  int stage = 0;
  ComputationType type = ComputationType::kForward;
  int knob = 0;
  Ratio ratio;
  double profile_error = 0;  // Standard error of what was expected.

  // Of the GPU's factor.
  Ratio OfStage() const {
    return {.value = ratio.value, .error = std::hypot(ratio.error, profile_error)};
  }
};

// The only table of this kind of computation; nullptr: there is none, or work differs.
const CostTable* TableOf(const CostedPipeline& pipeline, int stage, ComputationType type) {
  const CostTable* found = nullptr;
  for (const CostTable& table : pipeline.tables) {
    if (table.stage != stage || table.type != type || table.fused_type) continue;
    if (found != nullptr || table.work != 1) return nullptr;
    found = &table;
  }
  return found;
}

std::optional<Shown> ShownBy(const CostedPipeline& pipeline, const MeasuredTime& time) {
  const CostTable* const table = TableOf(pipeline, time.stage, time.type);
  if (table == nullptr) return std::nullopt;
  for (const CostOption& option : table->all_options) {
    if (pipeline.knobs[static_cast<std::size_t>(option.knob)].number != time.clock_mhz) continue;
    const double ratio = time.seconds / option.time_seconds;
    if (!(std::abs(ratio - 1) <= kMostOff)) return std::nullopt;
    const OptionErrors* const errors = model::ErrorsOf(pipeline.errors, *table, option.knob);
    return Shown{
        .stage = time.stage,
        .type = time.type,
        .knob = option.knob,
        .ratio = {.value = ratio,
                  .error = std::hypot(time.error_seconds / option.time_seconds, kLeastError)},
        .profile_error = errors == nullptr ? kUnsaidError : errors->time_std};
  }
  return std::nullopt;
}

std::vector<Shown> AllShown(const CostedPipeline& pipeline,
                            const std::vector<MeasuredTime>& times) {
  std::vector<Shown> all;
  for (const MeasuredTime& time : times) {
    if (const auto shown = ShownBy(pipeline, time)) all.push_back(*shown);
  }
  return all;
}

// The factor of each stage's GPUs in training, by stage.
std::map<int, Ratio> StagesOf(const std::vector<Shown>& all) {
  std::map<int, Mean> means;
  for (const Shown& shown : all) means[shown.stage].Add(shown.OfStage());
  std::map<int, Ratio> stages;
  for (const auto& [stage, mean] : means) stages[stage] = mean.Get();
  return stages;
}

double CommonOf(const std::map<int, Ratio>& stages) {
  std::vector<double> values;
  values.reserve(stages.size());
  for (const auto& [stage, ratio] : stages) values.push_back(ratio.value);
  return UpperMedianOf(std::move(values));
}

// Factors of stages. Errors make stages differ as well as GPUs do, so each is drawn to the common
// factor by as much as its errors are of the spread (James and Stein).
std::map<int, double> FactorsOf(const std::map<int, Ratio>& stages) {
  const double common = CommonOf(stages);
  double spread = 0;
  double errors = 0;
  for (const auto& [stage, ratio] : stages) {
    spread += (ratio.value - common) * (ratio.value - common);
    errors += ratio.error * ratio.error;
  }
  const auto others = static_cast<double>(std::max<std::size_t>(1, stages.size() - 1));
  const double variance =
      std::max(0.0, spread / others - errors / static_cast<double>(stages.size()));
  std::map<int, double> factors;
  for (const auto& [stage, ratio] : stages) {
    const double own = variance / (variance + ratio.error * ratio.error);
    factors[stage] = common + own * (ratio.value - common);
  }
  return factors;
}

// A part of a backward that was measured whole is in the whole.
bool IsIn(const Shown& shown, const OptionTable& table, const Profile& profile) {
  if (shown.stage != table.stage) return false;
  if (shown.type == table.type) return true;
  const bool is_part = shown.type == ComputationType::kBackwardInput ||
                       shown.type == ComputationType::kBackwardWeight;
  return is_part && table.type == ComputationType::kBackward &&
         profile.Find(shown.stage, shown.type) == nullptr;
}

OptionErrors* ErrorsOf(const OptionTable& table, int knob, Profile* profile) {
  const auto found =
      std::find_if(profile->errors.begin(), profile->errors.end(), [&](const OptionErrors& errors) {
        return errors.stage == table.stage && errors.type == table.type && errors.knob == knob;
      });
  return found == profile->errors.end() ? nullptr : &*found;
}

// By the factor of its stage and, at clocks that training has run, by the factor shown there.
void Correct(double factor, const std::vector<Shown>& all, OptionTable* table, Profile* profile) {
  for (Option& option : table->options) {
    double ratio = factor;
    OptionErrors* const errors = ErrorsOf(*table, option.knob, profile);
    Mean shown;
    bool is_shown = false;
    for (const Shown& each : all) {
      if (each.knob != option.knob || !IsIn(each, *table, *profile)) continue;
      shown.Add(each.ratio);
      is_shown = true;
    }
    if (is_shown && errors != nullptr && errors->time_std > 0) {
      shown.Add({.value = factor, .error = errors->time_std});
      ratio = shown.Get().value;
      errors->time_std = shown.Get().error;
      errors->time_sources.assign(errors->time_sources.size(), 0.0);
    }
    option.time_seconds *= ratio;
    option.time_std_seconds *= ratio;
    option.energy_joules *= ratio;
    option.energy_std_joules *= ratio;
  }
}

}  // namespace

TimeCorrection CorrectTimes(const CostedPipeline& profiled, const std::vector<MeasuredTime>& times,
                            Profile* profile) {
  const std::vector<Shown> all = AllShown(profiled, times);
  if (all.empty()) return {};
  const std::map<int, Ratio> stages = StagesOf(all);
  const std::map<int, double> factors = FactorsOf(stages);
  // Heat that all have in common must not make a stage look slow beside one that was not measured.
  const double common = CommonOf(stages);
  TimeCorrection correction;
  for (const auto& [stage, factor] : factors) {
    correction.least = correction.stages == 0 ? factor : std::min(correction.least, factor);
    correction.most = correction.stages == 0 ? factor : std::max(correction.most, factor);
    ++correction.stages;
  }
  const auto factor_of = [&](int stage) {
    const auto factor = factors.find(stage);
    return factor == factors.end() ? common : factor->second;
  };
  for (OptionTable& table : profile->tables) {
    Correct(factor_of(table.stage), all, &table, profile);
  }
  // Else plans would be compared with other GPUs at default clocks.
  for (DefaultClockCost& cost : profile->default_clocks) {
    const double factor = factor_of(cost.stage);
    cost.time_seconds *= factor;
    cost.time_std_seconds *= factor;
    cost.energy_joules *= factor;
    cost.energy_std_joules *= factor;
  }
  return correction;
}

bool TimesHaveMoved(const CostedPipeline& planned, const std::vector<MeasuredTime>& times) {
  constexpr double kFelt = 0.002;
  constexpr double kErrors = 3;
  const std::map<int, Ratio> stages = StagesOf(AllShown(planned, times));
  if (stages.empty()) return false;
  const double common = CommonOf(stages);
  return std::any_of(stages.begin(), stages.end(), [&](const auto& stage) {
    const double off = std::abs(stage.second.value / common - 1);
    return off > kFelt && off > kErrors * stage.second.error;
  });
}

}  // namespace perseus::server
