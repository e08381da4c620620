// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/cluster/event_text.h"
#include "cli/cluster/findings_text.h"
#include "cli/cluster/job_client_flags.h"
#include "cli/cluster/job_text.h"
#include "cli/cluster/job_values.h"
#include "cli/cluster/server_client.h"
#include "cli/cluster/server_events.h"
#include "cli/cluster/settings_json.h"
#include "cli/commands.h"
#include "cli/framework/table.h"
#include "cli/framework/terminal.h"
#include "common/file.h"
#include "common/json_text.h"
#include "common/numbers.h"
#include "common/printable.h"
#include "http/client.h"
#include "http/target.h"
#include "perseus/job.h"
#include "wire/routes.h"

namespace perseus::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMostProfileBytes = std::size_t{256} << 20;

double SecondsNow() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

class JobClient {
 public:
  JobClient(ServerClient client, const JobClientFlags& flags, const Style& style)
      : client_(std::move(client)), flags_(flags), style_(style) {}

  Result<Printout> List() {
    const Result<Json> found = client_.Jobs(
        Filter("state", flags_.state) + Filter("name", flags_.name) +
            Filter("client_key", flags_.client_key) + Filter("label", LabelFilter(flags_.labels)),
        flags_.limit.value_or(std::numeric_limits<int>::max()));
    if (!found) return tl::unexpected(found.error());
    if (flags_.json) return JsonText(FormatCompact(*found)) + "\n";
    const bool is_filtered =
        !(flags_.state + flags_.name + flags_.client_key).empty() || !flags_.labels.empty();
    if (found->at("jobs").empty() && is_filtered) {
      return Printout(
          "The server has no job like that (--state, --name, --label, --client-key).\n");
    }
    return JobTable(found->at("jobs"), style_);
  }

  Result<Printout> Show(const std::string& job) { return Job("GET", job, ""); }
  Result<Printout> Finish(const std::string& job) { return Job("POST", job, "/finish"); }

  Result<Printout> Point(const std::string& job, const std::string& at) {
    if (at.empty()) {
      return InvalidInput("the target is missing, as in 'perseus job point JOB 1.05x'");
    }
    return Job("PUT", job, "/point", Json{{"at", at}});
  }

  Result<Printout> Label(const std::string& job) {
    if (flags_.labels.empty() && flags_.gone_labels.empty()) {
      return InvalidInput("the labels are missing, as in 'perseus job label JOB team=vision'");
    }
    Json changes = Json::object();
    for (const auto& [name, value] : flags_.labels) changes[name] = value;
    for (const std::string& name : flags_.gone_labels) changes[name] = nullptr;
    return Job("PUT", job, "/labels", Json{{"labels", std::move(changes)}});
  }

  // Has the ranks measure anew, or (--off) no more.
  Result<Printout> Reprofile(const std::string& job) {
    return Job(flags_.off ? "DELETE" : "POST", job, "/reprofile");
  }

  Result<Printout> Delete(const std::string& job) {
    const Result<std::string> path = Path(job);
    if (!path) return tl::unexpected(path.error());
    if (!flags_.yes && !Confirm(fmt::format("Delete {}, with its plans and all that was measured?",
                                            Printable(job)))) {
      return Printout("Nothing is deleted.\n");
    }
    const Result<std::string> text = Text("DELETE", *path);
    if (!text) return tl::unexpected(text.error());
    return fmt::format("{} is deleted.\n", job);
  }

