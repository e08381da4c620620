// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/cluster/job_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <ctime>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/cluster/conditions_text.h"
#include "cli/cluster/findings_text.h"
#include "cli/cluster/job_values.h"
#include "cli/cluster/json_values.h"
#include "cli/cluster/sweep_text.h"
#include "cli/cluster/waiting_text.h"
#include "cli/framework/table.h"
#include "common/belief.h"
#include "common/labels.h"
#include "common/printable.h"
#include "report/text.h"

namespace perseus::cli {
namespace {

using Json = nlohmann::ordered_json;

// " (10.3 to 10.8 %)": where the saving is by the errors of the profile.
std::string IntervalOf(const Json& plan) {
  const Json& interval = ObjectOf(plan, "saving_interval");
  const auto least = NumberOf(interval, "least_percent");
  const auto most = NumberOf(interval, "most_percent");
  return least && most ? fmt::format(" ({})", report::IntervalText({*least, *most})) : "";
}

// "2026-11-22 00:31:09 UTC".
std::string MomentText(double seconds) {
  const auto whole = static_cast<std::time_t>(seconds);
  std::tm moment{};
  std::array<char, 32> text{};
  if (!(std::abs(seconds) < 1e11) || gmtime_r(&whole, &moment) == nullptr) return "?";
  const std::size_t size = std::strftime(text.data(), text.size(), "%F %T UTC", &moment);
  return {text.data(), size};
}

std::string StragglerText(const Json& straggler, double now_seconds) {
  std::string text = fmt::format("{}: ", MemberText(straggler, "straggler_id"));
  for (const char* const key : {"pipeline", "rank", "node"}) {
    if (straggler.contains(key)) text += fmt::format("{} {}", key, MemberText(straggler, key));
  }
  if (const auto factor = NumberOf(straggler, "factor")) text += fmt::format(", x {:.4g}", *factor);
  if (const auto delay = NumberOf(straggler, "delay_s")) {
    text += ", + " + FormatSeconds(*delay);
  }
  const auto starts = NumberOf(straggler, "starts_at");
  if (starts && *starts > now_seconds) text += ", from " + MomentText(*starts);
  const auto expires = NumberOf(straggler, "expires_at");
  if (expires) text += ", until " + MomentText(*expires);
  return text;
}

std::string Counted(const std::string& count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == "1" ? "" : "s");
}

// What two complaints have in common that differ in numbers or names of GPUs alone.
std::string KindOf(const std::string& complaint) {
  std::istringstream words(complaint);
  std::string kind;
  for (std::string word; words >> word;) {
    if (word.find_first_of("0123456789") == std::string::npos) kind += word + ' ';
  }
  return kind;
}

// What ranks complain of: each kind of complaint once, with its ranks.
std::string TroubleText(const Json& job) {
  constexpr std::size_t kMostComplaints = 5;
  constexpr std::size_t kMostRanks = 8;
  struct Complaint {
    std::string kind, error;  // Of the first of its ranks.
    std::vector<std::string> ranks;
  };
  std::vector<Complaint> complaints;
  for (const Json& client : ListOf(ObjectOf(job, "clients"), "troubled")) {
    const std::string error = MemberText(client, "error");
    const std::string kind = KindOf(error);
    auto same = std::find_if(complaints.begin(), complaints.end(),
                             [&](const auto& complaint) { return complaint.kind == kind; });
    if (same == complaints.end()) same = complaints.insert(same, {kind, error, {}});
    same->ranks.push_back(MemberText(client, "rank"));
  }
  std::string text;
  const std::string world_size = MemberText(job, "world_size");
  const auto complaining = NumberOf(ObjectOf(job, "clients"), "complaining").value_or(0);
  for (std::size_t i = 0; i < complaints.size() && i < kMostComplaints; ++i) {
    const auto& [kind, error, ranks] = complaints[i];
    // The server names the first ranks only; if they agree, so do the others.
    const double count =
        complaints.size() == 1 ? std::max<double>(complaining, ranks.size()) : ranks.size();
    const bool all = fmt::format("{}", count) == world_size;
    const auto most = static_cast<std::ptrdiff_t>(std::min(ranks.size(), kMostRanks));
    const std::string which =
        all ? ""
            : fmt::format(" (rank {}{})", fmt::join(ranks.begin(), ranks.begin() + most, ", "),
                          ranks.size() > kMostRanks ? ", ..." : "");
    text += Line("TROUBLE", fmt::format("{} of {} ranks{}: {}", count, world_size, which, error));
  }
  if (complaints.size() > kMostComplaints) {
    text += Line("", fmt::format("and {} other complaints", complaints.size() - kMostComplaints));
  }
  return text;
}

}  // namespace

std::string KnownJobText(const Json& job, const JobLabels& labels) {
  const std::string id = MemberText(job, "id");
  if (MemberText(job, "state") != "finished") {
    const Json& known = ObjectOf(job, "labels");
    const bool has_all = std::all_of(labels.begin(), labels.end(), [&](const auto& label) {
      return MemberText(known, label.first.c_str()) == label.second;
    });
    const std::string other =
        has_all ? ""
                : fmt::format("It keeps its labels; to change them: perseus job label {} {}\n", id,
                              LabelsText(labels, " "));
    return "The job of this client key was there before.\n" + other;
  }
  return fmt::format(
      "The job of this client key has finished: its ranks run at maximum clocks, and no other can "
      "join. For another run give another --client-key, or delete it first: perseus job delete "
      "{}\n",
      id);
}

