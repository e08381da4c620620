// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include <cmath>
#include <cstddef>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "perseus/profile.h"
#include "profile/knobs.h"

// What can be no profile, whoever filled it in. What is merely odd is not looked for here.
namespace perseus {
inline namespace v0 {
namespace {

bool IsNumber(double value, double least) { return value >= least && std::isfinite(value); }

class Check {
 public:
  explicit Check(const Profile& profile) : profile_(profile) {}

  Result<void> Run() const {
    if (auto good = Knobs(); !good) return good;
    if (profile_.num_stages < 1) return Wrong("num_stages", "there is no stage");
    if (profile_.tensor_parallel_ranks < 0) {
      return Wrong("tensor_parallel_ranks",
                   fmt::format("it has {} tensor-parallel ranks; expected 0 or more",
                               profile_.tensor_parallel_ranks));
    }
    if (auto good = Tables(); !good) return good;
    if (auto good = Waiting(); !good) return good;
    return Unlocked();
  }

 private:
  tl::unexpected<Error> Wrong(const char* field, std::string message) const {
    return tl::unexpected<Error>(
        {.code = ErrorCode::kInvalidInput,
         .message = fmt::format("the profile {}: {}",
                                profile_.source.empty() ? "in memory" : profile_.source, message),
         .file = profile_.source,
         .field = field});
  }

  Result<void> Knobs() const {
    if (profile_.knobs.empty()) return Wrong("knobs", "it has no knob");
    std::set<std::string> labels;
    for (std::size_t k = 0; k < profile_.knobs.size(); ++k) {
      const Knob& knob = profile_.knobs[k];
      if (knob.label.empty() || !labels.insert(knob.label).second) {
        return Wrong("knobs", fmt::format("knob {} has {}; give each a label of its own", k,
                                          knob.label.empty() ? "no label" : "another one's label"));
      }
      if (!profile_.KnobsAreRanked()) continue;
      const bool falls = k == 0 || knob.number < profile_.knobs[k - 1].number;
      if (IsNumber(knob.number, 0) && knob.number > 0 && falls) {
        const std::string wrong =
            profile_.knobs_are_numbers ? profile::ClockProblem(knob.number) : std::string();
        if (wrong.empty()) continue;
        return Wrong("knobs", fmt::format("knob {}, '{}': {}", k, knob.label, wrong));
      }
      return Wrong("knobs",
                   fmt::format("knob {}, '{}', is {}; expected numbers above 0, descending", k,
                               knob.label, knob.number));
    }
    return {};
  }

  Result<void> Tables() const {
    int next_stage = 0;
    for (std::size_t t = 0; t < profile_.tables.size(); ++t) {
      const OptionTable& table = profile_.tables[t];
      if (static_cast<int>(table.type) >= kNumComputationTypes) {
        return Wrong("tables", fmt::format("table {} is of no type of computation", t));
      }
      if (t > 0 && std::tie(profile_.tables[t - 1].stage, profile_.tables[t - 1].type) >=
                       std::tie(table.stage, table.type)) {
        return Wrong("tables",
                     fmt::format("{} comes after a table that it should be before, or is there "
                                 "twice; sort tables by stage and type",
                                 Name(table)));
      }
      if (table.stage > next_stage) {
        return Wrong("tables",
                     fmt::format("it has {}, but no table of stage {}", Name(table), next_stage));
      }
      next_stage = table.stage + 1;
      if (auto good = Options(table); !good) return good;
    }
    if (next_stage == profile_.num_stages) return {};
    return Wrong("tables", fmt::format("it says that it has {} stages, and has tables of {}",
                                       profile_.num_stages, next_stage));
  }

  Result<void> Waiting() const {
    const WaitingPower* before = nullptr;
    for (const WaitingPower& row : profile_.waiting) {
      const int stage = row.stage.value_or(-1);
      if (row.stage && (stage < 0 || stage >= profile_.num_stages)) {
        return Wrong("waiting", fmt::format("it says what GPUs of stage {} draw while they wait; "
                                            "it has {} stages, counted from 0",
                                            stage, profile_.num_stages));
      }
      if (!IsNumber(row.watts, 0)) {
        return Wrong("waiting", fmt::format("a GPU that waits at '{}' draws {} W; expected a "
                                            "number >= 0",
                                            row.knob.label, row.watts));
      }
      const bool sorted = before == nullptr || before->stage.value_or(-1) < stage ||
                          (before->stage == row.stage &&
                           (!profile_.KnobsAreRanked() || before->knob.number > row.knob.number));
      if (!sorted) {
        return Wrong("waiting",
                     fmt::format("the power of waiting at '{}' is listed after '{}'; sort rows by "
                                 "stage, and knobs from high to low",
                                 row.knob.label, before->knob.label));
      }
      before = &row;
    }
    return {};
  }

  Result<void> Unlocked() const {
    const UnlockedCost* before = nullptr;
    for (const UnlockedCost& cost : profile_.unlocked) {
      if (profile_.Find(cost.stage, cost.type) == nullptr) {
        return Wrong("unlocked", fmt::format("it says what {} of stage {} costs with no clock set, "
                                             "but has no table of it",
                                             ComputationTypeName(cost.type), cost.stage));
      }
      if (before != nullptr &&
          std::tie(before->stage, before->type) >= std::tie(cost.stage, cost.type)) {
        return Wrong("unlocked",
                     "costs with no clock set are not in order; sort them by stage and type, each "
                     "once");
      }
      before = &cost;
      const bool good = IsNumber(cost.time_seconds, 0) && cost.time_seconds > 0 &&
                        IsNumber(cost.energy_joules, 0) && IsNumber(cost.time_std_seconds, 0) &&
                        IsNumber(cost.energy_std_joules, 0);
      if (good) continue;
      return Wrong("unlocked",
                   fmt::format("{} of stage {} takes {} s and {} J with no clock set (errors {} s, "
                               "{} J); expected a time above 0, and else numbers >= 0",
                               ComputationTypeName(cost.type), cost.stage, cost.time_seconds,
                               cost.energy_joules, cost.time_std_seconds, cost.energy_std_joules));
    }
    return {};
  }

  static std::string Name(const OptionTable& table) {
    return fmt::format("{} of stage {}", ComputationTypeName(table.type), table.stage);
  }

  Result<void> Options(const OptionTable& table) const {
    if (table.stage < 0) return Wrong("stage", Name(table) + ": stages count from 0");
    if (table.options.empty()) return Wrong("options", Name(table) + " has no option");
    const auto count = static_cast<int>(table.options.size());
    if (table.baseline < 0 || table.baseline >= count) {
      return Wrong("baseline", fmt::format("{} has option {} as its baseline, of {}", Name(table),
                                           table.baseline, count));
    }
    std::vector<bool> used(profile_.knobs.size());
    for (std::size_t i = 0; i < table.options.size(); ++i) {
      const Option& option = table.options[i];
      const auto wrong = [&](const char* field, const std::string& what) {
        return Wrong(field, fmt::format("option {} of {} {}", i, Name(table), what));
      };
      if (option.knob < 0 || static_cast<std::size_t>(option.knob) >= profile_.knobs.size()) {
        return wrong("knob", fmt::format("has knob {}, but there are {}, counted from 0",
                                         option.knob, profile_.knobs.size()));
      }
      if (used[static_cast<std::size_t>(option.knob)]) {
        return wrong("knob", fmt::format("has the knob of another one, {}", option.knob));
      }
      used[static_cast<std::size_t>(option.knob)] = true;
      if (!IsNumber(option.time_seconds, 0) || option.time_seconds == 0) {
        return wrong("time_seconds",
                     fmt::format("takes {} s; expected a number above 0", option.time_seconds));
      }
      if (!IsNumber(option.energy_joules, 0)) {
        return wrong("energy_joules",
                     fmt::format("uses {} J; expected a number >= 0", option.energy_joules));
      }
      if (!IsNumber(option.time_std_seconds, 0) || !IsNumber(option.energy_std_joules, 0)) {
        return wrong("time_std_seconds",
                     fmt::format("varies by {} s and {} J; expected numbers >= 0",
                                 option.time_std_seconds, option.energy_std_joules));
      }
    }
    return {};
  }

  const Profile& profile_;
};

}  // namespace

Result<void> Profile::Validate() const { return Check(*this).Run(); }

}  // namespace v0
}  // namespace perseus
