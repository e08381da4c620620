// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// Nodes, as far as ranks tell of them. A node's agent has no network, so what it says comes with
// the reports of its ranks.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
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
#include "server/store/facts.h"

namespace perseus::server {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kUsualNodes = 100;
constexpr std::size_t kMostGpusOfNode = 64;
constexpr std::size_t kMostGpus = 1024;  // Of an answer: under 1 MiB, unless agents say much.

constexpr Field kNodeGpuMembers[] = {
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
constexpr Field kNodeMembers[] = {
    Text("node").Says("As its ranks call it."),
    Number("heard_at").Nullable().Says("When one of its ranks reported last."),
    Integer("gpu_count").Says("Of its ranks. This and the numbers that follow count all of them."),
    Integer("leased").Says("GPUs whose clock a client has, to follow a plan or to measure."),
    Integer("refused"),
    Integer("complaining").Says("Ranks that report an error."),
    Integer("fights").Says("GPUs whose clock something acts against."),
    Object("gpus", "NodeGpu")
        .List(kMostGpusOfNode)
        .Says("At most 64 of its ranks, job by job; those with refused clocks, errors or fights "
              "before others.")};
constexpr Field kNodeListMembers[] = {Object("nodes", "Node").List(),
                                      Text("next").Nullable().Says("For `after`; null: no more.")};
constexpr AnyMessage kNodeSchemas[] = {
    {"NodeGpu", kNodeGpuMembers}, {"Node", kNodeMembers}, {"NodeList", kNodeListMembers}};

Json OrNull(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

std::int64_t RefusedBy(const ClientReport* client) {
  if (client == nullptr) return 0;
  const auto found = client->counts.find("refused");
  return found == client->counts.end() ? 0 : static_cast<std::int64_t>(found->second);
}

bool HasFights(const ClientReport* client) {
  return client != nullptr && client->agent && !client->agent->fights.empty();
}

bool IsTroubled(const ClientReport* client) {
  return RefusedBy(client) > 0 || HasFights(client) ||
         (client != nullptr && !client->error.empty());
}

// Whether the rank's client has the clock: it follows a plan, or measures.
bool HasClock(const ClientReport* client) {
  return client != nullptr && client->agent &&
         (client->state == "following" || client->state == "profiling");
}

// A rank stands for its GPU.
Json GpuJson(const store::JobHead& job, const store::RankRecord& rank, const ClientReport* told) {
  const ClientReport none;
  const ClientReport& client = told == nullptr ? none : *told;
  return {{"uuid", OrNull(rank.gpu_uuid)},
          {"name", OrNull(rank.gpu_name)},
          {"job", job.id},
          {"job_name", job.name},
          {"rank", rank.rank},
          {"process", OrNull(client.process)},
          {"state", OrNull(client.state)},
          {"heard_at", told == nullptr ? Json(nullptr) : Json(client.heard_at_seconds)},
          {"client_version", OrNull(client.version)},
          {"agent_version", client.agent ? Json(client.agent->version) : Json(nullptr)},
          {"relay_version", OrNull(client.relay)},
          {"refused", RefusedBy(told)},
          {"fights", client.agent ? Json(client.agent->fights) : Json::array()},
          {"error", OrNull(client.error)}};
}

// Sums over all ranks of a node, which may have far more than an answer shows.
struct Node {
  std::optional<double> heard_at_seconds;
  std::int64_t gpus = 0;
  std::int64_t leased = 0;
  std::int64_t refused = 0;
  std::int64_t complaining = 0;
  std::int64_t fights = 0;

  bool is_troubled() const { return refused > 0 || complaining > 0 || fights > 0; }

  void Add(const ClientReport* client) {
    ++gpus;
    if (client == nullptr) return;
    leased += HasClock(client) ? 1 : 0;
    refused += RefusedBy(client);
    complaining += client->error.empty() ? 0 : 1;
    fights += HasFights(client) ? 1 : 0;
    heard_at_seconds = std::max(heard_at_seconds.value_or(0), client->heard_at_seconds);
  }
};

// What an answer shows of a node's GPUs: rather those in trouble, in the order in which they came.
class ShownGpus {
 public:
  void Add(const store::JobHead& job, const store::RankRecord& rank, const ClientReport* client) {
    std::vector<Shown>& list = IsTroubled(client) ? troubled_ : others_;
    if (list.size() < kMostGpusOfNode) list.push_back({count_, GpuJson(job, rank, client)});
    ++count_;
  }

  Json TakeJson() {
    std::vector<Shown> shown = std::move(troubled_);
    for (Shown& gpu : others_) {
      if (shown.size() < kMostGpusOfNode) shown.push_back(std::move(gpu));
    }
    std::sort(shown.begin(), shown.end(),
              [](const Shown& a, const Shown& b) { return a.number < b.number; });
    Json list = Json::array();
    for (Shown& gpu : shown) list.push_back(std::move(gpu.json));
    return list;
  }

 private:
  struct Shown {
    std::size_t number = 0;  // As it came.
    Json json;
  };

  std::vector<Shown> troubled_;
  std::vector<Shown> others_;
  std::size_t count_ = 0;
};

std::vector<std::shared_ptr<ManagedJob>> JobsFor(const Call& call) {
  std::vector<std::shared_ptr<ManagedJob>> jobs = call.service.Jobs();
  std::erase_if(jobs, [&](const auto& job) {
    return job->is_gone() || job->is_finished() || !Sees(call.request.binding, *job);
  });
  return jobs;
}

std::map<std::string, Node> NodesFor(const Call& call,
                                     const std::vector<std::shared_ptr<ManagedJob>>& jobs) {
  const std::string search = QueryText(call.request, "search");
  std::map<std::string, Node> nodes;
  for (const std::shared_ptr<ManagedJob>& job : jobs) {
    job->VisitRanks([&](const store::RankRecord& rank, const ClientReport* client) {
      if (rank.node.find(search) != std::string::npos) nodes[rank.node].Add(client);
    });
  }
  if (QueryInteger(call.request, "troubled") == 1) {
    std::erase_if(nodes, [](const auto& node) { return !node.second.is_troubled(); });
  }
  return nodes;
}

// Ranks are visited twice, first for what filters and sums need: an answer copies no more of them
// than it shows.
http::Response ListNodes(const Call& call) {
  const std::vector<std::shared_ptr<ManagedJob>> jobs = JobsFor(call);
  const std::map<std::string, Node> nodes = NodesFor(call, jobs);
  const auto limit =
      static_cast<std::size_t>(QueryInteger(call.request, "limit").value_or(kUsualNodes));
  const auto begin = call.request.query.contains("after")
                         ? nodes.upper_bound(QueryText(call.request, "after"))
                         : nodes.begin();
  std::map<std::string, ShownGpus> page;
  std::size_t gpus = 0;
  auto end = begin;
  for (; end != nodes.end() && page.size() < limit; ++end) {
    gpus += std::min(static_cast<std::size_t>(end->second.gpus), kMostGpusOfNode);
    if (!page.empty() && gpus > kMostGpus) break;
    page.try_emplace(end->first);
  }
  for (const std::shared_ptr<ManagedJob>& job : jobs) {
    const store::JobHead head = job->head();
    job->VisitRanks([&](const store::RankRecord& rank, const ClientReport* client) {
      const auto shown = page.find(rank.node);
      if (shown != page.end()) shown->second.Add(head, rank, client);
    });
  }
  Json list = Json::array();
  for (auto node = begin; node != end; ++node) {
    const Node& sums = node->second;
    list.push_back(
        {{"node", node->first},
         {"heard_at", sums.heard_at_seconds ? Json(*sums.heard_at_seconds) : Json(nullptr)},
         {"gpu_count", sums.gpus},
         {"leased", sums.leased},
         {"refused", sums.refused},
         {"complaining", sums.complaining},
         {"fights", sums.fights},
         {"gpus", page[node->first].TakeJson()}});
  }
  const Json next = end == nodes.end() ? Json(nullptr) : Json(std::prev(end)->first);
  return JsonAnswer(200, {{"nodes", std::move(list)}, {"next", next}});
}

}  // namespace

Schemas NodeSchemas() { return kNodeSchemas; }

void AddNodeRoute(RouteMaker* routes) { routes->OnStore(RowOf("listNodes"), ListNodes); }

}  // namespace perseus::server