  Result<Printout> Create(const std::string& file) {
    const Result<JobFile> settings = ReadJobFile(file);
    if (!settings) return tl::unexpected(settings.error());
    if (settings->work && !settings->work->file.empty()) {
      return InvalidInput(fmt::format(
          "{}: a server reads no work table; give 'work' as an array with a factor for each "
          "microbatch",
          file));
    }
    Json request = {{"name", flags_.name}, {"job", SettingsJson(*settings)}};
    if (!flags_.labels.empty()) request["labels"] = flags_.labels;
    if (!flags_.client_key.empty()) request["client_key"] = flags_.client_key;
    if (!flags_.model.empty()) request["job"]["model"] = flags_.model;
    if (flags_.no_reuse) request["job"]["reuse_profile"] = false;
    if (settings->schedule_file) {
      Result<std::string> schedule = ReadWholeFile(*settings->schedule_file, kMostProfileBytes);
      if (!schedule) return tl::unexpected(schedule.error());
      request["job"]["schedule_csv"] = *std::move(schedule);
    }
    if (settings->profile) {
      Result<std::string> profile = ReadWholeFile(*settings->profile, kMostProfileBytes);
      if (!profile) return tl::unexpected(profile.error());
      request["profile_csv"] = *std::move(profile);
    }
    int status = 0;
    const Result<std::string> text = Text("POST", "/api/v1/jobs", FormatCompact(request), &status);
    if (!text) return tl::unexpected(text.error());
    if (flags_.json) return JsonText(*text) + "\n";
    const Json job = Parsed(*text);
    constexpr int kCreated = 201;
    return (status == kCreated ? "" : KnownJobText(job, flags_.labels)) +
           JobText(job, style_, SecondsNow());
  }

  Result<Printout> SetStraggler(const std::string& job) {
    Json request = Json::object();
    if (flags_.pipeline) request["pipeline"] = *flags_.pipeline;
    if (flags_.rank) request["rank"] = *flags_.rank;
    if (!flags_.node.empty()) request["node"] = flags_.node;
    if (flags_.factor) request["factor"] = *flags_.factor;
    if (flags_.delay_seconds) request["delay_s"] = *flags_.delay_seconds;
    if (flags_.starts_seconds) request["starts_s"] = *flags_.starts_seconds;
    if (flags_.expires_seconds) request["expires_s"] = *flags_.expires_seconds;
    const Result<std::string> path = Path(job);
    if (!path) return tl::unexpected(path.error());
    const Result<std::string> text = Text("POST", *path + "/stragglers", FormatCompact(request));
    if (!text) return tl::unexpected(text.error());
    if (flags_.json) return JsonText(*text) + "\n";
    const Json answer = Parsed(*text);
    std::string note;
    if (flags_.delay_seconds) {
      // Whatever comes of it, the straggler is set.
      const Result<std::string> shown = Text("GET", *path);
      if (shown) note = LongDelayText(*flags_.delay_seconds, Parsed(*shown));
    }
    return fmt::format("Straggler {} is known; the plan is version {}.\n{}",
                       answer.value("straggler_id", 0), answer.value("plan_version", 0), note);
  }

  Result<Printout> ClearStraggler(const std::string& job, const std::string& number) {
    const Result<std::string> path = Path(job);
    if (!path) return tl::unexpected(path.error());
    const std::string one = number.empty() ? "" : "/" + http::PercentEncoded(number);
    const Result<std::string> text = Text("DELETE", *path + "/stragglers" + one);
    if (!text) return tl::unexpected(text.error());
    return number.empty() ? "All stragglers are cleared.\n"
                          : fmt::format("Straggler {} is cleared.\n", number);
  }

  // Shows what is found, or changes how.
  Result<Printout> Detection(const std::string& job) {
    Json request = Json::object();
    if (!flags_.mode.empty()) request["mode"] = flags_.mode;
    if (flags_.threshold) request["threshold"] = *flags_.threshold;
    if (flags_.window) request["window"] = *flags_.window;
    const Result<std::string> path = Path(job);
    if (!path) return tl::unexpected(path.error());
    if (!request.empty()) {
      const auto set = Text("PUT", *path + "/detection", FormatCompact(request));
      if (!set) return tl::unexpected(set.error());
    }
    const Result<std::string> text = Text("GET", *path + "/detection");
    if (!text) return tl::unexpected(text.error());
    return flags_.json ? JsonText(*text) + "\n" : DetectionText(Parsed(*text));
  }