std::string LongDelayText(double delay_seconds, const Json& job) {
  constexpr double kMany = 10;  // Iterations.
  constexpr double kMilli = 1e-3;
  const double iteration = NumberOf(ObjectOf(job, "frontier"), "baseline_s").value_or(0);
  if (!(iteration > 0) || delay_seconds <= kMany * iteration) return "";
  return fmt::format("A delay of {:g} s is {:.0f} iterations of {}{}\n", delay_seconds,
                     delay_seconds / iteration, FormatSeconds(iteration),
                     kMilli * delay_seconds < iteration
                         ? fmt::format("; did you mean {:g}ms?", delay_seconds)
                         : std::string("."));
}

std::string JobTable(const Json& jobs, const Style& style) {
  constexpr std::size_t kWidestName = 32;
  constexpr std::size_t kWidestLabels = 48;
  // Only where there are some: most clusters have none.
  const bool has_labels =
      std::any_of(jobs.begin(), jobs.end(), [](const Json& job) { return !LabelsOf(job).empty(); });
  std::vector<std::string> header = {"job",  "name",        "state",  "ranks",
                                     "plan", "iteration s", "saving", "stragglers"};
  std::vector<Align> alignment = {Align::kLeft,  Align::kLeft,  Align::kLeft,  Align::kRight,
                                  Align::kRight, Align::kRight, Align::kRight, Align::kRight};
  if (has_labels) {
    header.emplace_back("labels");
    alignment.push_back(Align::kLeft);
  }
  Table table(std::move(header), std::move(alignment));
  for (const Json& job : jobs) {
    const Json& plan = ObjectOf(job, "plan");
    const std::optional<double> seconds = NumberOf(WholeJobOf(plan), "iteration_time_s");
    std::vector<std::string> cells = {
        MemberText(job, "id"),
        CutTo(kWidestName, MemberText(job, "name"), "\u2026"),
        StateOf(job),
        fmt::format("{}/{}", MemberText(job, "ranks_registered"), MemberText(job, "world_size")),
        MemberText(plan, "version") + (HasFirstPlan(job) ? " (first)" : ""),
        seconds ? WithThousands(*seconds, 4) : "",
        SavingNow(job),
        std::to_string(SlowPipelines(job))};
    if (has_labels) cells.push_back(CutTo(kWidestLabels, LabelsOf(job), "\u2026"));
    table.AddRow(std::move(cells));
  }
  return jobs.empty() ? "The server has no jobs.\n" : table.Format(style.rule());
}

