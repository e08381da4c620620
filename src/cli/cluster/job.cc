// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "perseus/job.h"

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
#include <variant>
#include <vector>

#include "cli/cluster/flags.h"
#include "cli/cluster/job_text.h"
#include "cli/cluster/json_values.h"
#include "cli/cluster/server_client.h"
#include "cli/commands.h"
#include "cli/framework/table.h"
#include "cli/framework/terminal.h"
#include "cli/framework/value_parsers.h"
#include "common/file.h"
#include "common/json_text.h"
#include "common/labels.h"
#include "common/numbers.h"
#include "common/printable.h"
#include "http/client.h"
#include "http/target.h"
#include "job/job_fields.h"
#include "job/setting_text.h"
#include "perseus/job_file.h"
#include "wire/routes.h"

namespace perseus::cli {

namespace {

Result<void> AddLabel(JobLabels* labels, const std::string& text) {
  auto label = ParseLabel(text);
  if (!label) return tl::unexpected(label.error());
  if (!labels->insert(*label).second) {
    return InvalidInput(
        fmt::format("the label '{}' is given twice; keep one of them", label->first));
  }
  return CheckLabels(*labels);
}

constexpr int kMostPlaces = 1'000'000;
constexpr double kMostFactor = 1000;
// As the server takes them.
constexpr double kMostThreshold = 2;
constexpr int kLeastWindow = 4;
constexpr int kMostWindow = 256;

void AddName(CommandParser* parser, std::string* target, const std::string& names,
             const std::string& value, const std::string& help, ValueKind kind) {
  parser->AddText(names, value, help, CommandParser::NotEmpty(target), {kind, {}});
}

void AddPipelineOption(CommandParser* parser, JobClientFlags* flags, const std::string& help) {
  parser->AddCount(&flags->pipeline, "--pipeline", help, 0, kMostPlaces);
}

// "team=vision" or, to take one away, "team-".
Result<void> AddLabelChange(JobClientFlags* flags, const std::string& text) {
  if (text.ends_with('-') && text.find('=') == std::string::npos) {
    const std::string name = text.substr(0, text.size() - 1);
    if (auto good = CheckLabelName(name); !good) return good;
    if (!flags->labels.contains(name) && flags->gone_labels.insert(name).second) return {};
    return InvalidInput(fmt::format("the label '{}' is given twice; keep one of them", name));
  }
  const auto label = ParseLabel(text);
  if (!label) return tl::unexpected(label.error());
  if (!flags->gone_labels.contains(label->first)) return AddLabel(&flags->labels, text);
  return InvalidInput(fmt::format("the label '{}' is given twice; keep one of them", label->first));
}

void AddLabelAction(CommandParser* parser, JobClientFlags* flags) {
  parser->AddAction(
      &flags->action, "label",
      "Set or remove labels of a job, also of one that has finished.\n\nA label has a "
      "name and a value. Lists and accounts (perseus report energy) go by labels. A "
      "job has at most 16. Names and values have at most 63 letters (a-z, A-Z), "
      "digits, '.', '_' and '-', names also '/'; both begin and end with a letter or "
      "a digit. What is not named stays.",
      {{"set one, and remove another", "perseus job label llama-7 team=vision project-"}});
  parser->AddInput(&flags->job, "JOB", "An id, or the name or the client key of one job.",
                   {ValueKind::kJob, {}});
  parser->AddInputs("LABEL...", "NAME=VALUE sets a label, NAME- removes it.",
                    [flags](const std::string& text) { return AddLabelChange(flags, text); });
}

void AddCreateAction(CommandParser* parser, JobClientFlags* flags) {
  parser->AddAction(&flags->action, "create", "Make a job for ranks to join.",
                    {{"from a job file", "perseus job create job.toml --name llama-7"}});
  parser->AddInput(&flags->file, "JOB.toml", "A job file.");
  AddName(parser, &flags->name, "--name", "TEXT", "A name for the job, as lists show it.",
          ValueKind::kText);
  AddName(parser, &flags->client_key, "--client-key", "KEY",
          "A key of your choice. The same key always means the same job, so creating it again "
          "changes nothing.",
          ValueKind::kText);
  AddLabelOption(parser, &flags->labels,
                 "A label of the job, for lists and accounts, as team=vision.");
  AddName(parser, &flags->model, "--model", "LABEL",
          "A label for the model. If an earlier job with the same label, layout and GPUs measured "
          "a profile, this job takes it over.",
          ValueKind::kText);
  parser->AddFlag(&flags->no_reuse, "--no-reuse",
                  "Measure, even if there is a profile to take over.");
}

void AddStragglerActions(CommandParser* parser, JobClientFlags* flags) {
  const auto add_job = [=] {
    parser->AddInput(&flags->job, "JOB", "An id, or the name or the client key of one job.",
                     {ValueKind::kJob, {}});
  };
  parser->AddAction(&flags->action, "straggler set",
                    "Report that a pipeline, a rank or a node is slow: the other pipelines then "
                    "slow down to save energy.",
                    {{"pipeline 1 is slow for an hour",
                      "perseus job straggler set llama-7 --pipeline 1 --factor 1.2 --expires 1h"}});
  add_job();
  parser->SetGroup("Where, and how slow");
  AddPipelineOption(parser, flags, "A pipeline (dp_rank).");
  parser->AddCount(&flags->rank, "--rank", "A rank.", 0, kMostPlaces);
  AddName(parser, &flags->node, "--node", "NAME", "All ranks of a node.", ValueKind::kText);
  parser->AddValue<double>(&flags->factor, "--factor", "X", "Takes X times as long (1.2).",
                           [](std::string_view text) {
                             return ParseQuantity(text, {1, kMostFactor}, job::kInTimes);
                           });
  parser->AddValue<double>(&flags->delay_seconds, "--delay", "TIME",
                           "Each iteration takes this much longer (400ms).", ParseLongDuration);
  parser->AddValue<double>(&flags->starts_seconds, "--starts", "TIME",
                           "Starts after this time (default: now).", ParseLongDuration);
  parser->AddValue<double>(&flags->expires_seconds, "--expires", "TIME",
                           "Ends after this time (default: when it is cleared).",
                           ParseLongDuration);
  parser->SetGroup("Output");
  parser->AddFlag(&flags->json, "--json", "Print the server's JSON.");
  AddServerOptions(parser, &flags->server);
  parser->AddAction(
      &flags->action, "straggler clear",
      "Report that a straggler has recovered; without an ID, all stragglers of the job.");
  add_job();
  parser->AddInput(&flags->straggler, "[ID]", "The straggler's number.", {ValueKind::kText, {}});
  AddServerOptions(parser, &flags->server);
}

void AddDetectionOptions(CommandParser* parser, JobClientFlags* flags) {
  parser->AddText(
      "--mode", "MODE",
      "off, advisory (only report stragglers) or act (also give the other pipelines slower plans).",
      [flags](const std::string& text) -> Result<void> {
        flags->mode = text;  // The server knows which there are.
        return {};
      },
      {ValueKind::kChoice, {"off", "advisory", "act"}});
  parser->AddValue<double>(&flags->threshold, "--threshold", "SHARE",
                           "A rank that is slower by less than this is no straggler (default 5%).",
                           [](std::string_view text) { return ParseShare(text, kMostThreshold); });
  parser->AddCount(&flags->window, "--window",
                   "Number of iterations that are looked at together (default 16).", kLeastWindow,
                   kMostWindow);
}

}  // namespace

void AddLabelOption(CommandParser* parser, JobLabels* labels, const std::string& help) {
  parser->AddRepeated("--label", "NAME=VALUE", help,
                      [labels](const std::string& text) { return AddLabel(labels, text); });
}

void AddServerOptions(CommandParser* parser, ServerFlags* flags, const std::string& server_help) {
  parser->SetGroup("Server");
  AddName(parser, &flags->server, "--server", "URL", server_help, ValueKind::kText);
  AddName(parser, &flags->token_file, "--token-file", "FILE", "A file with one token.",
          ValueKind::kFile);
  AddName(parser, &flags->ca_file, "--ca-file", "FILE",
          "A PEM file of certificates to trust instead of the system's.", ValueKind::kFile);
}

void AddJobCommand(CommandParser* parser, Invocation* invocation) {
  JobClientFlags* flags = &invocation->job_client;
  parser->AddCommand(
      "job",
      "Manage the jobs of a server.\n\nJOB is the id, the name or the client key of a job. The "
      "server is that of --server, else of PERSEUS_SERVER, else http://127.0.0.1:7787. The token "
      "is in the file of --token-file, else of PERSEUS_TOKEN_FILE.",
      {{"all jobs", "perseus job list"},
       {"a new job, which ranks can join", "perseus job create job.toml --name a"},
       {"pipeline 1 is slow for an hour",
        "perseus job straggler set a --pipeline 1 --factor 1.2 --expires 1h"}});
  const auto add = [=](const std::string& name, const std::string& description,
                       std::vector<ExampleData> examples = {}) {
    parser->AddAction(&flags->action, name, description, std::move(examples));
  };
  const auto add_job = [=](const std::string& value = "JOB") {
    parser->AddInput(&flags->job, value, "An id, or the name or the client key of one job.",
                     {ValueKind::kJob, {}});
  };
  // Last, as what an action is about comes first.
  const auto add_json = [=] {
    parser->SetGroup("Output");
    parser->AddFlag(&flags->json, "--json", "Print the server's JSON.");
  };
  const auto add_server = [=] { AddServerOptions(parser, &flags->server); };

  add("list", "Show jobs, a line each, in the order in which they were made.",
      {{"what goes on", "perseus job list --state running"}});
  parser->SetGroup("Which");
  AddName(parser, &flags->state, "--state", "STATE",
          "Only jobs in this state: registering, profiling, characterizing, running, failed or "
          "finished.",
          ValueKind::kText);
  AddName(parser, &flags->name, "--name", "TEXT", "Only jobs of this name.", ValueKind::kText);
  AddLabelOption(parser, &flags->labels, "Only jobs with this label, as team=vision.");
  AddName(parser, &flags->client_key, "--client-key", "KEY", "Only the job of this client key.",
          ValueKind::kText);
  parser->AddCount(&flags->limit, "--limit", "At most so many jobs.", 1, kMostPlaces);
  add_json();
  parser->AddHiddenFlag(&flags->names, "--names");
  add_server();
  add("show", "Show a job: its state, plan, ranks and stragglers.");
  add_job();
  add_json();
  add_server();
  add("watch",
      "Show what happens to a job, or to all jobs, as it happens.\n\nOn a terminal, the state is "
      "drawn anew after each event. Elsewhere, each event is a line. Ends when the job is "
      "deleted.");
  add_job("[JOB]");
  add_json();
  add_server();
  AddCreateAction(parser, flags);
  add_json();
  add_server();
  AddLabelAction(parser, flags);
  add_json();
  add_server();
  add("point", "Set the iteration time that a job is planned for.",
      {{"save more, with a slowdown of 5 %", "perseus job point llama-7 1.05x"}});
  add_job();
  parser->AddInput(&flags->at, "AT", "As --at of perseus plan: 1.05x, 5.3s, min-energy, fastest.",
                   {ValueKind::kText, {}});
  add_json();
  add_server();
  add("straggler", "Report that a pipeline, a rank or a node is slow, or has recovered.");
  AddStragglerActions(parser, flags);
  add("detection",
      "Show the stragglers that the server finds by itself, or change how it looks for them.",
      {{"let the server find stragglers and change plans",
        "perseus job detection llama-7 --mode act --threshold 5%"}});
  add_job();
  AddDetectionOptions(parser, flags);
  add_json();
  add_server();
  add("compare", "Show the measured saving of a job, or start or stop measuring it.",
      {{"run 100 of every 1,000 iterations at default clocks",
        "perseus job compare llama-7 --every 1000 --iterations 100"}});
  add_job();
  parser->AddCount(&flags->every, "--every", "Length of one cycle, in iterations.", 4, kMostPlaces);
  parser->AddCount(&flags->iterations, "--iterations",
                   "How many iterations of a cycle run at default clocks.", 2, kMostPlaces);
  parser->AddFlag(&flags->off, "--off", "Stop measuring.");
  add_json();
  add_server();
  add("reprofile", "Let the ranks measure all computations again while they train.");
  add_job();
  parser->AddFlag(&flags->off, "--off", "Stop measuring; the old profile stays.");
  add_json();
  add_server();
  add("export", "Print a job's plan.json, or its frontier.");
  add_job();
  parser->AddFlag(&flags->frontier, "--frontier", "Print the frontier as CSV instead.");
  AddPipelineOption(parser, flags, "The plan of this pipeline (default 0).");
  parser->AddOutput(&flags->output_file, ValueKind::kFile,
                    "Write to this file instead of standard output.");
  add_server();
  add("finish", "Mark a job as ended; it can still be shown.");
  add_job();
  add_json();
  add_server();
  add("delete", "Delete a job, with its plans and all that was measured.");
  add_job();
  parser->AddFlag(&flags->yes, "--yes",
                  "Do not ask before deleting. Perseus asks only on a terminal.");
  add_server();
}

namespace {

using Json = nlohmann::ordered_json;

// A value of a job file; nullopt for paths.
class ValueJson {
 public:
  ValueJson(const job::Field& field, const JobFile& settings) : field_(field), job_(settings) {}

