// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "fleet/check_site.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include "common/printable.h"

namespace perseus::fleet {
namespace {

// Beyond these, sums lose digits or overflow. No site is near them.
constexpr double kLargest = 1e15;
constexpr double kSmallestTime = 1e-9;

std::string Label(std::string_view kind, const std::string& name, std::size_t index) {
  return name.empty() ? fmt::format("{} {}", kind, index)
                      : fmt::format("{} \"{}\"", kind, Printable(name));
}

class Checker {
 public:
  explicit Checker(const PowerSite& site) : site_(site) {}

  std::optional<Error> Run() {
    CheckNodes();
    Number("site", "meter_factor", site_.meter_factor, 1e-3, 1e3, "a factor above 0");
    for (std::size_t j = 0; j < site_.jobs.size() && !fault_; ++j) CheckJob(j);
    return std::move(fault_);
  }

 private:
  void Fail(std::string_view field, std::string message) {
    if (fault_) return;
    fault_ = Error{ErrorCode::kInvalidInput, std::move(message)};
    fault_->field = field;
  }

  void Number(std::string_view where, std::string_view field, double value, double least,
              double most, std::string_view expected) {
    if (value >= least && value <= most) return;
    Fail(field, fmt::format("{}: {} is {}, but expected {}.", where, field, value, expected));
  }
  void Time(std::string_view where, std::string_view field, double value) {
    Number(where, field, value, kSmallestTime, kLargest, "seconds above 0");
  }
  void Positive(std::string_view where, std::string_view field, double value,
                std::string_view unit) {
    Number(where, field, value, 0, kLargest, fmt::format("{}, 0 or more", unit));
  }

  void CheckNodes() {
    if (site_.nodes.empty()) {
      return Fail("nodes", "The site has no node: add node 0, which carries the whole site.");
    }
    for (std::size_t n = 0; n < site_.nodes.size() && !fault_; ++n) {
      const PowerNode& node = site_.nodes[n];
      const std::string where = NodeLabel(site_, n);
      if (!(node.limit_watts >= 0)) {
        Fail("limit_watts", fmt::format("{}: limit_watts is {}, but expected watts, 0 or more.",
                                        where, node.limit_watts));
      }
      if ((n == 0) == node.parent.has_value()) {
        return Fail("parent", n == 0
                                  ? where + ": it is the whole site, but has a parent: remove it."
                                  : where + ": it has no parent; name the node that feeds it.");
      }
      if (n > 0 && *node.parent >= site_.nodes.size()) {
        return Fail("parent", fmt::format("{}: its parent is node {}, but there are {} nodes.",
                                          where, *node.parent, site_.nodes.size()));
      }
    }
    for (std::size_t n = 1; n < site_.nodes.size() && !fault_; ++n) CheckReachesRoot(n);
  }

  void CheckReachesRoot(std::size_t start) {
    std::size_t n = start;
    for (std::size_t steps = 0; n != 0; ++steps) {
      if (steps == site_.nodes.size()) {
        return Fail("parent", fmt::format("{}: its parents form a circle; lead them to {}.",
                                          NodeLabel(site_, start), NodeLabel(site_, 0)));
      }
      n = *site_.nodes[n].parent;
    }
  }

  void CheckJob(std::size_t j) {
    const FleetJob& job = site_.jobs[j];
    const std::string where = JobLabel(site_, j);
    if (job.frontier.empty()) {
      return Fail("frontier", where + ": it has no frontier; give one point at least.");
    }
    double fastest = kLargest;
    for (const IterationPoint& point : job.frontier)
      fastest = CheckPoint(where, "frontier", point, fastest);
    double fastest_plan = kLargest;
    for (const IterationPoint& point : job.plans) {
      fastest_plan = CheckPoint(where, "plans", point, fastest_plan);
    }
    if (!job.plans.empty()) fastest = fastest_plan;
    for (const LatePipeline& late : job.late) CheckPoint(where, "late", late.point, fastest);
    Time(where, "full_speed_seconds", job.full_speed_seconds);
    Positive(where, "waiting_watts", job.waiting_watts, "watts");
    Positive(where, "fixed_watts", job.fixed_watts, "watts");
    Positive(where, "least_watts", job.least_watts, "watts");
    Number(where, "weight", job.weight, 1e-12, 1e12, "a number above 0");
    Number(where, "pipelines", job.pipelines, 1, 1e9, "1 or more");
    if (job.pipelines >= 1 && job.late.size() > static_cast<std::size_t>(job.pipelines)) {
      Fail("late", fmt::format("{}: {} of its pipelines are late, but it has {}.", where,
                               job.late.size(), job.pipelines));
    }
    if (job.slowest_seconds) {
      Time(where, "slowest_seconds", *job.slowest_seconds);
      if (*job.slowest_seconds < fastest) {
        Fail("slowest_seconds",
             fmt::format("{}: its owner accepts {} s for an iteration at most, but its fastest{} "
                         "takes {} s; accept a longer time.",
                         where, *job.slowest_seconds, job.plans.empty() ? "" : " plan", fastest));
      }
    }
    CheckShares(where, job);
  }

  double CheckPoint(std::string_view where, std::string_view field, const IterationPoint& point,
                    double fastest) {
    if (!(point.time_seconds >= kSmallestTime && point.time_seconds <= kLargest &&
          point.energy_joules >= 0 && point.energy_joules <= kLargest)) {
      Fail(field, fmt::format("{}: a point of {} takes {} s and {} J, but expected a time above 0 "
                              "and an energy of 0 or more.",
                              where, field, point.time_seconds, point.energy_joules));
    }
    return std::min(fastest, point.time_seconds);
  }

  void CheckShares(std::string_view where, const FleetJob& job) {
    if (job.shares.empty()) return;
    double sum = 0;
    for (const PowerShare& share : job.shares) {
      if (share.node >= site_.nodes.size()) {
        return Fail("shares", fmt::format("{}: a share is in node {}, but there are {} nodes.",
                                          where, share.node, site_.nodes.size()));
      }
      Number(where, "shares", share.fraction, 0, 1, "fractions from 0 to 1");
      sum += share.fraction;
    }
    if (!(std::abs(sum - 1) <= 1e-9)) {
      Fail("shares", fmt::format("{}: its shares sum to {}, but expected 1.", where, sum));
    }
  }

  const PowerSite& site_;
  std::optional<Error> fault_ = {};
};

}  // namespace

std::string JobLabel(const PowerSite& site, std::size_t job) {
  return Label("job", site.jobs[job].name, job);
}

std::string NodeLabel(const PowerSite& site, std::size_t node) {
  return node == 0 && site.nodes[0].name.empty() ? "site"
                                                 : Label("node", site.nodes[node].name, node);
}

std::optional<Error> FaultOf(const PowerSite& site) { return Checker(site).Run(); }

}  // namespace perseus::fleet
