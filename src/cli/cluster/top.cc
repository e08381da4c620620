// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <limits>
#include <nlohmann/json.hpp>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "cli/cluster/flags.h"
#include "cli/cluster/job_text.h"
#include "cli/cluster/json_values.h"
#include "cli/cluster/server_client.h"
#include "cli/commands.h"
#include "cli/framework/table.h"
#include "cli/framework/terminal.h"
#include "cli/framework/value_parsers.h"
#include "common/json_text.h"
#include "common/printable.h"

namespace perseus::cli {

// Whether jobs can be sorted by it.
bool IsTopOrder(std::string_view order);

// Sorts a list of jobs as the server told it. Jobs without the figure come last.
void SortJobs(std::string_view order, nlohmann::ordered_json* jobs);

// One table of jobs, in their order. `now_seconds`: time of day; figures of iterations that ended
// long before are left out. `most_rows`: jobs beyond are counted in a line of their own.
std::string TopTable(const nlohmann::ordered_json& jobs, const Style& style, double now_seconds,
                     std::size_t most_rows = std::numeric_limits<std::size_t>::max());

void AddTopCommand(CommandParser* parser, Invocation* invocation) {
  TopFlags* flags = &invocation->top;
  parser->AddCommand(
      "top",
      "Show all jobs of a server in one table: what they draw, and what they save.\n\nOn a "
      "terminal the table is drawn anew every two seconds, until Ctrl-C. Elsewhere it is printed "
      "once. Time and watts are those of the last iterations that the ranks reported; they are "
      "empty while nobody reports. \"saved\" is what a comparison at default clocks measured "
      "(perseus job compare), \"predicted\" what the plan predicts. The server is that of "
      "--server, else of PERSEUS_SERVER, else http://127.0.0.1:7787. The token is in the file of "
      "--token-file, else of PERSEUS_TOKEN_FILE.",
      {{"what draws most", "perseus top"},
       {"what is furthest from its plan, for a script", "perseus top --once --json --sort late"}});
  parser->SetGroup("Which, and in which order");
  parser->AddText(
      "--sort", "BY",
      "watts (default), late (time now against predicted), saved, predicted, stragglers, name or "
      "state. The greatest comes first; names and states are sorted by the alphabet.",
      [flags](const std::string& text) -> Result<void> {
        if (!IsTopOrder(text)) {
          return InvalidInput("expected watts, late, saved, predicted, stragglers, name or state");
        }
        flags->sort = text;
        return {};
      },
      {ValueKind::kChoice, {"watts", "late", "saved", "predicted", "stragglers", "name", "state"}});
  AddLabelOption(parser, &flags->labels, "Only jobs with this label, as team=vision.");
  parser->AddFlag(&flags->all, "--all", "Finished jobs, too.");
  parser->SetGroup("Output");
  parser->AddFlag(&flags->once, "--once", "Print the table once.");
  parser->AddValue<double>(
      &flags->every_seconds, "--every", "TIME",
      "Print it again after this time, from 200ms to an hour (default on a terminal: 2s).",
      [](std::string_view text) -> Result<double> {
        Result<double> seconds = ParseLongDuration(text);
        if (!seconds || (*seconds >= 0.2 && *seconds <= 3600)) return seconds;
        return InvalidInput("expected a time from 200ms to 1h");
      });
  parser->AddFlag(&flags->json, "--json",
                  "Print the jobs as the server lists them, in this order: a line of JSON.");
  AddServerOptions(parser, &flags->server);
}

namespace {

using Json = nlohmann::ordered_json;

std::optional<double> TimeNow(const Json& job) {
  return NumberOf(ObjectOf(job, "measured"), "iteration_time_s");
}

std::optional<double> TimePredicted(const Json& job) {
  return NumberOf(WholeJobOf(ObjectOf(job, "plan")), "iteration_time_s");
}

std::optional<double> LateShare(const Json& job) {
  const auto now = TimeNow(job);
  const auto predicted = TimePredicted(job);
  if (!now || !predicted || *predicted <= 0) return std::nullopt;
  return *now / *predicted - 1;
}

struct TopOrder {
  std::string_view name;
  std::optional<double> (*figure)(const Json& job);  // Null: by text,
  const char* text;                                  // that of this member.
};

constexpr std::array<TopOrder, 7> kTopOrders = {
    {{"watts", [](const Json& job) { return NumberOf(ObjectOf(job, "measured"), "power_w"); },
      nullptr},
     {"late", LateShare, nullptr},
     {"saved", [](const Json& job) { return NumberOf(ObjectOf(job, "measured_saving"), "mean"); },
      nullptr},
     {"predicted",
      [](const Json& job) { return NumberOf(WholeJobOf(ObjectOf(job, "plan")), "saving_percent"); },
      nullptr},
     {"stragglers", [](const Json& job) { return std::optional<double>(SlowPipelines(job)); },
      nullptr},
     {"name", nullptr, "name"},
     {"state", nullptr, "state"}}};

const TopOrder* TopOrderNamed(std::string_view name) {
  const auto* const found = std::find_if(kTopOrders.begin(), kTopOrders.end(),
                                         [&](const TopOrder& each) { return each.name == name; });
  return found == kTopOrders.end() ? nullptr : found;
}

// Whether the last iteration ended a moment ago, as measured in iterations.
bool IsFresh(const Json& measured, double now_seconds) {
  constexpr double kLeastSeconds = 120;
  constexpr double kIterations = 20;
  const auto at = NumberOf(measured, "at");
  const auto seconds = NumberOf(measured, "iteration_time_s");
  return at && now_seconds - *at < std::max(kLeastSeconds, kIterations * seconds.value_or(0));
}

std::string ShownName(const Json& job) {
  constexpr std::size_t kWidestName = 24;
  const std::string name = MemberText(job, "name");
  return CutTo(kWidestName, name.empty() ? MemberText(job, "id") : name, "\u2026");
}

std::string FigureOrNothing(std::optional<double> value, int decimals) {
  return value ? WithThousands(*value, decimals) : "";
}

// Nothing where there is nothing to look at.
std::string CountIfAny(const Json& job, const char* key) {
  const auto count = NumberOf(job, key);
  return count && *count > 0 ? CountText(job[key]) : "";
}

}  // namespace

bool IsTopOrder(std::string_view order) { return TopOrderNamed(order) != nullptr; }

void SortJobs(std::string_view order, Json* jobs) {
  const TopOrder* const chosen = TopOrderNamed(order);
  if (chosen == nullptr) return;
  std::vector<std::pair<std::optional<double>, Json>> rows;
  rows.reserve(jobs->size());
  for (Json& job : *jobs) {
    rows.emplace_back(chosen->figure == nullptr ? std::nullopt : chosen->figure(job),
                      std::move(job));
  }
  std::stable_sort(rows.begin(), rows.end(), [&](const auto& a, const auto& b) {
    if (chosen->figure != nullptr) return a.first > b.first;
    return MemberText(a.second, chosen->text) < MemberText(b.second, chosen->text);
  });
  *jobs = Json::array();
  for (auto& row : rows) jobs->push_back(std::move(row.second));
}

std::string TopTable(const Json& jobs, const Style& style, double now_seconds,
                     std::size_t most_rows) {
  if (jobs.empty()) return "The server has no unfinished job; --all shows finished ones, too.\n";
  Table table({"job", "state", "ranks", "now s", "predicted s", "watts", "saved", "predicted",
               "slow", "errors"},
              {Align::kLeft, Align::kLeft, Align::kRight, Align::kRight, Align::kRight,
               Align::kRight, Align::kRight, Align::kRight, Align::kRight, Align::kRight});
  double watts = 0;
  std::size_t rows = 0;
  for (const Json& job : jobs) {
    const Json& measured = ObjectOf(job, "measured");
    const bool is_fresh = !HasEnded(job) && IsFresh(measured, now_seconds);
    const auto power = is_fresh ? NumberOf(measured, "power_w") : std::nullopt;
    watts += power.value_or(0);
    if (++rows > most_rows) continue;
    const long long slow = SlowPipelines(job);
    const Json& measured_saving = ObjectOf(job, "measured_saving");
    const auto saved = NumberOf(measured_saving, "mean");
    // The plan that is predicted beside it may be a newer one.
    const bool is_older = saved && NumberOf(measured_saving, "plan_version") !=
                                       NumberOf(ObjectOf(job, "plan"), "version");
    table.AddRow(
        {ShownName(job), StateOf(job),
         fmt::format("{}/{}", MemberText(job, "ranks_registered"), MemberText(job, "world_size")),
         is_fresh ? FigureOrNothing(TimeNow(job), 4) : "", FigureOrNothing(TimePredicted(job), 4),
         FigureOrNothing(power, 0),
         saved ? FormatPercent(*saved, 2) + (is_older ? " (older plan)" : "") : "", SavingNow(job),
         slow > 0 ? std::to_string(slow) : "", CountIfAny(job, "complaining")});
  }
  const std::string beyond = rows > most_rows ? fmt::format("and {} more\n", rows - most_rows) : "";
  return fmt::format("{}, {} measured\n\n{}{}", CountOf(static_cast<long long>(jobs.size()), "job"),
                     FormatWatts(watts), table.Format(style.rule()), beyond);
}

namespace {

using Json = nlohmann::ordered_json;

constexpr double kTerminalSeconds = 2;
// The lines of the screen that are no jobs: count, header, rule, what is beyond, and the cursor's.
constexpr int kOtherLines = 7;

class Top {
 public:
  Top(ServerClient client, const TopFlags& flags, const Style& style)
      : client_(std::move(client)), flags_(flags), style_(style) {}