  std::optional<Json> operator()(std::optional<std::string> JobFile::*member) const {
    if (field_.unit == job::Unit::kPath) return std::nullopt;
    return Json(*(job_.*member));
  }
  std::optional<Json> operator()(std::optional<PlanTarget> JobFile::*member) const {
    return Json(PlanTargetText(*(job_.*member)));
  }
  std::optional<Json> operator()(std::optional<Granularity> JobFile::*member) const {
    return Json(GranularityName(*(job_.*member)));
  }
  std::optional<Json> operator()(std::optional<CallAhead> JobFile::*member) const {
    return Json(CallAheadName(*(job_.*member)));
  }
  std::optional<Json> operator()(std::optional<TimeMargin> JobFile::*member) const {
    const TimeMargin& margin = *(job_.*member);
    return Json(fmt::format("{}sigma,{}%", margin.sigmas, 100 * margin.fraction));
  }
  std::optional<Json> operator()(std::optional<WorkSetting> JobFile::*member) const {
    const WorkSetting& work = *(job_.*member);
    return work.factors.empty() ? std::nullopt : std::optional(Json(work.factors));
  }
  std::optional<Json> operator()(std::optional<ValueRange> JobFile::*member) const {
    const ValueRange& range = *(job_.*member);
    if (range.is_one()) return Json(range.least);
    return Json(fmt::format("{}-{}", range.least, range.most));
  }
  std::optional<Json> operator()(std::vector<double> JobFile::*member) const {
    return Json(job_.*member);
  }
  std::optional<Json> operator()(std::vector<ClockLatency> JobFile::*member) const {
    return Json(job::ClockLatenciesText(job_.*member));
  }
  template <typename T>
  std::optional<Json> operator()(std::optional<T> JobFile::*member) const {
    return Json(*(job_.*member));
  }

 private:
  const job::Field& field_;
  const JobFile& job_;
};

}  // namespace

Json SettingsJson(const JobFile& settings) {
  Json json = Json::object();
  if (settings.measures_conditions) json[std::string(job::kConditionsTable)] = Json::object();
  for (const job::Field& field : job::Fields()) {
    if (!job::IsSet(field, settings)) continue;
    if (auto value = std::visit(ValueJson(field, settings), field.member)) {
      Json& table = field.condition() ? json[std::string(job::kConditionsTable)] : json;
      table[std::string(field.key)] = *std::move(value);
    }
  }
  return json;
}

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
