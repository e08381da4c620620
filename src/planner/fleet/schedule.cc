// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "fleet/corner_program.h"
#include "fleet/shortages.h"
#include "fleet/site_state.h"

namespace perseus::fleet {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// The task of one program: a site over time.
struct ScheduleTask {
  const State& state;
  const std::vector<PowerPeriod>& periods;
  const std::vector<Limits>& limits;  // [period]
  const std::vector<FleetDeadline>& deadlines;
};

std::optional<Error> FaultOfTime(const State& state, const std::vector<PowerPeriod>& periods,
                                 const std::vector<FleetDeadline>& deadlines) {
  const auto fault = [](std::string field, std::string message) {
    Error error{ErrorCode::kInvalidInput, std::move(message)};
    error.field = std::move(field);
    return error;
  };
  if (periods.empty()) return fault("periods", "There is no period: give one at least.");
  for (std::size_t t = 0; t < periods.size(); ++t) {
    if (!(periods[t].seconds > 0 && periods[t].seconds < 1e12)) {
      return fault("seconds", fmt::format("period {}: seconds is {}, but expected seconds above 0.",
                                          t, periods[t].seconds));
    }
    if (!(std::abs(periods[t].price_per_joule) < 1e12)) {
      return fault("price_per_joule",
                   fmt::format("period {}: price_per_joule is {}, but expected a finite number.", t,
                               periods[t].price_per_joule));
    }
  }
  for (const FleetDeadline& deadline : deadlines) {
    if (deadline.job >= state.members.size() || deadline.period >= periods.size()) {
      return fault(
          "deadlines",
          fmt::format("A deadline is for job {} in period {}, but there are {} jobs and {} "
                      "periods, counted from 0.",
                      deadline.job, deadline.period, state.members.size(), periods.size()));
    }
    if (!(deadline.iterations >= 0 && deadline.iterations < 1e15)) {
      return fault("iterations",
                   fmt::format("{}: its deadline asks for {} iterations, but expected "
                               "a number, 0 or more.",
                               state.members[deadline.job].label, deadline.iterations));
    }
  }
  return std::nullopt;
}

class ScheduleProgram {
 public:
  // Of plans: jobs that have some follow these, the others their curves.
  ScheduleProgram(const ScheduleTask& task, bool of_plans) : task_(task), of_plans_(of_plans) {}

  Result<PowerSchedule> Run() {
    AddAll();
    const Result<bool> solved = program_.Solve();
    if (!solved) return tl::unexpected<Error>(solved.error());
    if (!*solved) return tl::unexpected<Error>(MissedDeadline());
    PowerSchedule schedule;
    for (std::size_t t = 0; t < task_.periods.size(); ++t) {
      schedule.periods.push_back(Period(t));
      schedule.cost += schedule.periods.back().objective;
    }
    return schedule;
  }

 private:
  const PowerCurve& CurveOf(std::size_t j) const {
    const Member& member = task_.state.members[j];
    return of_plans_ && !member.options.empty() ? member.plan_curve : member.curve;
  }
  std::size_t UnitOf(std::size_t j, std::size_t t) const {
    return t * task_.state.members.size() + j;
  }

  void AddAll() {
    for (const FleetDeadline& deadline : task_.deadlines) {
      deadline_rows_.push_back(program_.AddRow(deadline.iterations > 0 ? 1 : 0, kInfinity));
    }
    for (const Limits& limits : task_.limits) {
      auto& rows = limit_rows_.emplace_back();
      for (const double limit : limits) {
        rows.push_back(std::isinf(limit) ? kNone : program_.AddRow(-kInfinity, limit > 0 ? 1 : 0));
      }
    }
    for (std::size_t t = 0; t < task_.periods.size(); ++t) {
      for (std::size_t j = 0; j < task_.state.members.size(); ++j) AddUnit(j, t);
    }
    for (const std::size_t row : deadline_rows_) shortfalls_.push_back(program_.AddShortfall(row));
  }

  void AddUnit(std::size_t j, std::size_t t) {
    const PowerPeriod& period = task_.periods[t];
    std::vector<CornerProgram::Term> terms;
    for (std::size_t d = 0; d < task_.deadlines.size(); ++d) {
      const FleetDeadline& deadline = task_.deadlines[d];
      if (deadline.job != j || t > deadline.period) continue;
      const double scale = deadline.iterations > 0 ? deadline.iterations : 1;
      terms.push_back({deadline_rows_[d], period.seconds / scale, 0});
    }
    for (const PowerShare& share : task_.state.members[j].nodes) {
      if (limit_rows_[t][share.node] == kNone) continue;
      terms.push_back({limit_rows_[t][share.node], 0, share.fraction / ScaleOf(t, share.node)});
    }
    program_.AddUnit(&CurveOf(j), 0, period.price_per_joule * period.seconds, std::move(terms));
  }

  double ScaleOf(std::size_t t, std::size_t n) const {
    return task_.limits[t][n] > 0 ? task_.limits[t][n] : 1;
  }

  PowerDivision Period(std::size_t t) const {
    const PowerPeriod& period = task_.periods[t];
    PowerDivision division;
    std::vector<double> watts;
    for (std::size_t j = 0; j < task_.state.members.size(); ++j) {
      const PowerCurve& curve = CurveOf(j);
      double x = program_.Throughput(UnitOf(j, t));
      // Where power is paid for, the program may draw more than its work needs. The same watts do
      // more work.
      if (period.price_per_joule < 0) x = curve.ThroughputAt(program_.Watts(UnitOf(j, t)));
      watts.push_back(curve.WattsAt(x));
      division.jobs.push_back(ShareOf(j, x, watts.back()));
      division.objective += period.price_per_joule * period.seconds * watts.back();
    }
    const std::vector<double> sums = NodeWatts(task_.state, watts);
    for (std::size_t n = 0; n < sums.size(); ++n) {
      const std::size_t row = limit_rows_[t][n];
      division.nodes.push_back({sums[n], row == kNone || of_plans_
                                             ? 0
                                             : std::max(0.0, -program_.Dual(row) / ScaleOf(t, n))});
    }
    return division;
  }