  Result<Printout> Run() {
    const std::optional<double> pause = Pause();
    if (!pause) {
      const Result<Json> jobs = Jobs();
      if (!jobs) return tl::unexpected(jobs.error());
      return Printout(Shown(*jobs, false));
    }
    std::string text;  // As it was last.
    while (HasReader()) {
      const Result<Json> jobs = Jobs();
      const bool is_gone = !jobs && jobs.error().code == ErrorCode::kIo && !text.empty();
      if (!jobs && !is_gone) return tl::unexpected(jobs.error());
      if (jobs) text = Shown(*jobs, IsDrawn());
      const Result<bool> shown =
          WriteStandardOutput(Framed(text, jobs ? "" : jobs.error().message));
      if (!shown) return tl::unexpected(shown.error());
      if (!*shown) break;
      std::this_thread::sleep_for(std::chrono::duration<double>(*pause));
    }
    return Printout("");
  }

 private:
  // Over what was there, on a terminal that takes that.
  bool IsDrawn() const { return style_.color && !flags_.json; }

  // Between two tables; none: there is only one.
  std::optional<double> Pause() const {
    if (flags_.once) return std::nullopt;
    if (flags_.every_seconds) return flags_.every_seconds;
    return IsDrawn() ? std::optional(kTerminalSeconds) : std::nullopt;
  }