  // Shows what was measured, or changes what is compared.
  Result<Printout> Compare(const std::string& job) {
    const bool sets = flags_.every || flags_.iterations;
    if (sets && (flags_.off || !flags_.every || !flags_.iterations)) {
      return InvalidInput("give --every and --iterations together, or --off alone");
    }
    const Result<std::string> path = Path(job);
    if (!path) return tl::unexpected(path.error());
    if (sets || flags_.off) {
      const Json request = {{"every", flags_.every.value_or(0)},
                            {"iterations", flags_.iterations.value_or(0)}};
      const auto set = flags_.off ? Text("DELETE", *path + "/comparison")
                                  : Text("PUT", *path + "/comparison", FormatCompact(request));
      if (!set) return tl::unexpected(set.error());
    }
    const Result<std::string> text = Text("GET", *path + "/savings");
    if (!text) return tl::unexpected(text.error());
    if (flags_.json) return JsonText(*text) + "\n";
    return (flags_.off ? "Nothing is compared any more.\n" : "") + SavingsText(Parsed(*text));
  }

  Result<Printout> Export(const std::string& job) {
    const Result<std::string> path = Path(job);
    if (!path) return tl::unexpected(path.error());
    const Result<std::string> text = Text(
        "GET", flags_.frontier
                   ? *path + "/frontier"
                   : fmt::format("{}/plan.json?pipeline={}", *path, flags_.pipeline.value_or(0)));
    if (!text || flags_.output_file.empty()) return text;
    if (const auto written = WriteFileAtomically(flags_.output_file, *text); !written) {
      return tl::unexpected(written.error());
    }
    return Printout(fmt::format("Written to {}.\n", flags_.output_file), flags_.output_file);
  }

  // Prints what happens until the job is deleted: on a terminal the state anew each time, elsewhere
  // a line of text, with --json the events as they came. Text says what comes next, too: else
  // nobody could tell whether it works while nothing happens.
  Result<Printout> Watch(const std::string& job) {
    std::string path = "/api/v1";
    if (!job.empty()) {
      const Result<std::string> found = Path(job);
      if (!found) return tl::unexpected(found.error());
      path = *found;
    }
    Result<ServerEvents> events =
        ServerEvents::Open(&client_, path + "/events", job.empty() ? "/healthz" : path);
    if (!events) return tl::unexpected(events.error());
    if (job.empty() && !flags_.json) {
      const auto goes_on = SayWhetherThereAreJobs();
      if (!goes_on) return tl::unexpected(goes_on.error());
      if (!*goes_on) return Printout{};
    }
    while (true) {
      const Result<std::optional<http::Event>> next = events->Next(HasReader);
      if (!next) return tl::unexpected(next.error());
      const std::optional<http::Event>& event = *next;
      if (!event) return Printout{};
      const Result<std::string> text = WatchText(*event, path, job.empty());
      if (!text && text.error().code == ErrorCode::kIo)
        continue;  // It will be said that it is gone.
      if (!text) return tl::unexpected(text.error());
      const Result<bool> shown = WriteStandardOutput(*text);
      if (!shown) return tl::unexpected(shown.error());
      if (!*shown) return Printout{};
      const Json data = Parsed(event->data);
      if (!job.empty() && data.value("deleted", false)) return Printout{};
    }
  }

 private:
  // False: nobody reads it. Of jobs that are there, the server tells at once.
  Result<bool> SayWhetherThereAreJobs() {
    const Result<Json> found = client_.Jobs("", 1);
    if (!found) return tl::unexpected(found.error());
    if (!found->at("jobs").empty()) return true;
    return WriteStandardOutput("The server has no jobs; one that is created is shown here.\n");
  }

