// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// `perseus support-bundle`: one JSON document of figures, and of the words that kWords lists. No
// text that a person wrote is in it, so no secret is.

#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "agent/protocol.h"
#include "cli/cluster/server_client.h"
#include "cli/cluster/server_examination.h"
#include "cli/commands.h"
#include "cli/framework/table.h"
#include "cli/framework/terminal.h"
#include "cli/node/node.h"
#include "common/file.h"
#include "common/json_text.h"
#include "common/printable.h"

namespace perseus::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kMostBundledJobs = 1000;

// Members whose texts are ours, or the driver's; all other texts are left out.
constexpr std::array<std::string_view, 16> kWords = {
    "id",     "job_id",         "state",        "status",    "version",  "level",
    "about",  "mode",           "kind",         "type",      "schedule", "instruction",
    "origin", "driver_version", "architecture", "resolution"};
// An object whose names people choose.
constexpr std::string_view kLabels = "labels";
// Environment variables that begin so are named, without values.
constexpr std::array<std::string_view, 5> kBeginnings = {"PERSEUS_", "CUDA_", "NVIDIA_", "SLURM_",
                                                         "NCCL_"};
// Of one job.
constexpr std::array<std::string_view, 6> kJobParts = {
    "", "/ranks", "/plan.json", "/stragglers", "/detection", "/savings"};

// Figures, true and false, and the texts of kWords. `member`: the name of `json` in its object.
Json Listed(const Json& json, std::string_view member = "") {
  if (json.is_string()) {
    const bool is_word = std::find(kWords.begin(), kWords.end(), member) != kWords.end();
    return is_word ? json : Json();
  }
  if (!json.is_structured()) return json;
  Json listed = json.is_array() ? Json::array() : Json::object();
  for (const auto& [name, value] : json.items()) {
    if (json.is_array()) {
      listed.push_back(Listed(value, member));
    } else if (name != kLabels) {
      listed[name] = Listed(value, name);
    }
  }
  return listed;
}

Json System() {
  struct utsname kernel = {};
  Json system = {
      {"perseus", Version()},
      {"processors", ::sysconf(_SC_NPROCESSORS_ONLN)},
      {"memory_mib", ::sysconf(_SC_PHYS_PAGES) / 1024 * ::sysconf(_SC_PAGE_SIZE) / 1024}};
  if (::uname(&kernel) == 0) {
    system["kernel"] = fmt::format("{} {} {}", kernel.sysname, kernel.release, kernel.machine);
  }
  Json names = Json::array();
  for (char** variable = environ; variable != nullptr && *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    if (std::any_of(kBeginnings.begin(), kBeginnings.end(),
                    [&](std::string_view begin) { return text.starts_with(begin); })) {
      names.push_back(text.substr(0, text.find('=')));
    }
  }
  std::sort(names.begin(), names.end());
  system["environment"] = std::move(names);
  return system;
}

// Metrics of the server as a whole: labels hold what people wrote.
Json MetricsOf(const std::string& text) {
  Json metrics = Json::object();
  std::size_t begin = 0;
  for (std::size_t end = 0; begin < text.size(); begin = end + 1) {
    end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = std::string_view(text).substr(begin, end - begin);
    const std::size_t blank = line.find(' ');
    const bool is_listed = blank != line.npos && line.find('{') == line.npos && line[0] != '#';
    if (is_listed) metrics[std::string(line.substr(0, blank))] = line.substr(blank + 1);
  }
  return metrics;
}

// A job with trouble, else the newest that has not ended, or has; empty: there is none.
std::string JobToShow(const Json& jobs) {
  std::string chosen;
  bool runs = false;  // The chosen one has not ended.
  for (const Json& job : jobs) {
    const std::string state = job.value("state", "");
    if (state == "failed" || job.value("complaining", 0LL) > 0) return job.value("id", "");
    const bool has_not_ended = std::find(kUnfinishedStates.begin(), kUnfinishedStates.end(),
                                         state) != kUnfinishedStates.end();
    if (runs && !has_not_ended) continue;
    chosen = job.value("id", "");
    runs = has_not_ended;
  }
  return chosen;
}

class Bundle {
 public:
  // The part's text, or why there is none.
  void Add(const std::string& name, const Result<std::string>& text) {
    if (!text) return AddMissing(name, text.error().message);
    json_[name] = Listed(ServerClient::Parsed(*text));
  }
  void AddMissing(const std::string& name, const std::string& why) { missing_[name] = why; }
  void Set(const std::string& name, Json json) { json_[name] = std::move(json); }

  std::string Text() const { return FormatByLine(json_); }
  const std::map<std::string, std::string>& missing() const { return missing_; }

 private:
  Json json_ = Json::object();
  std::map<std::string, std::string> missing_;
};

