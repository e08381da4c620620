// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/cluster/findings_text.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>

#include "cli/cluster/job_values.h"
#include "cli/cluster/json_values.h"
#include "cli/framework/table.h"
#include "common/belief.h"

namespace perseus::cli {
namespace {

using Json = nlohmann::ordered_json;

// Percent with its interval.
std::string EstimateText(const Json& estimate, std::string (*format)(double, int)) {
  const auto mean = NumberOf(estimate, "mean");
  if (!mean) return "not known yet";
  return fmt::format("{} (95 %: {} to {})", format(*mean, 2),
                     format(NumberOf(estimate, "least").value_or(0), 2),
                     format(NumberOf(estimate, "most").value_or(0), 2));
}

// What makes a measured saving doubtful.
std::string DoubtText(const Json& realised, const Json& blocks) {
  constexpr double kLonger = 4;  // Times.
  if (!NumberOf(ObjectOf(realised, "saving_percent"), "mean")) return "";
  std::string text;
  const std::string settling = MemberText(realised, "settling");
  const double every = kLonger * NumberOf(blocks, "every").value_or(0);
  const double iterations = kLonger * NumberOf(blocks, "iterations").value_or(0);
  if (settling == "goes_on") {
    text = Line("", "a change of clocks still acts at the end of a stretch, so this is biased") +
           Line("", "if that is still so after 8 pairs, the server makes stretches twice as long");
  } else if (settling == "unknown") {
    text = Line("", "stretches are too short to show effects that grow slowly, such as heat");
    if (iterations > 0) {
      text += Line("", fmt::format("to be sure, compare with --every {:.0f} --iterations {:.0f}",
                                   every, iterations));
    }
  }
  if (MemberText(realised, "agrees") == "false") {
    text += Line("", "DISAGREES with what is promised: docs/how-to/savings.md says what to do");
  }
  return text;
}

}  // namespace

std::string DetectionText(const Json& detection) {
  if (detection.empty()) return "";
  std::string text =
      Line("detection",
           fmt::format("{}: threshold {}, window {} iterations; {} ranks are watched",
                       MemberText(detection, "mode"),
                       FormatPercent(100 * NumberOf(detection, "threshold").value_or(0), 1),
                       MemberText(detection, "window"), MemberText(detection, "watched_ranks")));
  // An older server does not say so.
  const std::string reporting = MemberText(detection, "reporting_ranks");
  if (!reporting.empty()) {
    text += Line("", fmt::format("{} of {} ranks report to this server", reporting,
                                 MemberText(detection, "ranks")));
  }
  for (const Json& slow : ListOf(detection, "slow")) {
    const std::string straggler = MemberText(slow, "straggler_id");
    text +=
        Line("slow rank",
             fmt::format("{}: x {:.3g} since iteration {}{}{}", MemberText(slow, "rank"),
                         NumberOf(slow, "factor").value_or(0), MemberText(slow, "since_iteration"),
                         straggler.empty() ? "" : ", answered as straggler ", straggler));
    text += Line("", MemberText(slow, "cause"));
  }
  const std::string together = MemberText(detection, "together");
  if (!together.empty()) text += Line("", "these are " + together);
  const double drift = NumberOf(detection, "drift_factor").value_or(1);
  if (drift != 1) text += Line("drift", fmt::format("nearly all ranks: x {:.3g}", drift));
  return text + Line("iterations", MemberText(detection, "iteration_cause"));
}

std::string SavingsText(const Json& savings) {
  std::string text;
  const bool is_estimated = MemberText(savings, "kind") == "estimated";
  const Json& promised = ObjectOf(savings, "promised");
  if (!IsBelievable(promised)) {
    text += Line("promised", fmt::format("{}; perseus job show says why", kNotBelievable));
  } else if (const auto saving = NumberOf(promised, "saving_percent")) {
    text +=
        Line(is_estimated ? "ESTIMATED" : "promised",
             fmt::format("saving {}, slowdown {}, against an iteration at maximum clocks{}",
                         FormatPercent(*saving, 2),
                         FormatSignedPercent(NumberOf(promised, "time_percent").value_or(0), 2),
                         is_estimated ? ": what would be saved; in shadow mode nothing is" : ""));
    if (const auto unlocked = UnlockedOf(promised)) {
      text +=
          Line("", fmt::format("saving {}, slowdown {}, against one with no clock set, which is "
                               "what a comparison measures",
                               FormatPercent(unlocked->saving_percent, 2),
                               FormatSignedPercent(unlocked->slowdown_percent, 2)));
    } else if (MemberText(savings, "baseline") == "unlocked" && !is_estimated) {
      text += Line("",
                   "no clock set is not measured: where GPUs boost or are capped, the saving "
                   "against it differs");
    }
  }
  const std::string measured = SecondsOf(savings, "measured_at_maximum_s");
  if (is_estimated && !measured.empty()) {
    text += Line("measured", measured + " an iteration with no clock set");
  }
  const Json& blocks = ObjectOf(savings, "comparison");
  if (!blocks.empty()) {
    text += Line("comparison",
                 fmt::format("of every {} iterations {} run with no clock set",
                             MemberText(blocks, "every"), MemberText(blocks, "iterations")));
  }
  if (blocks.empty() && ListOf(savings, "realised").empty() && !is_estimated) {
    text += Line("realised", "nothing was measured; compare with --every N --iterations M");
  }
  for (const Json& realised : ListOf(savings, "realised")) {
    text +=
        Line("realised",
             fmt::format("plan {}, {} pairs: saving {}, slowdown {}",
                         MemberText(realised, "plan_version"), MemberText(realised, "pairs"),
                         EstimateText(ObjectOf(realised, "saving_percent"), FormatPercent),
                         EstimateText(ObjectOf(realised, "time_percent"), FormatSignedPercent)));
    text += DoubtText(realised, blocks);
  }
  return text;
}

}  // namespace perseus::cli