  Result<std::string> WatchText(const http::Event& event, const std::string& path, bool all) {
    if (flags_.json) return EventText(event.name, event.data);
    const Json data = Parsed(event.data);
    if (data.value("deleted", false)) return EventLine(event.name, data, {});
    if (!style_.color) {
      const std::string id = data.value("job", data.value("id", std::string()));
      const Result<std::string> text = Text("GET", "/api/v1/jobs/" + http::PercentEncoded(id));
      const Json job = text ? Parsed(*text) : Json::object();
      std::string lines = EventLine(event.name, data, job);
      // Of many jobs, that would be much.
      if (all || !text) return lines;
      std::string awaited = AwaitedLine(job);
      if (awaited != awaited_) lines += awaited;
      awaited_ = std::move(awaited);
      return lines;
    }
    constexpr std::string_view kClear = "\x1b[H\x1b[2J";
    Result<std::string> text = Text("GET", all ? path + "/jobs" : path);
    if (!text) return text;
    const Json json = Parsed(*text);
    return fmt::format("{}{}", kClear,
                       all ? JobTable(json.value("jobs", Json::array()), style_)
                           : JobText(json, style_, SecondsNow()) + AwaitedLine(json));
  }

  static std::string Filter(const char* name, const std::string& value) {
    return ServerClient::Filter(name, value);
  }
  Result<std::string> Path(const std::string& job) { return client_.JobPath(job); }
  static Json Parsed(const std::string& text) { return ServerClient::Parsed(text); }

  Result<Printout> Job(const char* method, const std::string& job, const char* rest,
                       const std::optional<Json>& body = {}) {
    const Result<std::string> path = Path(job);
    if (!path) return tl::unexpected(path.error());
    const Result<std::string> text = Text(method, *path + rest, body ? FormatCompact(*body) : "");
    if (!text) return tl::unexpected(text.error());
    return flags_.json ? JsonText(*text) + "\n" : JobText(Parsed(*text), style_, SecondsNow());
  }

  Result<std::string> Text(const char* method, const std::string& target,
                           const std::string& body = "", int* status = nullptr) {
    return client_.Text(method, target, body, status);
  }

  ServerClient client_;
  const JobClientFlags& flags_;
  const Style& style_;
  std::string awaited_;  // What was last said to come next.
};

// For completion: some jobs of each state. Not the finished ones, of which there may be 10,000.
std::string JobNames(const ServerFlags& flags) {
  constexpr int kMostOfAState = 200;
  std::vector<std::string> queries;
  queries.reserve(kUnfinishedStates.size());
  for (const char* const state : kUnfinishedStates) {
    queries.push_back(fmt::format("?state={}&limit={}", state, kMostOfAState));
  }
  return NamesFrom(flags, "jobs", {"id", "name", "client_key"}, queries);
}

}  // namespace

Result<Printout> RunJob(const JobClientFlags& flags, const Style& style) {
  if (flags.names) return JobNames(flags.server);
  Result<ServerClient> connected = ServerClient::Connect(flags.server);
  if (!connected) return tl::unexpected(connected.error());
  JobClient client(*std::move(connected), flags, style);
  const std::string& action = flags.action;
  if (action == "list") return client.List();
  if (action == "show") return client.Show(flags.job);
  if (action == "watch") return client.Watch(flags.job);
  if (action == "create") return client.Create(flags.file);
  if (action == "label") return client.Label(flags.job);
  if (action == "point") return client.Point(flags.job, flags.at);
  if (action == "straggler set") return client.SetStraggler(flags.job);
  if (action == "straggler clear") return client.ClearStraggler(flags.job, flags.straggler);
  if (action == "detection") return client.Detection(flags.job);
  if (action == "compare") return client.Compare(flags.job);
  if (action == "reprofile") return client.Reprofile(flags.job);
  if (action == "export") return client.Export(flags.job);
  if (action == "finish") return client.Finish(flags.job);
  return client.Delete(flags.job);
}

}  // namespace perseus::cli
