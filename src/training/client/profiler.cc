// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "client/profiler.h"

#include <bit>
#include <utility>

#include "client/ticks.h"

namespace perseus::client {

Profiler::Profiler(const std::vector<int>& clocks_mhz, const measure::SweepSettings& settings,
                   const std::vector<int>& left)
    : sweep_(clocks_mhz, settings) {
  if (!left.empty()) sweep_.Leave(left);
}

void Profiler::Handle(const Event& event, std::int64_t at_ns) {
  switch (event.kind) {
    case EventKind::kStepBegin:
      computing_ = looked_ = false;
      sweep_.BeginIteration(event.value, at_ns);
      break;
    case EventKind::kStepEnd:
      computing_ = false;
      sweep_.EndIteration(at_ns);
      break;
    case EventKind::kStepAbandon:
      computing_ = false;
      sweep_.AbandonIteration();
      break;
    case EventKind::kWork:
      sweep_.SetWork(std::bit_cast<double>(event.value));
      break;
    case EventKind::kBegin:
      computing_ = true;
      sweep_.Begin({event.type, event.stage}, at_ns);
      break;
    case EventKind::kEnd:
      computing_ = false;
      sweep_.End(at_ns);
      break;
    case EventKind::kBusy:
      break;
  }
}

void Profiler::HandleTimes(const StepTimes& times) {
  std::vector<std::pair<std::int64_t, std::int64_t>> spans;
  spans.reserve(times.computations.size());
  for (const DeviceSpan& span : times.computations) spans.emplace_back(span.begin_ns, span.end_ns);
  sweep_.SetTimes(times.iteration, spans);
}

void Profiler::Look(ClockCaller* caller) {
  const std::int64_t begin_ns = MonotonicNs();
  const std::optional<double> joules = caller->EnergyJoules();
  if (joules) sweep_.AddRead(*joules, begin_ns, MonotonicNs());
  if (!computing_ || looked_ || sweep_.ended()) return;
  looked_ = true;
  if (asks_clock_) {
    const std::optional<int> mhz = caller->ClockMhz();
    if (mhz) sweep_.AddClock(*mhz);
    asks_clock_ = mhz.has_value();
  }
  if (!asks_conditions_) return;
  const std::optional<device::GpuConditions> conditions = caller->Conditions();
  asks_conditions_ = conditions.has_value();
  if (!conditions) return;
  const std::vector<std::string> reasons = device::ThrottleNames(conditions->throttle_reasons);
  sweep_.AddConditions(conditions->temperature_celsius, !reasons.empty());
  for (const std::string& reason : reasons) {
    if (sweep_.measures_unlocked()) break;  // So it runs without Perseus.
    sweep_.Note("the card was held back while it was measured: " + reason);
  }
  if (conditions->mig) sweep_.Note("MIG is on: the energy counter is that of the whole card");
  if (conditions->power_floor_watts) {
    sweep_.Note("power smoothing keeps the card above a floor: lower clocks save less");
  }
}

std::optional<ProfileReport> Profiler::TakeReport() {
  ProfileReport report;
  report.rows = sweep_.TakeRows();
  report.notes = sweep_.TakeNotes();
  report.done = sweep_.done();
  if (reported_ || (report.rows.empty() && !report.done)) {
    report.done = false;
    if (report.notes.empty() || reported_) return std::nullopt;
  }
  reported_ = report.done;
  report.blocking = sweep_.blocking();
  report.waiting = sweep_.waiting();
  report.cost = sweep_.cost();
  report.counter_period_seconds = sweep_.counter_period_seconds();
  return report;
}

}  // namespace perseus::client
