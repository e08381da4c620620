// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/cluster/job_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <ctime>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/cluster/json_values.h"
#include "cli/framework/table.h"
#include "common/belief.h"
#include "common/labels.h"
#include "common/printable.h"
#include "report/text.h"

namespace perseus::cli {

namespace {

using Json = nlohmann::ordered_json;

std::string WattsText(double watts, std::optional<double> error) {
  return error ? fmt::format("{:.1f} +- {:.1f}", watts, *error) : fmt::format("{:.1f}", watts);
}

// By clock: those of the highest and the lowest.
std::string ByClockText(const Json& rows) {
  std::map<double, std::map<double, std::string>> ranks;  // By clock.
  bool is_doubtful = false;
  for (const Json& row : rows) {
    const auto rank = NumberOf(row, "pp_rank");
    const auto mhz = NumberOf(row, "frequency");
    const auto watts = NumberOf(row, "power_w");
    if (!rank || !mhz || !watts) continue;
    ranks[*rank][*mhz] =
        fmt::format("{} W at {} MHz", WattsText(*watts, NumberOf(row, "power_std_w")), *mhz);
    is_doubtful = is_doubtful || row.value("doubtful", Json()) == true;
  }
  std::vector<std::string> texts;
  texts.reserve(ranks.size());
  for (const auto& [rank, clocks] : ranks) {
    texts.push_back(clocks.size() == 1
                        ? clocks.begin()->second
                        : fmt::format("{} to {}", clocks.rbegin()->second, clocks.begin()->second));
  }
  if (texts.empty()) return "";
  return fmt::format("{}, by rank of the pipeline{}", fmt::join(texts, "; "),
                     is_doubtful ? "; some clocks are doubtful" : "");
}

}  // namespace

std::string WaitingText(const Json& profiling) {
  std::string by_clock = ByClockText(ListOf(profiling, "waiting"));
  if (!by_clock.empty()) return by_clock;
  std::vector<std::string> texts;
  const Json& watts = ListOf(profiling, "blocking_power_w");
  const Json& errors = ListOf(profiling, "blocking_power_std_w");
  for (std::size_t i = 0; i < watts.size(); ++i) {
    if (!watts[i].is_number()) continue;
    const bool has_error = i < errors.size() && errors[i].is_number();
    texts.push_back(WattsText(watts[i].get<double>(),
                              has_error ? std::optional(errors[i].get<double>()) : std::nullopt));
  }
  if (texts.empty()) return "";
  return fmt::format("{} W, by rank of the pipeline; taken as constant over the clocks",
                     fmt::join(texts, ", "));
}

namespace {

using Json = nlohmann::ordered_json;

}  // namespace

// The cost of a sweep against the highest clock.
std::string SweepText(const Json& sweep) {
  const auto seconds = NumberOf(sweep, "seconds");
  if (!seconds) return "";
  const double extra_seconds = NumberOf(sweep, "extra_seconds").value_or(0);
  const double extra_joules = NumberOf(sweep, "extra_joules").value_or(0);
  return fmt::format("{} iterations, {} and {}; against maximum clocks {}{} and {}{}",
                     MemberText(sweep, "iterations"), FormatSeconds(*seconds),
                     FormatJoules(NumberOf(sweep, "joules").value_or(0)),
                     extra_seconds < 0 ? "" : "+", FormatSeconds(extra_seconds),
                     extra_joules < 0 ? "" : "+", FormatJoules(extra_joules));
}

namespace {

using Json = nlohmann::ordered_json;

// "job j-1f2e, measured on 2026-11-27 08:10 UTC".
std::string FromText(const Json& from) {
  const std::string day = DayText(from, "at");
  return fmt::format("job {}{}", MemberText(from, "job"),
                     day.empty() ? std::string() : fmt::format(", measured on {} UTC", day));
}

std::string PlannedText(const std::string& source, const Json& from) {
  if (source == "library") return fmt::format("those from {}", FromText(from));
  if (source == "assumed") return "values that are assumed until the ranks have measured enough";
  if (source == "measured") return "what was measured";
  if (source == "given") return "what the settings give";
  return "no noise, and clocks that come at once";
}

std::string FigureName(const std::string& name) {
  if (name == "rank_noise") return "noise of a rank";
  if (name == "noise_correlation") return "correlation";
  if (name == "rare_noise") return "rare computations take longer by";
  if (name == "rare_noise_share") return "their share";
  if (name == "switch_latency") return "latency";
  if (name == "switch_stall") return "pause when the clock changes";
  return name == "switch_latency_spread" ? "its spread" : name;
}

std::string FigureText(const std::string& name, double value) {
  if (name == "noise_correlation") return fmt::format("{:.2f}", value);
  constexpr double kMilli = 1e-3;
  return name.rfind("switch_", 0) == 0 ? fmt::format("{:.1f} ms", value / kMilli)
                                       : FormatPercent(100 * value, 2);
}

// "0.30 ms", or "0.10 to 0.40 ms".
std::string MillisecondsText(const std::vector<double>& seconds) {
  const auto [least, most] = std::minmax_element(seconds.begin(), seconds.end());
  const std::string low = fmt::format("{:.2f}", 1e3 * *least);
  const std::string high = fmt::format("{:.2f}", 1e3 * *most);
  return low == high ? low + " ms" : low + " to " + high + " ms";
}

std::string TransfersText(const Json& transfers) {
  std::vector<double> measured;
  std::vector<double> planned;
  for (const Json& transfer : transfers) {
    if (const auto seconds = NumberOf(transfer, "measured_s")) measured.push_back(*seconds);
    planned.push_back(NumberOf(transfer, "planned_s").value_or(0));
  }
  if (planned.empty()) return "";
  return Line("", fmt::format("transfers between stages: {}; planned for {}",
                              measured.empty() ? std::string("not measured")
                                               : fmt::format("{} (at {} of {} boundaries)",
                                                             MillisecondsText(measured),
                                                             measured.size(), planned.size()),
                              MillisecondsText(planned)));
}

// The clocks whose calls are planned to take another time than `planned_for_all`.
std::string LatenciesText(const Json& latencies, std::optional<double> planned_for_all) {
  std::string text;
  for (const Json& each : latencies) {
    const double planned = NumberOf(each, "planned_s").value_or(0);
    if (planned == planned_for_all) continue;
    text += fmt::format("{}{} MHz {:.1f} ms", text.empty() ? "" : ", ",
                        MemberText(each, "clock_mhz"), 1e3 * planned);
  }
  return text.empty() ? text
                      : Line("", "clocks that are planned with a latency of their own: " + text);
}

}  // namespace

std::string ConditionsText(const Json& conditions) {
  const std::string source = MemberText(conditions, "source");
  const bool has_calls = NumberOf(conditions, "calls").value_or(0) > 0;
  const bool is_measured = has_calls || NumberOf(conditions, "iterations").value_or(0) > 0;
  if (source.empty() || (source == "none" && !is_measured)) return "";
  const std::string seen = is_measured ? fmt::format("measured in {} iterations and {} clock calls",
                                                     MemberText(conditions, "iterations"),
                                                     MemberText(conditions, "calls"))
                                       : std::string("not measured yet");
  std::string text = Line("conditions", seen + "; plans are made for " +
                                            PlannedText(source, ObjectOf(conditions, "from")));
  for (const Json& figure : ListOf(conditions, "figures")) {
    const std::string name = MemberText(figure, "name");
    const double planned = NumberOf(figure, "planned").value_or(0);
    const std::optional<double> measured = NumberOf(figure, "measured");
    if (!measured && planned == 0) continue;
    text += Line(
        "",
        fmt::format(
            "{}: {}{}", FigureName(name),
            measured
                ? fmt::format("{} +- {} (by {})", FigureText(name, *measured),
                              FigureText(name, NumberOf(figure, "measured_std").value_or(0)),
                              CountOf(static_cast<long long>(NumberOf(figure, "ranks").value_or(0)),
                                      "rank"))
                : std::string("not measured"),
            source == "none"
                ? std::string()
                : fmt::format("; planned for {}{}", FigureText(name, planned),
                              MemberText(figure, "assumed") == "true"   ? " (assumed)"
                              : MemberText(figure, "library") == "true" ? " (by that job)"
                                                                        : "")));
  }
  std::optional<double> latency;
  for (const Json& figure : ListOf(conditions, "figures")) {
    if (MemberText(figure, "name") == "switch_latency") latency = NumberOf(figure, "planned");
  }
  text += LatenciesText(ListOf(conditions, "latency_at"), latency);
  const Json& from = ObjectOf(conditions, "from");
  if (source == "measured" && !from.empty()) {
    text += Line("", fmt::format("the first plans were made for those from {}", FromText(from)));
  }
  text += TransfersText(ListOf(conditions, "transfers"));
  if (conditions.value("changing", Json()) == true) {
    text += Line("", "plans for what was measured are being made");
  }
  return text;
}

std::string KeptConditionsText(const Json& kept) {
  if (kept.empty()) return "";
  std::string text =
      Line("conditions", fmt::format("from {}, in {} iterations and {} clock calls", FromText(kept),
                                     MemberText(kept, "iterations"), MemberText(kept, "calls")));
  for (const Json& figure : ListOf(kept, "figures")) {
    const std::string name = MemberText(figure, "name");
    text += Line("", fmt::format("{}: {} +- {}", FigureName(name),
                                 FigureText(name, NumberOf(figure, "measured").value_or(0)),
                                 FigureText(name, NumberOf(figure, "measured_std").value_or(0))));
  }
  return text;
}

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

// The common text of complaints that differ in numbers or names of GPUs alone.
std::string KindOf(const std::string& complaint) {
  std::istringstream words(complaint);
  std::string kind;
  for (std::string word; words >> word;) {
    if (word.find_first_of("0123456789") == std::string::npos) kind += word + ' ';
  }
  return kind;
}

// The ranks' complaints: each kind once, with its ranks.
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
      const auto default_clocks = DefaultClocksOf(plan);
      if (default_clocks && !is_straggling) {
        const std::string iteration =
            fmt::format("{} and {}", FormatSeconds(default_clocks->iteration_time_seconds),
                        FormatJoules(default_clocks->energy_joules));
        line("default",
             report::DefaultClocksText(*default_clocks, iteration, "as its profile says"));
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
                                 has_conditions ? "; without the conditions" : ""));
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
  if (MemberText(savings, "kind") != "predicted" || !ObjectOf(savings, "comparison").empty()) {
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

namespace {

using Json = nlohmann::ordered_json;

// "state      j-1f2e llama".
std::string LineStart(const std::string& what, const std::string& id, const std::string& name) {
  return fmt::format("{:<10} {}{}{}", Printable(what), id, name.empty() ? "" : " ", name);
}

// "1 of 4 have"; empty where the server does not say.
std::string HowManyHave(const Json& job, const char* key) {
  const std::string count = MemberText(job, key);
  const std::string all = MemberText(job, "world_size");
  return count.empty() || all.empty() ? "" : fmt::format(" ({} of {} have)", count, all);
}

std::string AwaitedText(const Json& job) {
  const std::string state = MemberText(job, "state");
  if (state == "finished") return "nothing: the job has finished; deleting it ends this";
  if (HasEnded(job)) return "its trainers have ended; finishing or deleting it is next";
  if (state == "registering") {
    return "waits for its ranks to register" + HowManyHave(job, "ranks_registered");
  }
  if (state == "profiling") {
    return "waits for its ranks to measure" + HowManyHave(job, "ranks_measured");
  }
  if (state == "characterizing") return "waits for its first plan, which is being made";
  if (state == "failed") return "has no plan; waits until somebody sees to it";
  if (HasFirstPlan(job)) return "trains; waits for better plans, which are being searched for";
  return "trains; waits for other plans, for stragglers and for findings";
}

}  // namespace

std::string AwaitedLine(const Json& job) {
  return fmt::format("{}: {}\n", LineStart("next", MemberText(job, "id"), MemberText(job, "name")),
                     AwaitedText(job));
}

std::string EventText(const std::string& name, const std::string& data) {
  return fmt::format("{} {}\n", Printable(name), JsonText(data));
}

std::string JsonText(const std::string& text) {
  const Json json = Json::parse(text, nullptr, false);
  return json.is_discarded() ? Printable(text) : json.dump(-1, ' ', /*ensure_ascii=*/true);
}

std::string EventLine(const std::string& name, const Json& data, const Json& job) {
  const auto part = [](const std::string& before, const std::string& value) {
    return value.empty() ? "" : before + value;
  };
  std::string id = MemberText(data, "job");
  if (id.empty()) id = MemberText(data, "id");
  std::string text = LineStart(name, id, MemberText(job, "name"));
  if (data.value("deleted", Json()) == true) return text + ": deleted\n";
  text += part(": ", MemberText(data, "sentence"));
  text += part(": straggler ", MemberText(data, "straggler_id"));
  if (name == "job" && data.contains("labels")) {  // They changed.
    const std::string labels = LabelsOf(data);
    text += labels.empty() ? ": has no labels" : ": labels " + labels;
  }
  text += part(": ", MemberText(job, "state"));
  text += part(", ", MemberText(job, "reason"));
  const Json& plan = ObjectOf(job, "plan");
  if (plan.empty()) return text + "\n";
  text += fmt::format(", plan {} ({})", MemberText(plan, "version"), MemberText(plan, "reason"));
  text += part(", iteration ", SecondsOf(WholeJobOf(plan), "iteration_time_s"));
  text += part(", saving ", SavingNow(job));
  if (const long long slow = SlowPipelines(job); slow > 0) {
    text += ", " + CountOf(slow, "slow pipeline");
  }
  return text + "\n";
}

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

// Reasons to doubt a measured saving.
std::string DoubtText(const Json& measured, const Json& blocks) {
  constexpr double kLonger = 4;  // Times.
  if (!NumberOf(ObjectOf(measured, "saving_percent"), "mean")) return "";
  std::string text;
  const std::string settling = MemberText(measured, "settling");
  const double every = kLonger * NumberOf(blocks, "every").value_or(0);
  const double iterations = kLonger * NumberOf(blocks, "iterations").value_or(0);
  if (settling == "goes_on") {
    text = Line("", "a change of clocks still acts at the end of a phase, so this is biased") +
           Line("", "if that is still so after 8 pairs, the server makes phases twice as long");
  } else if (settling == "unknown") {
    text = Line("", "phases are too short to show effects that grow slowly, such as heat");
    if (iterations > 0) {
      text += Line("", fmt::format("to be sure, compare with --every {:.0f} --iterations {:.0f}",
                                   every, iterations));
    }
  }
  if (MemberText(measured, "agrees") == "false") {
    text += Line("", "DISAGREES with what is predicted: docs/how-to/savings.md says what to do");
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
  const Json& predicted = ObjectOf(savings, "predicted");
  if (!IsBelievable(predicted)) {
    text += Line("predicted", fmt::format("{}; perseus job show says why", kNotBelievable));
  } else if (const auto saving = NumberOf(predicted, "saving_percent")) {
    text +=
        Line(is_estimated ? "ESTIMATED" : "predicted",
             fmt::format("saving {}, slowdown {}, against an iteration at maximum clocks{}",
                         FormatPercent(*saving, 2),
                         FormatSignedPercent(NumberOf(predicted, "time_percent").value_or(0), 2),
                         is_estimated ? ": what would be saved; in shadow mode nothing is" : ""));
    if (const auto default_clocks = DefaultClocksOf(predicted)) {
      text +=
          Line("", fmt::format("saving {}, slowdown {}, against one at default clocks, which is "
                               "what a comparison measures",
                               FormatPercent(default_clocks->saving_percent, 2),
                               FormatSignedPercent(default_clocks->slowdown_percent, 2)));
    } else if (MemberText(savings, "baseline") == "default_clocks" && !is_estimated) {
      text += Line("",
                   "iterations at default clocks are not measured: where GPUs boost or are capped, "
                   "the saving "
                   "against it differs");
    }
  }
  const std::string measured = SecondsOf(savings, "measured_at_maximum_s");
  if (is_estimated && !measured.empty()) {
    text += Line("measured", measured + " an iteration at default clocks");
  }
  const Json& blocks = ObjectOf(savings, "comparison");
  if (!blocks.empty()) {
    text += Line("comparison",
                 fmt::format("of every {} iterations {} run at default clocks",
                             MemberText(blocks, "every"), MemberText(blocks, "iterations")));
  }
  if (blocks.empty() && ListOf(savings, "measured").empty() && !is_estimated) {
    text += Line("measured", "nothing was measured; compare with --every N --iterations M");
  }
  for (const Json& measured : ListOf(savings, "measured")) {
    text +=
        Line("measured",
             fmt::format("plan {}, {} pairs: saving {}, slowdown {}",
                         MemberText(measured, "plan_version"), MemberText(measured, "pairs"),
                         EstimateText(ObjectOf(measured, "saving_percent"), FormatPercent),
                         EstimateText(ObjectOf(measured, "time_percent"), FormatSignedPercent)));
    text += DoubtText(measured, blocks);
  }
  return text;
}

}  // namespace perseus::cli