void AddNode(const SupportBundleFlags& flags, Bundle* bundle) {
  DoctorFlags doctor;
  doctor.driver = flags.driver;
  doctor.agent_socket = flags.agent_socket;
  doctor.seconds = 1;
  bundle->Add("node", NodeJson(doctor));
  const std::string socket =
      flags.agent_socket.empty() ? std::string(agent::kDefaultSocketPath) : flags.agent_socket;
  const auto status = AskAgentStatus(socket, "perseus support-bundle");
  bundle->Add("agent", status ? Result<std::string>(AgentStatusJson(*status))
                              : tl::unexpected(status.error()));
}

void AddServer(const SupportBundleFlags& flags, Bundle* bundle) {
  Result<ServerClient> client = ServerClient::Connect(flags.server);
  const Result<ServerExamination> examination = ExamineServer(flags.server);
  if (!client || !examination) {
    return bundle->AddMissing("server",
                              client ? examination.error().message : client.error().message);
  }
  bundle->Add("server", ServerExaminationJson(*examination));
  // Stop without an answer: the other requests would only wait, too.
  const auto health = client->Text("GET", "/healthz");
  bundle->Add("health", health);
  if (!health) return;
  const auto metrics = client->Text("GET", "/metrics");
  if (metrics) bundle->Set("metrics", MetricsOf(*metrics));
  if (!metrics) bundle->AddMissing("metrics", metrics.error().message);
  // Those that have not ended come first: a server may hold thousands that have.
  Json jobs = Json::array();
  for (const char* const state : kUnfinishedStates) {
    const auto found = client->Jobs(ServerClient::Filter("state", state), kMostBundledJobs);
    if (!found) return bundle->AddMissing("jobs", found.error().message);
    jobs.insert(jobs.end(), found->at("jobs").begin(), found->at("jobs").end());
  }
  const auto ended = client->Jobs(ServerClient::Filter("state", "finished"), kMostBundledJobs);
  if (ended) jobs.insert(jobs.end(), ended->at("jobs").begin(), ended->at("jobs").end());
  bundle->Set("jobs", Listed(jobs));
  const std::string job = flags.job.empty() ? JobToShow(jobs) : flags.job;
  if (job.empty()) return bundle->AddMissing("job", "the server has no job");
  const Result<std::string> path = client->JobPath(job);
  if (!path) return bundle->AddMissing("job", path.error().message);
  for (const std::string_view part : kJobParts) {
    bundle->Add(fmt::format("job{}", part), client->Text("GET", fmt::format("{}{}", *path, part)));
  }
}

}  // namespace

void AddSupportBundleCommand(CommandParser* parser, Invocation* invocation) {
  SupportBundleFlags* flags = &invocation->support_bundle;
  parser->AddCommand(
      "support-bundle",
      "Write a file with what a maintainer needs to help you.\n\nIt is one JSON document: "
      "versions, "
      "figures of this machine and its GPUs, what 'perseus doctor' finds of it and of the server, "
      "the server's metrics and jobs, and one job in full. Texts that people write (names, labels, "
      "errors, addresses, configuration) are left out, and so is every secret. Changes nothing, "
      "and "
      "sends nothing.",
      {{"on the server's machine", "perseus support-bundle -o support.json"},
       {"of another server",
        "perseus support-bundle --server https://perseus.example:7787 --token-file token -o "
        "support.json"}});
  parser->SetGroup("What to add");
  parser->AddText(
      "--job", "JOB",
      "The job to show in full (default: one with trouble, else the newest that has not ended).",
      CommandParser::NotEmpty(&flags->job, "expected a name, got nothing"), {ValueKind::kJob, {}});
  parser->SetGroup("This node");
  AddNodeOptions(parser, &flags->driver, &flags->agent_socket);
  AddServerOptions(parser, &flags->server);
  parser->SetGroup("Output");
  parser->AddOutput(&flags->output_file, ValueKind::kFile, "The file to write, a .json.");
}

Result<Printout> RunSupportBundle(const SupportBundleFlags& flags, const Style& style) {
  if (flags.output_file.empty()) {
    return InvalidInput(
        "the file is missing: name it, as in 'perseus support-bundle -o support.json'");
  }
  if (auto good = CheckOutputFile(flags.output_file, {}); !good)
    return tl::unexpected(good.error());
  Bundle bundle;
  bundle.Set("system", System());
  {
    ProgressLine progress("looking at GPUs and agent");
    AddNode(flags, &bundle);
    progress.Announce("asking the server");
    AddServer(flags, &bundle);
  }
  const std::string text = bundle.Text();
  if (auto written = WriteFileAtomically(flags.output_file, text); !written) {
    return tl::unexpected(written.error());
  }
  std::string said = fmt::format("{}: {:.0f} kB.\n", Printable(flags.output_file),
                                 static_cast<double>(text.size() + 999) / 1000);
  for (const auto& [name, why] : bundle.missing()) {
    said += Wrap(fmt::format("Not in it: {}: {}", name, Printable(why)), style.columns, 2) + "\n";
  }
  return Printout(said, flags.output_file);
}

}  // namespace perseus::cli
