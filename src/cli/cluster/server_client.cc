// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/cluster/server_client.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string_view>
#include <thread>
#include <utility>

#include "cli/framework/command_parser.h"
#include "cli/framework/table.h"
#include "cli/framework/terminal.h"
#include "common/json_text.h"
#include "common/printable.h"
#include "http/target.h"
#include "wire/routes.h"

namespace perseus::cli {

namespace {

constexpr std::string_view kDefaultServer = "http://127.0.0.1:7787";

}  // namespace

Result<ServerClient> ServerClient::Connect(const ServerFlags& given) {
  const ServerFlags flags = WithEnvironment(given);
  http::ClientOptions options;
  options.url = flags.server.empty() ? std::string(kDefaultServer) : flags.server;
  options.ca_file = flags.ca_file;
  if (!flags.token_file.empty()) {
    Result<std::string> token = http::ReadTokenFile(flags.token_file);
    if (!token) return tl::unexpected(token.error());
    options.token = *std::move(token);
  }
  Result<http::Client> client = http::Client::Create(std::move(options));
  if (!client) return tl::unexpected(client.error());
  return ServerClient(*std::move(client), flags.token_file);
}

nlohmann::ordered_json ServerClient::Parsed(const std::string& text) {
  auto json = ParseObject(text);
  return json.is_null() ? nlohmann::ordered_json::object() : json;
}

Result<std::string> ServerClient::Text(const char* method, const std::string& target,
                                       const std::string& body, int* status) {
  const Result<http::Response> response = client_.Call(method, target, body);
  if (!response) return tl::unexpected(response.error());
  if (status != nullptr) *status = response->status;
  std::string text = response->body == nullptr ? "" : *response->body;
  if (response->status < 300) return text;
  if (response->status == 401) {
    return InvalidInput(
        token_file_.empty()
            ? "the server wants a token; give the token's file with --token-file, or set "
              "PERSEUS_TOKEN_FILE"
            : fmt::format("the server does not know the token in {}; give another one with "
                          "--token-file, or set PERSEUS_TOKEN_FILE",
                          token_file_));
  }
  const auto json = Parsed(text);
  const auto error = json.find("error");
  const std::string sentence =
      error == json.end() || !error->is_object() ? "" : error->value("message", "");
  return InvalidInput(sentence.empty() ? fmt::format("the server answered {}", response->status)
                                       : fmt::format("the server refused: {}", sentence));
}

std::string ServerClient::Filter(const char* name, const std::string& value) {
  return value.empty() ? "" : fmt::format("&{}={}", name, http::PercentEncoded(value));
}

Result<nlohmann::ordered_json> ServerClient::Jobs(const std::string& filters, int limit) {
  using Json = nlohmann::ordered_json;
  Json all = {{"jobs", Json::array()}, {"next", nullptr}};
  do {
    const int left = limit - static_cast<int>(all["jobs"].size());
    const std::string after = all["next"].is_null() ? "" : all["next"].get<std::string>();
    const Result<std::string> text = Text(
        "GET", fmt::format("/api/v1/jobs?limit={}{}{}", std::min(left, wire::rows::kMostListed),
                           filters, Filter("after", after)));
    if (!text) return tl::unexpected(text.error());
    const Json page = Parsed(*text);
    for (const Json& job : page.value("jobs", Json::array())) all["jobs"].push_back(job);
    all["next"] = page.value("next", Json());
  } while (all["next"].is_string() && static_cast<int>(all["jobs"].size()) < limit);
  return all;
}

Result<std::string> ServerClient::JobPath(const std::string& job) {
  if (job.empty()) return InvalidInput("the job is missing; 'perseus job list' shows all");
  std::string id = job;
  if (!job.starts_with("j-")) {
    std::vector<std::string> found;
    for (const char* const member : {"client_key", "name"}) {
      if (!found.empty()) break;
      const auto jobs = Jobs(Filter(member, job));
      if (!jobs) return tl::unexpected(jobs.error());
      for (const auto& each : jobs->at("jobs")) found.push_back(each.value("id", ""));
    }
    if (found.empty()) {
      return InvalidInput(
          fmt::format("no job has the name or client key '{}'; 'perseus job list' shows all", job));
    }
    if (found.size() > 1) {
      for (std::string& each : found) each = Printable(each);
      return InvalidInput(fmt::format("{} jobs are called '{}': give the id of one of them, {}",
                                      found.size(), job, fmt::join(found, ", ")));
    }
    id = found.front();
  }
  return "/api/v1/jobs/" + http::PercentEncoded(id);
}

std::string NamesFrom(const ServerFlags& flags, std::string_view things,
                      std::initializer_list<const char*> members,
                      const std::vector<std::string>& queries) {
  constexpr double kPatienceSeconds = 1;
  Result<ServerClient> client = ServerClient::Connect(flags);
  if (!client) return "";
  http::CallOptions options;
  options.deadline_seconds = kPatienceSeconds / static_cast<double>(queries.size());
  std::set<std::string> names;
  for (const std::string& query : queries) {
    const std::string target = fmt::format("/api/v1/{}{}", things, query);
    const auto answer = client->http().Call("GET", target, {}, options);
    if (!answer || answer->body == nullptr) return "";
    const auto json = ServerClient::Parsed(*answer->body);
    for (const auto& thing : json.value(std::string(things), nlohmann::ordered_json::array())) {
      for (const char* member : members) {
        std::string name = thing.is_object() ? thing.value(member, "") : "";
        if (!name.empty() && ShellWord(name) == name) names.insert(std::move(name));
      }
    }
  }
  std::string text;
  for (const std::string& name : names) text += name + "\n";
  return text;
}

namespace {

// Without a byte for so long the server is asked whether it lives.
constexpr double kQuietSeconds = 3;
constexpr double kAnswerSeconds = 4;
// Heartbeats come every 15 s: a stream without any is dead, though the server lives.
constexpr double kSilentSeconds = 50;
constexpr double kOpenSeconds = 10;
constexpr std::chrono::seconds kMostPause(4);

}  // namespace

Result<ServerEvents> ServerEvents::Open(ServerClient* client, const std::string& path,
                                        std::string subject) {
  Result<http::EventReader> reader = client->http().OpenEvents(path, kOpenSeconds);
  if (!reader) return tl::unexpected(reader.error());
  return ServerEvents(client, path, std::move(subject), *std::move(reader));
}

Result<std::optional<http::Event>> ServerEvents::Next(const std::function<bool()>& is_wanted) {
  while (is_wanted()) {
    Result<std::optional<http::Event>> event = reader_.Next(kQuietSeconds);
    if (event && *event) {
      last_id_ = (*event)->id;
      return event;
    }
    if (event && IsAlive()) continue;
    const auto back =
        ComeBack(event ? "it gives no sign of life" : event.error().message, is_wanted);
    if (!back) return tl::unexpected(back.error());
  }
  return std::nullopt;
}

bool ServerEvents::IsAlive() {
  if (reader_.silent_seconds() < kQuietSeconds) return true;
  if (reader_.silent_seconds() > kSilentSeconds) return false;
  http::CallOptions options;
  options.deadline_seconds = kAnswerSeconds;
  return client_->http().Call("GET", "/healthz", {}, options).has_value();
}

Result<void> ServerEvents::ComeBack(const std::string& why,
                                    const std::function<bool()>& is_wanted) {
  const auto since = std::chrono::steady_clock::now();
  WriteStandardError(fmt::format("The server is gone since {:%H:%M:%S}: {}. Trying again.\n",
                                 fmt::localtime(std::time(nullptr)), Printable(why)));
  for (std::chrono::seconds pause(1);; pause = std::min(pause * 2, kMostPause)) {
    std::this_thread::sleep_for(pause);
    if (!is_wanted()) return {};
    const Result<bool> is_back = TryAgain();
    if (!is_back) return tl::unexpected(is_back.error());
    if (*is_back) break;
  }
  WriteStandardError(fmt::format(
      "The server is back, after {} s.\n",
      std::chrono::duration_cast<std::chrono::seconds>(std::chrono::steady_clock::now() - since)
          .count()));
  return {};
}

// False: it is not back yet.
Result<bool> ServerEvents::TryAgain() {
  int status = 0;
  const Result<std::string> known = client_->Text("GET", subject_, "", &status);
  if (!known && (status == 401 || status == 403 || status == 404)) {
    return tl::unexpected(known.error());
  }
  if (!known) return false;
  Result<http::EventReader> reader = client_->http().OpenEvents(path_, kOpenSeconds, last_id_);
  if (!reader) return false;
  reader_ = *std::move(reader);
  return true;
}

}  // namespace perseus::cli
