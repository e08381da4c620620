// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// Nodes, as far as ranks tell of them. A node's agent has no network, so what it says comes with
// the reports of its ranks.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "server/api/api_handlers.h"
#include "server/api/api_schemas.h"
#include "server/domain/caller.h"
#include "store/facts.h"

namespace perseus::server {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kUsualNodes = 100;

constexpr Member kNodeGpuMembers[] = {
    Text("uuid").Nullable(),
    Text("name").Nullable(),
    Text("job").Says("That the GPU runs."),
    Text("job_name"),
    Integer("rank"),
    Text("process").Nullable().Says("That has the clock, for people."),
    Text("state").Nullable().Says("As its client says; null, as what follows: it did not report."),
    Number("heard_at").Nullable().Says("When its client reported last, seconds since 1970."),
    Text("client_version").Nullable(),
    Text("agent_version").Nullable().Says("null: no agent answers; empty: it does not say."),
    Text("relay_version").Nullable().Says("null: the client reports to the server itself."),
    Integer("refused").Says("Clock calls that were refused, since the client began."),
    Text("fights").List().Says("What acts against its clock: a power cap, heat, a profile."),
    Text("error").Nullable()};
constexpr Member kNodeMembers[] = {
    Text("node").Says("As its ranks call it."),
    Number("heard_at").Nullable().Says("When one of its ranks reported last."),
    Integer("refused"),
    Integer("complaining").Says("Ranks that report an error."),
    Integer("fights").Says("GPUs whose clock something acts against."),
    Object("gpus", "NodeGpu").List().Says("Of its ranks, job by job.")};
constexpr Member kNodeListMembers[] = {Object("nodes", "Node").List(),
                                       Text("next").Nullable().Says("For `after`; null: no more.")};
constexpr ObjectSchema kNodeSchemas[] = {
    {"NodeGpu", kNodeGpuMembers}, {"Node", kNodeMembers}, {"NodeList", kNodeListMembers}};

Json OrNull(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

// A rank stands for its GPU.
struct NodeGpu {
  std::shared_ptr<const store::JobHead> job;
  RankNow rank;

  std::int64_t refused() const {
    if (!rank.client) return 0;
    const auto found = rank.client->counts.find("refused");
    return found == rank.client->counts.end() ? 0 : static_cast<std::int64_t>(found->second);
  }

  Json ToJson() const {
    const ClientReport none;
    const ClientReport& client = rank.client ? *rank.client : none;
    return {{"uuid", OrNull(rank.record.gpu_uuid)},
            {"name", OrNull(rank.record.gpu_name)},
            {"job", job->id},
            {"job_name", job->name},
            {"rank", rank.record.rank},
            {"process", OrNull(client.process)},
            {"state", OrNull(client.state)},
            {"heard_at", rank.client ? Json(client.heard_at_seconds) : Json(nullptr)},
            {"client_version", OrNull(client.version)},
            {"agent_version", client.agent ? Json(client.agent->version) : Json(nullptr)},
            {"relay_version", OrNull(client.relay)},
            {"refused", refused()},
            {"fights", client.agent ? Json(client.agent->fights) : Json::array()},
            {"error", OrNull(client.error)}};
  }
};

struct Node {
  std::optional<double> heard_at_seconds;
  std::int64_t refused = 0;
  int complaining = 0;
  int fights = 0;
  std::vector<NodeGpu> gpus;

  bool is_troubled() const { return refused > 0 || complaining > 0 || fights > 0; }

  void Add(NodeGpu gpu) {
    refused += gpu.refused();
    if (const auto& client = gpu.rank.client) {
      complaining += client->error.empty() ? 0 : 1;
      fights += client->agent && !client->agent->fights.empty() ? 1 : 0;
      heard_at_seconds = std::max(heard_at_seconds.value_or(0), client->heard_at_seconds);
    }
    gpus.push_back(std::move(gpu));
  }

  Json ToJson(const std::string& name) const {
    Json list = Json::array();
    for (const NodeGpu& gpu : gpus) list.push_back(gpu.ToJson());
    return {{"node", name},
            {"heard_at", heard_at_seconds ? Json(*heard_at_seconds) : Json(nullptr)},
            {"refused", refused},
            {"complaining", complaining},
            {"fights", fights},
            {"gpus", std::move(list)}};
  }
};

std::map<std::string, Node> NodesFor(const Call& call) {
  const std::string search = QueryText(call.request, "search");
  std::map<std::string, Node> nodes;
  for (const std::shared_ptr<ManagedJob>& job : call.service.Jobs()) {
    if (job->is_gone() || job->is_finished() || !Sees(call.request.binding, *job)) continue;
    const auto head = std::make_shared<const store::JobHead>(job->head());
    for (RankNow& rank : job->RanksNow()) {
      if (rank.record.node.find(search) == std::string::npos) continue;
      Node& node = nodes[rank.record.node];
      node.Add({head, std::move(rank)});
    }
  }
  if (QueryInteger(call.request, "troubled") == 1) {
    std::erase_if(nodes, [](const auto& node) { return !node.second.is_troubled(); });
  }
  return nodes;
}

void ListNodes(const CallPointer& call) {
  const std::map<std::string, Node> nodes = NodesFor(*call);
  const std::string after = QueryText(call->request, "after");
  const auto limit =
      static_cast<std::size_t>(QueryInteger(call->request, "limit").value_or(kUsualNodes));
  Json list = Json::array();
  Json next = nullptr;
  std::string last;
  const auto begin =
      call->request.query.contains("after") ? nodes.upper_bound(after) : nodes.begin();
  for (auto node = begin; node != nodes.end(); ++node) {
    if (list.size() == limit) {
      next = last;
      break;
    }
    list.push_back(node->second.ToJson(node->first));
    last = node->first;
  }
  Send(*call, JsonAnswer(200, {{"nodes", std::move(list)}, {"next", std::move(next)}}));
}

}  // namespace

Schemas NodeSchemas() { return kNodeSchemas; }

void AddNodeRoute(RouteMaker* routes) { routes->On(RowOf("listNodes"), ListNodes); }

}  // namespace perseus::server