std::string JobText(const Json& job, const Style& style, double now_seconds) {
  std::string text;
  const auto line = [&](const char* what, const std::string& value) { text += Line(what, value); };
  text += style.Bold(fmt::format("{} {}", MemberText(job, "id"), MemberText(job, "name"))) + "\n";
  const std::string reason = MemberText(job, "reason");
  const std::string key = MemberText(job, "client_key");
  if (!key.starts_with('-')) line("client key", key);
  line("labels", LabelsOf(job));
  line("state", reason.empty() ? StateOf(job) : fmt::format("{}: {}", StateOf(job), reason));
  line("ranks", fmt::format("{} of {} ({} x {} x {})", MemberText(job, "ranks_registered"),
                            MemberText(job, "world_size"),
                            Counted(MemberText(job, "data_parallel"), "pipeline"),
                            Counted(MemberText(job, "pipeline_parallel"), "rank"),
                            Counted(MemberText(job, "tensor_parallel"), "GPU")));
  std::vector<std::string> missing;
  for (const Json& rank : ListOf(job, "missing_ranks")) missing.push_back(Printable(rank.dump()));
  if (!missing.empty()) {
    line("", fmt::format("not there yet: rank {}{}", fmt::join(missing, ", "),
                         NumberOf(job, "world_size").value_or(0) -
                                     NumberOf(job, "ranks_registered").value_or(0) >
                                 static_cast<double>(missing.size())
                             ? ", ..."
                             : ""));
  }
  text += TroubleText(job);
  line("profile", MemberText(job, "profile_source"));
  for (const Json& note : ListOf(job, "notes")) {
    std::string place;
    for (const char* const key : {"source", "line", "column"}) {
      const std::string part = MemberText(note, key);
      if (!part.empty()) place += part + ":";
    }
    const std::string text = MemberText(note, "text");
    line(MemberText(note, "severity") == "odd" ? "note" : "WARNING",
         fmt::format("{}{}{}{}", place, place.empty() ? "" : " ", text,
                     text.ends_with('?') ? "" : "."));
  }
  for (const Json& note : ListOf(ObjectOf(job, "profiling"), "notes")) {
    std::vector<std::string> ranks;
    for (const Json& rank : ListOf(note, "first_ranks")) ranks.push_back(Printable(rank.dump()));
    const bool are_all = MemberText(note, "ranks") == std::to_string(ranks.size());
    line("", ranks.empty()
                 ? fmt::format("{} ({} ranks)", MemberText(note, "note"), MemberText(note, "ranks"))
                 : fmt::format("rank {}{}: {}", fmt::join(ranks, ", "), are_all ? "" : ", ...",
                               MemberText(note, "note")));
  }
  line("waiting", WaitingText(ObjectOf(job, "profiling")));
  line("sweep", SweepText(ObjectOf(ObjectOf(job, "profiling"), "sweep")));
  for (const Json& drift : ListOf(job, "drift")) line("drift", MemberText(drift, "sentence"));
  line("target", MemberText(job, "at"));
  text += ConditionsText(ObjectOf(job, "conditions"));
  const std::string source = MemberText(ObjectOf(job, "conditions"), "source");
  const bool has_conditions = source.empty()
                                  ? !ObjectOf(ObjectOf(job, "settings"), "conditions").empty()
                                  : source != "none";
  const Json& plan = ObjectOf(job, "plan");
  if (!plan.empty()) {
    line("plan",
         fmt::format("version {} ({})", MemberText(plan, "version"), MemberText(plan, "reason")));
    line("", MemberText(plan, "sentence"));
    if (HasFirstPlan(job)) {
      line("", fmt::format("a first plan; better ones are still being searched for ({})",
                           FormatPercent(100 * NumberOf(job, "progress").value_or(0), 0)));
    }
    const Json& whole = WholeJobOf(plan);
    const bool is_straggling = whole.value("straggling", Json()) == true;
    const std::string seconds = SecondsOf(whole, "iteration_time_s");
    line("iteration", seconds.empty()
                          ? seconds
                          : seconds + (has_conditions ? ", under the job's conditions" : "") +
                                (is_straggling ? ", as long as the straggler is slow" : ""));
    const std::string saving = SavingNow(job);
    if (!saving.empty() && NobodyFollows(job)) {
      line("saving", saving + ": no rank follows the plan");
    } else if (!IsBelievable(job)) {
      line("", fmt::format("{}: {}", kNotBelievable, kCorrectFirst));
    } else {
      line("saving", saving.empty() || !is_straggling
                         ? saving + IntervalOf(plan)
                         : saving + " against maximum clocks with the same straggler");
      const auto unlocked = UnlockedOf(plan);
      if (unlocked && !is_straggling) {
        const std::string iteration =
            fmt::format("{} and {}", FormatSeconds(unlocked->iteration_time_seconds),
                        FormatJoules(unlocked->energy_joules));
        line("unlocked", report::UnlockedText(*unlocked, iteration, "as its profile says"));
      }
    }
    const Json& pipelines = ObjectOf(plan, "pipelines");
    for (const auto& [pipeline, own] : pipelines.items()) {
      line("", fmt::format("pipeline {} is slow; at its usual speed, its plan would take {}",
                           Printable(pipeline), SecondsOf(own, "iteration_time_s")));
    }
    if (!pipelines.empty()) {
      line("", fmt::format("the plan of the others takes {}, and they wait for the rest",
                           SecondsOf(plan, "iteration_time_s")));
    }
  }
  const Json& frontier = ObjectOf(job, "frontier");
  if (!frontier.empty()) {
    line("frontier", fmt::format("{} (fastest) to {} (T*); {} at maximum clocks{}",
                                 SecondsOf(frontier, "fastest_s"), SecondsOf(frontier, "tstar_s"),
                                 SecondsOf(frontier, "baseline_s"),
                                 has_conditions ? "; on paper, without the conditions" : ""));
  }
  const Json& stragglers = ListOf(job, "stragglers");
  const long long slow = SlowPipelines(job);
  if (slow != static_cast<long long>(stragglers.size())) {
    line("slow",
         fmt::format("{}, reported {} times:", CountOf(slow, "pipeline"), stragglers.size()));
  }
  for (const Json& straggler : stragglers) {
    line("straggler", StragglerText(straggler, now_seconds));
  }
  if (MemberText(ObjectOf(job, "detection"), "mode") != "off") {
    text += DetectionText(ObjectOf(job, "detection"));
  }
  const Json& savings = ObjectOf(job, "savings");
  if (MemberText(savings, "kind") != "promised" || !ObjectOf(savings, "comparison").empty()) {
    text += SavingsText(savings);
  }
  const Json& measured = ObjectOf(job, "measured");
  if (!measured.empty()) {
    line(HasEnded(job) ? "last" : "now",
         fmt::format("{} an iteration, of each the slowest rank (median of the last {})",
                     SecondsOf(measured, "iteration_time_s"), MemberText(measured, "iterations")));
  }
  for (const Json& iterations : job.value("iterations", Json::array())) {
    line(
        "measured",
        fmt::format("version {}: {} reports of ranks; {} from a rank's begin to its end on average",
                    MemberText(iterations, "plan_version"), MemberText(iterations, "reports"),
                    SecondsOf(iterations, "mean_s")));
  }
  return text;
}

}  // namespace perseus::cli
