// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/cluster/job_client_flags.h"
#include "cli/command_options.h"
#include "cli/framework/value_parsers.h"
#include "common/labels.h"

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
      Command::kJob, "job",
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
  parser->AddInput(&flags->at, "AT", "As --at of perseus plan: 1.05x, 5.3s, economic, fastest.",
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
      {{"run 100 of every 1,000 iterations with no clock set",
        "perseus job compare llama-7 --every 1000 --iterations 100"}});
  add_job();
  parser->AddCount(&flags->every, "--every", "Length of one cycle, in iterations.", 4, kMostPlaces);
  parser->AddCount(&flags->iterations, "--iterations",
                   "How many iterations of a cycle run with no clock set.", 2, kMostPlaces);
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

}  // namespace perseus::cli
