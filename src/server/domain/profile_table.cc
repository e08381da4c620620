// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "server/domain/profile_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "profile/rows.h"

namespace perseus::server {
namespace {

constexpr float kNotSaid = std::numeric_limits<float>::quiet_NaN();

// Precondition: not empty.
double Median(std::vector<double> values) {
  const std::size_t middle = values.size() / 2;
  std::sort(values.begin(), values.end());
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

// The standard deviation that the median absolute deviation stands for.
double Spread(const std::vector<double>& values, double median) {
  constexpr double kOfNormal = 1.4826;
  std::vector<double> distances;
  distances.reserve(values.size());
  for (const double value : values) distances.push_back(std::abs(value - median));
  return kOfNormal * Median(std::move(distances));
}

// The standard error of a median of estimates with these standard errors. Of more than
// two, a median's is that of the mean times the square root of half pi.
double ErrorOfMedian(const std::vector<double>& errors) {
  constexpr double kOfMedian = 1.2533141373155003;
  double squares = 0;
  for (const double error : errors) squares += error * error;
  const auto count = static_cast<double>(errors.size());
  return (errors.size() > 2 ? kOfMedian : 1) * std::sqrt(squares) / count;
}

// A median with its uncertainty, from the reports' own errors and from their spread.
struct Estimate {
  double value = 0;
  double std = 0;
};

Estimate Combine(const std::vector<double>& values, const std::vector<double>& errors) {
  const double median = Median(values);
  return {.value = median, .std = std::hypot(ErrorOfMedian(errors), Spread(values, median))};
}

// An empty cell if no report said it.
std::string CellText(const std::vector<double>& said) {
  return said.empty() ? "" : fmt::format("{}", Median(said));
}

float OrNotSaid(const std::optional<double>& value) {
  return value ? static_cast<float>(*value) : kNotSaid;
}

// Those of `member` that were said.
template <typename Report>
std::vector<double> Said(const std::vector<const Report*>& reports, float Report::*member) {
  std::vector<double> said;
  for (const Report* const report : reports) {
    if (!std::isnan(report->*member)) said.push_back(report->*member);
  }
  return said;
}

}  // namespace

std::string ProfileKeyText(const ProfileKey& key) {
  const std::string at = key.clock_mhz == store::kDefaultClockMhz
                             ? "at default clocks"
                             : fmt::format("at {} MHz", key.clock_mhz);
  return fmt::format("stage {} {} {}", key.stage, ComputationTypeName(key.type), at);
}

void ProfileTable::Add(const store::Measurements& measured, int pp_rank) {
  std::vector<ProfileKey>& of_rank = rows_of_rank_[measured.rank];
  for (const store::MeasuredRow& row : measured.rows) {
    const ProfileKey key{row.stage, row.type, row.clock_mhz};
    pp_rank_of_stage_[row.stage] = pp_rank;
    Cell& cell = cells_[key];
    const auto at =
        std::lower_bound(cell.begin(), cell.end(), measured.rank,
                         [](const Report& report, int rank) { return report.rank < rank; });
    const bool is_said = at != cell.end() && at->rank == measured.rank;
    if (!is_said) of_rank.push_back(key);
    *(is_said ? at : cell.insert(at, Report())) = {
        .rank = measured.rank,
        .time_seconds = row.time_seconds,
        .energy_joules = row.energy_joules,
        .time_std_seconds = static_cast<float>(row.time_std_seconds),
        .energy_std_joules = static_cast<float>(row.energy_std_joules),
        .temperature_celsius = OrNotSaid(row.temperature_celsius),
        .work = row.work > 0 ? static_cast<float>(row.work) : kNotSaid,
        .seconds_per_work = OrNotSaid(row.seconds_per_work),
        .joules_per_work = OrNotSaid(row.joules_per_work),
        .time_sources = {row.time_sources.begin(), row.time_sources.end()},
        .power_sources = {row.power_sources.begin(), row.power_sources.end()},
        .throttled = row.throttled};
  }
  if (measured.blocking_power_watts) {
    blocking_power_[pp_rank][measured.rank] = {.watts = *measured.blocking_power_watts,
                                               .std_watts = measured.blocking_power_std_watts};
  }
  if (!measured.waiting.empty()) waiting_[pp_rank][measured.rank] = measured.waiting;
  if (measured.sweep) sweeps_[measured.rank] = *measured.sweep;
  counter_period_seconds_ = std::max(counter_period_seconds_, measured.counter_period_seconds);
  for (const std::string& note : measured.notes) {
    if (notes_.size() < kMostNotes || notes_.contains(note)) notes_[note].insert(measured.rank);
  }
  if (measured.done) {
    done_.insert(measured.rank);
    pp_ranks_done_.insert(pp_rank);
  }
}

bool ProfileTable::IsComplete(const Shape& shape, double seconds_since_last) const {
  if (static_cast<std::int64_t>(done_.size()) >= shape.world_size()) return true;
  return static_cast<int>(pp_ranks_done_.size()) >= shape.pipeline_parallel &&
         seconds_since_last >= kProfileGraceSeconds;
}

std::vector<ProfileKey> ProfileTable::RowsOf(int rank) const {
  const auto found = rows_of_rank_.find(rank);
  return found == rows_of_rank_.end() ? std::vector<ProfileKey>() : found->second;
}

bool ProfileTable::HasOneClock(int rank) const {
  const auto found = rows_of_rank_.find(rank);
  if (found == rows_of_rank_.end() || found->second.empty() || !IsDone(rank)) return false;
  std::set<int> clocks;
  for (const ProfileKey& key : found->second) {
    if (key.clock_mhz != store::kDefaultClockMhz) clocks.insert(key.clock_mhz);
  }
  return clocks.size() <= 1;
}

bool ProfileTable::IsThrottled(const Cell& cell) {
  return std::all_of(cell.begin(), cell.end(),
                     [](const Report& report) { return report.throttled; });
}

std::vector<const ProfileTable::Report*> ProfileTable::Counted(const Cell& cell) {
  const bool all = IsThrottled(cell);
  std::vector<const Report*> counted;
  for (const Report& report : cell) {
    if (all || !report.throttled) counted.push_back(&report);
  }
  return counted;
}

// Errors of the median of these reports, without how GPUs differ. Empty where not all say them.
std::string ProfileTable::ErrorSourcesOf(const std::vector<const Report*>& reports) const {
  const auto sources = [&](std::vector<float> Report::*member) {
    std::vector<double> combined((reports.front()->*member).size());
    for (std::size_t k = 0; k < combined.size(); ++k) {
      double sum = 0;
      std::vector<double> of_ranks;
      for (const Report* const report : reports) {
        if (k >= (report->*member).size()) return std::vector<double>();
        of_ranks.push_back((report->*member)[k]);
        sum += of_ranks.back();
      }
      combined[k] = std::copysign(ErrorOfMedian(of_ranks), sum);
    }
    return combined;
  };
  OptionErrors errors;
  errors.time_sources = sources(&Report::time_sources);
  errors.power_sources = sources(&Report::power_sources);
  if (errors.time_sources.empty() || errors.power_sources.empty()) return "";
  std::vector<double> times;
  std::vector<double> powers;
  std::vector<double> blockings;
  for (const Report* const report : reports) {
    const double time = report->time_std_seconds / report->time_seconds;
    const double energy = report->energy_std_joules / report->energy_joules;
    times.push_back(time);
    powers.push_back(std::sqrt(std::max(0.0, energy * energy - time * time)));
    blockings.push_back(BlockingErrorOf(report->rank));
  }
  errors.time_std = ErrorOfMedian(times);
  errors.power_std = ErrorOfMedian(powers);
  errors.blocking_std = ErrorOfMedian(blockings);
  return profile::FormatErrorSources(errors);
}

double ProfileTable::BlockingErrorOf(int rank) const {
  for (const auto& [pp_rank, powers] : blocking_power_) {
    const auto known = powers.find(rank);
    if (known != powers.end() && known->second.watts > 0) {
      return known->second.std_watts / known->second.watts;
    }
  }
  return 0;
}

// A row at default clocks is of use only beside one of its stage and type at a clock: plans need
// clocks.
bool ProfileTable::IsOfUse(const ProfileKey& key) const {
  if (key.clock_mhz != store::kDefaultClockMhz) return true;
  const auto next = cells_.upper_bound(key);
  return next != cells_.end() && next->first.stage == key.stage && next->first.type == key.type;
}

std::vector<ProfileKey> ProfileTable::Throttled() const {
  std::vector<ProfileKey> throttled;
  for (const auto& [key, cell] : cells_) {
    if (IsThrottled(cell)) throttled.push_back(key);
  }
  return throttled;
}

std::string ProfileTable::Csv() const {
  fmt::memory_buffer text;
  const auto out = fmt::appender(text);
  bool has_work = false;
  bool has_temperature = false;
  bool has_sources = true;
  for (const auto& [key, cell] : cells_) {
    has_sources = has_sources && !ErrorSourcesOf(Counted(cell)).empty();
    for (const Report& report : cell) {
      has_work = has_work || !std::isnan(report.work);
      has_temperature = has_temperature || !std::isnan(report.temperature_celsius);
    }
  }
  for (const ProfileKey& key : Throttled()) {
    fmt::format_to(out, "# {}: the GPUs slowed themselves down while it was measured\n",
                   ProfileKeyText(key));
  }
  fmt::format_to(out, "stage,instruction,frequency,time,energy,time_std,energy_std{}{}{}\n",
                 has_work ? ",work,time_per_work,energy_per_work" : "",
                 has_temperature ? ",temperature_c" : "", has_sources ? ",error_sources" : "");
  for (const auto& [key, cell] : cells_) {
    if (!IsOfUse(key)) continue;
    const std::vector<const Report*> reports = Counted(cell);
    std::vector<double> times;
    std::vector<double> energies;
    std::vector<double> time_errors;
    std::vector<double> energy_errors;
    for (const Report* const report : reports) {
      times.push_back(report->time_seconds);
      energies.push_back(report->energy_joules);
      time_errors.push_back(report->time_std_seconds);
      energy_errors.push_back(report->energy_std_joules);
    }
    const Estimate time = Combine(times, time_errors);
    const Estimate energy = Combine(energies, energy_errors);
    fmt::format_to(out, "{},{},{},{},{},{},{}", key.stage, ComputationTypeName(key.type),
                   key.clock_mhz == store::kDefaultClockMhz
                       ? std::string(profile::kDefaultClockCell)
                       : std::to_string(key.clock_mhz),
                   time.value, energy.value, time.std, energy.std);
    if (has_work) {
      fmt::format_to(out, ",{},{},{}", CellText(Said(reports, &Report::work)),
                     CellText(Said(reports, &Report::seconds_per_work)),
                     CellText(Said(reports, &Report::joules_per_work)));
    }
    if (has_temperature) {
      fmt::format_to(out, ",{}", CellText(Said(reports, &Report::temperature_celsius)));
    }
    if (has_sources) fmt::format_to(out, ",{}", ErrorSourcesOf(reports));
    fmt::format_to(out, "\n");
  }
  const std::size_t more_columns =
      (has_work ? 3U : 0U) + (has_temperature ? 1U : 0U) + (has_sources ? 1U : 0U);
  return fmt::to_string(text) + WaitingRows(more_columns);
}

// Joules of one second.
std::string ProfileTable::WaitingRows(std::size_t more_columns) const {
  int pipeline_parallel = 0;
  for (const auto& [stage, pp_rank] : pp_rank_of_stage_) {
    pipeline_parallel = std::max(pipeline_parallel, pp_rank + 1);
  }
  const std::vector<std::map<int, BlockingPower>> waiting = Waiting(pipeline_parallel);
  if (waiting.empty()) return "";
  std::string text = "# blocking: what a GPU that waits draws, fitted with the energies\n";
  for (const auto& [stage, pp_rank] : pp_rank_of_stage_) {
    const auto& by_clock = waiting[static_cast<std::size_t>(pp_rank)];
    for (const auto& [mhz, power] : by_clock) {
      text += fmt::format("{},blocking,{},1,{},0,{}{}\n", stage, mhz, power.watts, power.std_watts,
                          std::string(more_columns, ','));
    }
  }
  return text;
}

std::vector<std::map<int, BlockingPower>> ProfileTable::Waiting(int pipeline_parallel) const {
  using Reports = std::map<int, std::vector<store::MeasuredWaiting>>;  // By rank.
  const auto combine = [](const std::vector<const Reports*>& from) {
    std::map<int, std::pair<std::vector<double>, std::vector<double>>> by_clock;
    for (const Reports* const reports : from) {
      for (const auto& [rank, rows] : *reports) {
        for (const store::MeasuredWaiting& row : rows) {
          by_clock[row.clock_mhz].first.push_back(row.watts);
          by_clock[row.clock_mhz].second.push_back(row.std_watts);
        }
      }
    }
    std::map<int, BlockingPower> combined;
    for (const auto& [mhz, reports] : by_clock) {
      const Estimate estimate = Combine(reports.first, reports.second);
      combined[mhz] = {.watts = estimate.value, .std_watts = estimate.std};
    }
    return combined;
  };
  std::vector<const Reports*> all;
  std::map<int, const Reports*> known;
  for (const auto& [pp_rank, reports] : waiting_) {
    all.push_back(&reports);
    const auto powers = blocking_power_.find(pp_rank);
    const std::size_t ranks = powers == blocking_power_.end() ? 0 : powers->second.size();
    if (2 * reports.size() >= ranks) known[pp_rank] = &reports;
  }
  if (all.empty()) return {};
  std::vector<std::map<int, BlockingPower>> waiting;
  for (int pp_rank = 0; pp_rank < pipeline_parallel; ++pp_rank) {
    const auto own = known.find(pp_rank);
    waiting.push_back(combine(own == known.end() ? all : std::vector{own->second}));
  }
  return waiting;
}

std::vector<BlockingPower> ProfileTable::Blocking(int pipeline_parallel) const {
  if (blocking_power_.empty()) return {};
  std::map<int, BlockingPower> known;
  std::vector<double> watts;
  std::vector<double> errors;
  for (const auto& [pp_rank, powers] : blocking_power_) {
    std::vector<double> of_ranks;
    std::vector<double> errors_of_ranks;
    for (const auto& [rank, power] : powers) {
      of_ranks.push_back(power.watts);
      errors_of_ranks.push_back(power.std_watts);
    }
    const Estimate estimate = Combine(of_ranks, errors_of_ranks);
    known[pp_rank] = {.watts = estimate.value, .std_watts = estimate.std};
    watts.push_back(estimate.value);
    errors.push_back(estimate.std);
  }
  const Estimate others = Combine(watts, errors);
  std::vector<BlockingPower> all(static_cast<std::size_t>(pipeline_parallel),
                                 {.watts = others.value, .std_watts = others.std});
  for (const auto& [pp_rank, power] : known) {
    if (pp_rank < pipeline_parallel) all[static_cast<std::size_t>(pp_rank)] = power;
  }
  return all;
}

std::vector<double> ProfileTable::BlockingPowerWatts(int pipeline_parallel) const {
  std::vector<double> watts;
  for (const BlockingPower& power : Blocking(pipeline_parallel)) watts.push_back(power.watts);
  return watts;
}

std::optional<SweepSummary> ProfileTable::Sweep() const {
  if (sweeps_.empty() && counter_period_seconds_ == 0) return std::nullopt;
  SweepSummary sum;
  sum.counter_period_seconds = counter_period_seconds_;
  for (const auto& [rank, cost] : sweeps_) {
    ++sum.ranks;
    sum.cost.iterations = std::max(sum.cost.iterations, cost.iterations);
    sum.cost.seconds = std::max(sum.cost.seconds, cost.seconds);
    sum.cost.extra_seconds = std::max(sum.cost.extra_seconds, cost.extra_seconds);
    sum.cost.joules += cost.joules;
    sum.cost.extra_joules += cost.extra_joules;
  }
  return sum;
}

}  // namespace perseus::server
