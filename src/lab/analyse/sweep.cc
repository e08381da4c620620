// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <utility>

#include "analyse/planned_shape.h"
#include "analyse/stage_parts.h"
#include "analyse/sweep_text.h"
#include "common/nearest_name.h"
#include "common/numbers.h"
#include "job/job_fields.h"
#include "perseus/analysis.h"
#include "pipeline/schedules.h"

namespace perseus {
inline namespace v0 {
namespace {

using pipeline::kMaxComputations;
using pipeline::UnknownScheduleName;

constexpr std::int64_t kMostShapes = 1000;

template <typename T>
void AddNew(T value, std::vector<T>* values) {
  if (std::find(values->begin(), values->end(), value) == values->end()) {
    values->push_back(std::move(value));
  }
}

Result<void> AddCount(std::string_view key, std::string_view value, std::vector<int>* counts) {
  const std::optional<int> count = ParseInteger<int>(value);
  if (!count || *count < 1 || *count > job::kMaxMicrobatches) {
    return InvalidInput(
        fmt::format("{} is no value of {}; expected whole numbers from 1 to {}, as in {}=8,16,32",
                    Shown(value), key, job::kMaxMicrobatches, key));
  }
  AddNew(*count, counts);
  return {};
}

Result<void> AddSchedule(std::string_view value, std::vector<std::string>* schedules) {
  auto name = CanonicalScheduleName(value);
  if (!name) return InvalidInput(UnknownScheduleName(value));
  AddNew(*std::move(name), schedules);
  return {};
}

// The values of `own`, where none is to be tried.
template <typename T>
std::vector<T> ValuesOr(const std::vector<T>& values, const T& own) {
  return values.empty() ? std::vector<T>{own} : values;
}

std::vector<ScheduleSpec> Shapes(const JobShape& job, const SweepSpec& sweep) {
  std::vector<ScheduleSpec> shapes;
  const ScheduleSpec& own = job.schedule;
  for (const std::string& name : ValuesOr(sweep.schedules, own.name)) {
    for (const int stages : ValuesOr(sweep.stages, own.num_stages)) {
      for (const int virtual_stages : ValuesOr(sweep.virtual_stages, own.virtual_stages)) {
        for (const int microbatches : ValuesOr(sweep.microbatches, own.num_microbatches)) {
          ScheduleSpec shape = own;
          shape.name = CanonicalScheduleName(name).value_or(name);
          shape.num_stages = stages;
          shape.virtual_stages = virtual_stages;
          shape.num_microbatches = microbatches;
          // Groups are the job's own schedule's; others have none.
          if (shape.name != CanonicalScheduleName(own.name)) shape.microbatch_group_size = {};
          shapes.push_back(std::move(shape));
        }
      }
    }
  }
  return shapes;
}

std::int64_t Computations(const ScheduleSpec& shape) {
  return 2 * static_cast<std::int64_t>(std::max(1, shape.num_stages)) *
         std::max(1, shape.num_microbatches);
}

Result<void> CheckSize(const SweepSpec& sweep) {
  std::int64_t shapes = 1;
  for (const std::size_t values : {sweep.schedules.size(), sweep.stages.size(),
                                   sweep.virtual_stages.size(), sweep.microbatches.size()}) {
    shapes *= std::clamp<std::int64_t>(static_cast<std::int64_t>(values), 1, kMostShapes + 1);
  }
  if (shapes <= kMostShapes) return {};
  return InvalidInput(fmt::format(
      "the sweep has more than {} shapes (every combination is tried); give fewer values",
      kMostShapes));
}

bool Divides(int stages, int all_stages) { return stages >= 1 && all_stages % stages == 0; }

// Between merged stages only some boundaries are left.
FixedTimes ThinnedDelays(const FixedTimes& fixed, int all_stages, int stages) {
  FixedTimes thinned = fixed;
  const std::vector<double>& delays = fixed.comm_delay_seconds;
  if (delays.size() <= 1 || static_cast<int>(delays.size()) != all_stages - 1) return thinned;
  const int group = all_stages / stages;
  thinned.comm_delay_seconds.clear();
  for (int boundary = group - 1; boundary < all_stages - 1; boundary += group) {
    thinned.comm_delay_seconds.push_back(delays[boundary]);
  }
  return thinned;
}

Result<analyse::PlannedShape> PlanOne(const JobShape& job, const ScheduleSpec& shape,
                                      double effort) {
  const int all_stages = job.profile->num_stages;
  if (!Divides(shape.num_stages, all_stages)) {
    return InvalidInput(
        fmt::format("the profile's {} stages cannot be merged to {}; give a divisor of {}",
                    all_stages, shape.num_stages, all_stages));
  }
  JobShape other = job;
  other.schedule = shape;
  Profile merged;
  if (shape.num_stages != all_stages) {
    auto made = analyse::MergeStages(*job.profile, shape.num_stages);
    if (!made) return tl::unexpected(made.error());
    merged = *std::move(made);
    other.profile = &merged;
    other.fixed = ThinnedDelays(job.fixed, all_stages, shape.num_stages);
  }
  return analyse::PlanShape(other, effort);
}

void FillIn(const analyse::PlannedShape& planned, SweepRow* row) {
  const double microbatches = row->schedule.num_microbatches;
  row->baseline_seconds = planned.baseline_seconds;
  row->baseline_joules = planned.baseline_joules;
  row->bubble_percent = planned.bubble_percent;
  row->iteration_time_seconds = planned.plan.iteration_time_seconds;
  row->energy_joules = planned.plan.energy_joules;
  row->lower_bound_joules = planned.plan.lower_bound_joules;
  row->saving_percent = planned.plan.saving_percent;
  row->seconds_per_microbatch = row->iteration_time_seconds / microbatches;
  row->joules_per_microbatch = row->energy_joules / microbatches;
}

}  // namespace

}  // namespace v0
}  // namespace perseus