  // Without the finished ones, of which there may be thousands, unless they are asked for.
  Result<Json> Jobs() {
    std::vector<std::string> filters = {""};
    if (!flags_.all) filters.assign(kUnfinishedStates.begin(), kUnfinishedStates.end());
    Json jobs = Json::array();
    std::set<std::string> seen;  // A job may change its state between two questions.
    for (const std::string& state : filters) {
      const Result<Json> found =
          client_.Jobs(ServerClient::Filter("state", state) +
                       ServerClient::Filter("label", LabelFilter(flags_.labels)));
      if (!found) return tl::unexpected(found.error());
      for (const Json& job : found->at("jobs")) {
        if (seen.insert(job.value("id", std::string())).second) jobs.push_back(job);
      }
    }
    SortJobs(flags_.sort, &jobs);
    return jobs;
  }

  std::string Shown(const Json& jobs, bool fits_screen) const {
    if (flags_.json) return JsonText(FormatCompact(Json{{"jobs", jobs}})) + "\n";
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    const double now_seconds = std::chrono::duration<double>(now).count();
    if (!fits_screen) return TopTable(jobs, style_, now_seconds);
    return TopTable(jobs, style_, now_seconds,
                    static_cast<std::size_t>(std::max(style_.rows - kOtherLines, 1)));
  }

  // `why_gone`: empty, or why there is no newer table.
  std::string Framed(const std::string& text, const std::string& why_gone) {
    if (why_gone.empty()) gone_since_.reset();
    if (!why_gone.empty() && !gone_since_) gone_since_ = std::time(nullptr);
    const std::string note =
        gone_since_ ? fmt::format("The server is gone since {:%H:%M:%S}: {}. This is how it was.\n",
                                  fmt::localtime(*gone_since_), Printable(why_gone))
                    : "";
    if (IsDrawn()) return fmt::format("\x1b[H\x1b[2J{}{}", note, text);
    if (!note.empty()) WriteStandardError(note);
    return note.empty() ? text + (flags_.json ? "" : "\n") : "";
  }

  ServerClient client_;
  const TopFlags& flags_;
  const Style& style_;
  std::optional<std::time_t> gone_since_;
};

}  // namespace

Result<Printout> RunTop(const TopFlags& flags, const Style& style) {
  if (flags.once && flags.every_seconds) {
    return InvalidInput("--once and --every exclude each other: give one of them");
  }
  Result<ServerClient> client = ServerClient::Connect(flags.server);
  if (!client) return tl::unexpected(client.error());
  return Top(*std::move(client), flags, style).Run();
}

}  // namespace perseus::cli