  JobShare ShareOf(std::size_t j, double x, double watts) const {
    const Member& member = task_.state.members[j];
    JobShare share;
    share.time_seconds = 1 / x;
    share.iterations_per_second = x;
    share.watts = watts / task_.state.meter_factor;
    share.speed = x / member.per_speed;
    if (!of_plans_ || member.options.empty()) return share;
    // The two corners of the plans' curve around x, and the plans that reach them.
    const std::vector<double>& corners = member.plan_curve.x;
    const auto next = std::lower_bound(corners.begin(), corners.end(), x);
    const std::size_t high =
        std::min(static_cast<std::size_t>(next - corners.begin()), corners.size() - 1);
    const std::size_t low = high == 0 || corners[high] <= x ? high : high - 1;
    share.plan = PlanAt(member, corners[low]);
    share.other_plan = PlanAt(member, corners[high]);
    if (low != high) share.other_share = (x - corners[low]) / (corners[high] - corners[low]);
    return share;
  }

  // The plan of the option nearest to x.
  static std::size_t PlanAt(const Member& member, double x) {
    const auto nearest = std::min_element(member.options.begin(), member.options.end(),
                                          [x](const PlanOption& a, const PlanOption& b) {
                                            return std::abs(a.x - x) < std::abs(b.x - x);
                                          });
    return nearest->plan;
  }

  Error MissedDeadline() const {
    if (shortfalls_.empty()) {
      return {ErrorCode::kInternal, "COIN-OR CLP found no schedule where there is one"};
    }
    std::size_t worst = 0;
    for (std::size_t d = 1; d < shortfalls_.size(); ++d) {
      if (program_.Value(shortfalls_[d]) > program_.Value(shortfalls_[worst])) worst = d;
    }
    const FleetDeadline& deadline = task_.deadlines[worst];
    const double missing = program_.Value(shortfalls_[worst]) * deadline.iterations;
    Error error{
        ErrorCode::kInfeasible,
        fmt::format("{}: its deadline asks for {:.6g} iterations by the end of period {}, but "
                    "{:.6g} of them do not fit under the limits{}; give it more time, less work or "
                    "more power.",
                    task_.state.members[deadline.job].label, deadline.iterations, deadline.period,
                    missing, of_plans_ ? " with the plans that jobs have" : "")};
    error.field = "deadlines";
    return error;
  }

  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);

  ScheduleTask task_;
  bool of_plans_;
  CornerProgram program_ = {};
  std::vector<std::size_t> deadline_rows_ = {};            // [deadline]
  std::vector<std::size_t> shortfalls_ = {};               // [deadline]
  std::vector<std::vector<std::size_t>> limit_rows_ = {};  // [period][node]
};

}  // namespace
}  // namespace perseus::fleet

namespace perseus {
inline namespace v0 {

Result<FleetScheduleAnswer> PreparedSite::Schedule(
    const std::vector<PowerPeriod>& periods, const std::vector<FleetDeadline>& deadlines) const {
  const State& state = *state_;
  if (auto fault = fleet::FaultOfTime(state, periods, deadlines)) {
    return tl::unexpected<Error>(std::move(*fault));
  }
  std::vector<fleet::Limits> limits;
  const std::vector<double> least = fleet::LeastOfPlans(state);
  for (std::size_t t = 0; t < periods.size(); ++t) {
    Result<fleet::Limits> of_period = fleet::LimitsOf(state, periods[t].limit_watts);
    if (!of_period) {
      return InvalidInput(fmt::format("period {}: {}", t, of_period.error().message));
    }
    if (auto shortage = fleet::FirstShortage(state, *of_period, least)) {
      shortage->message = fmt::format("period {}: {}", t, shortage->message);
      return tl::unexpected<Error>(std::move(*shortage));
    }
    limits.push_back(std::move(*of_period));
  }
  const fleet::ScheduleTask task = {state, periods, limits, deadlines};
  Result<PowerSchedule> bound = fleet::ScheduleProgram(task, false).Run();
  if (!bound) return tl::unexpected<Error>(bound.error());
  const bool has_plans =
      std::any_of(state.members.begin(), state.members.end(),
                  [](const fleet::Member& member) { return !member.options.empty(); });
  if (!has_plans) {
    PowerSchedule same = *bound;
    return FleetScheduleAnswer{std::move(*bound), std::move(same)};
  }
  Result<PowerSchedule> plans = fleet::ScheduleProgram(task, true).Run();
  if (!plans) return tl::unexpected<Error>(plans.error());
  return FleetScheduleAnswer{std::move(*bound), std::move(*plans)};
}

Result<FleetScheduleAnswer> SchedulePower(const PowerSite& site,
                                          const std::vector<PowerPeriod>& periods,
                                          const std::vector<FleetDeadline>& deadlines) {
  const Result<PreparedSite> prepared = PreparedSite::Make(site);
  if (!prepared) return tl::unexpected<Error>(prepared.error());
  return prepared->Schedule(periods, deadlines);
}

}  // namespace v0
}  // namespace perseus