namespace perseus::analyse {

Result<void> ParseSweep(std::string_view text, SweepSpec* sweep) {
  struct Key {
    std::string name;
    std::vector<int> SweepSpec::*counts = nullptr;  // nullptr: the schedules.
  };
  const std::vector<Key> keys = {{"microbatches", &SweepSpec::microbatches},
                                 {"stages", &SweepSpec::stages},
                                 {"virtual-stages", &SweepSpec::virtual_stages},
                                 {"schedule"}};
  const std::size_t equals = text.find('=');
  const std::string_view name = text.substr(0, equals);
  const auto key = std::find_if(keys.begin(), keys.end(),
                                [&](const Key& known) { return SameName(known.name, name); });
  if (key != keys.end() && equals == std::string_view::npos) {
    return InvalidInput(fmt::format(
        "{} has no values; give them, as in {}", Shown(text),
        key->counts != nullptr ? fmt::format("{}=8,16,32", key->name) : "schedule=1f1b,gpipe"));
  }
  if (key == keys.end()) {
    std::vector<std::string> names;
    std::transform(keys.begin(), keys.end(), std::back_inserter(names),
                   [](const Key& known) { return known.name; });
    return InvalidInput(fmt::format("{} cannot be swept; expected {}, as in microbatches=8,16,32{}",
                                    Shown(text), fmt::join(names, ", "), NearestHint(name, names)));
  }
  SweepSpec more = *sweep;  // All of the values, or none.
  std::string_view rest = text.substr(equals);
  while (!rest.empty()) {
    rest.remove_prefix(1);  // '=' or ','
    const std::string_view value = rest.substr(0, rest.find(','));
    Result<void> added = key->counts != nullptr
                             ? AddCount(key->name, Trimmed(value), &(more.*key->counts))
                             : AddSchedule(Trimmed(value), &more.schedules);
    if (!added) return added;
    rest.remove_prefix(value.size());
  }
  *sweep = std::move(more);
  return {};
}

}  // namespace perseus::analyse

namespace perseus {
inline namespace v0 {

Result<std::vector<SweepRow>> SweepShapes(const JobShape& job, const SweepSpec& sweep,
                                          const ProgressFunction& progress) {
  if (auto checked = analyse::CheckAnalysis(job, sweep.effort); !checked) {
    return tl::unexpected(checked.error());
  }
  if (auto checked = CheckSize(sweep); !checked) return tl::unexpected(checked.error());
  const std::vector<ScheduleSpec> shapes = Shapes(job, sweep);
  std::int64_t all_computations = 0;
  for (const ScheduleSpec& shape : shapes) all_computations += Computations(shape);
  if (all_computations > kMaxComputations) {
    return InvalidInput(
        fmt::format("the sweep has {} computations in all its shapes together, more than {}; give "
                    "fewer or smaller values",
                    all_computations, kMaxComputations));
  }
  std::vector<SweepRow> rows;
  std::int64_t done = 0;
  for (const ScheduleSpec& shape : shapes) {
    SweepRow row;
    row.schedule = shape;
    const auto planned = PlanOne(job, shape, sweep.effort);
    if (planned) {
      FillIn(*planned, &row);
    } else if (planned.error().code == ErrorCode::kInternal) {
      return tl::unexpected(planned.error());
    } else {
      row.why_not = planned.error().message;
    }
    rows.push_back(std::move(row));
    done += Computations(shape);
    const double share = static_cast<double>(done) / static_cast<double>(all_computations);
    if (progress && !progress({.share = share})) {
      return MakeError(ErrorCode::kCancelled, "the sweep was cancelled");
    }
  }
  return rows;
}

}  // namespace v0
}  // namespace perseus
