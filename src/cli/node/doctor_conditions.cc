// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/node/doctor_conditions.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <vector>

#include "cli/framework/findings.h"
#include "cli/framework/table.h"
#include "common/file.h"
#include "common/nearest_name.h"
#include "common/printable.h"
#include "server/planning/conditions_state.h"

namespace perseus::cli {
namespace {

// A cost that is no larger may be none.
constexpr double kErrorsAboveNone = 2;

double MeanOf(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

std::string Time(double seconds) { return fmt::format("\"{:.3f}ms\"", 1e3 * seconds); }

double CostOf(const std::optional<device::DisturbanceProbe>& probe) {
  if (!probe) return 0;
  const device::Figure& cost = probe->seconds_per_call;
  return cost.value > kErrorsAboveNone * cost.error ? cost.value : 0;
}

// The mean of each clock that was tried, over the GPUs.
std::vector<server::MeasuredClockLatency> MeansOfClocks(const Examination& examination) {
  std::map<int, std::vector<device::Figure>> clocks;
  for (const ExaminedGpu& gpu : examination.gpus) {
    if (!gpu.effect) continue;
    for (const device::TargetLatency& target : gpu.effect->targets) {
      clocks[target.mhz].push_back(target.seconds);
    }
  }
  std::vector<server::MeasuredClockLatency> means;
  for (const auto& [mhz, figures] : clocks) {
    const auto count = static_cast<double>(figures.size());
    server::MeasuredCondition mean = {.ranks = std::ssize(figures)};
    for (const device::Figure& figure : figures) {
      mean.value += figure.value / count;
      mean.error = std::hypot(mean.error, figure.error / count);
    }
    means.push_back({mhz, mean});
  }
  return means;
}

// Of each clock on each GPU, around what is written of it: its own latency, or that of all.
std::vector<double> VariancesAround(const Examination& examination,
                                    const std::vector<server::MeasuredClockLatency>& own,
                                    double latency_of_all) {
  std::vector<double> variances;
  for (const ExaminedGpu& gpu : examination.gpus) {
    if (!gpu.effect) continue;
    for (const device::TargetLatency& target : gpu.effect->targets) {
      const auto found = std::find_if(
          own.begin(), own.end(), [&](const auto& each) { return each.clock_mhz == target.mhz; });
      const double apart =
          target.seconds.value - (found == own.end() ? latency_of_all : found->seconds.value);
      variances.push_back(target.seconds.spread * target.seconds.spread + apart * apart);
    }
  }
  return variances;
}

}  // namespace

std::string ConditionsFile(const Examination& examination) {
  std::vector<double> latencies;
  std::vector<double> variances;
  std::vector<double> costs;
  for (const ExaminedGpu& gpu : examination.gpus) {
    if (!gpu.effect) continue;
    const device::Figure& latency = gpu.effect->seconds;
    latencies.push_back(latency.value);
    variances.push_back(latency.spread * latency.spread);
    costs.push_back(std::max(CostOf(gpu.computation), CostOf(gpu.transfer)));
  }
  if (latencies.empty()) return "";
  const double latency = MeanOf(latencies);
  for (std::size_t i = 0; i < variances.size(); ++i) {
    variances[i] += (latencies[i] - latency) * (latencies[i] - latency);
  }
  const std::vector<server::MeasuredClockLatency> own =
      server::OwnLatencies(MeansOfClocks(examination), latency);
  if (!own.empty()) variances = VariancesAround(examination, own, latency);
  const double spread = std::min(std::sqrt(MeanOf(variances)), latency);
  const double wait = examination.together ? examination.together->wait_seconds() : 0;
  std::string text = fmt::format(
      "# What 'perseus doctor --set-clocks' measured on {} ({}).\n"
      "# For 'perseus plan --conditions FILE', or in a job file.\n[conditions]\n",
      CountOf(static_cast<long long>(latencies.size()), "GPU"),
      Printable(examination.gpus.front().info.name));
  if (wait > 0) {
    text += fmt::format(
        "# The driver serves one call at a time: from a call alone to the last of all GPUs at "
        "once.\n"
        "switch_latency = \"{:.3f}ms-{:.3f}ms\"\n",
        1e3 * latency, 1e3 * (latency + wait));
  } else {
    text += fmt::format("switch_latency = {}\n", Time(latency));
  }
  std::string list;
  for (const server::MeasuredClockLatency& each : own) {
    list += fmt::format("{}{}={:.3f}ms", list.empty() ? "" : ",", each.clock_mhz,
                        1e3 * (each.seconds.value + wait / 2));  // As the middle of the range.
  }
  if (!list.empty()) {
    text += fmt::format("# Of the clocks that were tried.\nswitch_latency_at = \"{}\"\n", list);
  }
  text += fmt::format("switch_latency_spread = {}\n", Time(spread));
  const double cost = MeanOf(costs);
  if (cost > 0) {
    text += fmt::format("# What a call costs the work that runs meanwhile.\nswitch_stall = {}\n",
                        Time(cost));
  }
  return text +
         "# As Perseus' client calls for clocks.\n"
         "call_ahead = \"predicted\"\nmin_call_interval = \"10ms\"\n";
}

Result<void> WriteConditions(const std::string& path, Examination* examination) {
  const std::string text = ConditionsFile(*examination);
  if (text.empty()) {
    examination->findings.push_back(
        {FindingLevel::kFault, "conditions",
         fmt::format("{} was not written: nobody saw when a clock is in effect", Shown(path)),
         "see above why; until then, give --switch-latency by hand"});
    return {};
  }
  if (auto written = WriteFileAtomically(path, text); !written) return written;
  examination->findings.push_back(
      {FindingLevel::kOk, "conditions",
       fmt::format("{} has them; 'perseus plan --conditions FILE' plans for them", Shown(path)),
       ""});
  return {};
}

}  // namespace perseus::cli
