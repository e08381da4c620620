// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// Nodes, as far as ranks tell of them. A node's agent has no network, so its words come with the
// reports of its ranks.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "server/api/api_handlers.h"
#include "server/api/messages.h"

namespace perseus::server {
namespace {

constexpr std::size_t kUsualNodes = 100;
constexpr std::size_t kMostGpusOfNode = 64;
constexpr std::size_t kMostGpus = 1024;  // Of an answer: under 1 MiB, unless agents say much.

bool HasConflicts(const ClientReport* client) {
  return client != nullptr && client->agent && !client->agent->clock_conflicts.empty();
}

bool IsTroubled(const ClientReport* client) {
  return RefusedCalls(client) > 0 || HasConflicts(client) ||
         (client != nullptr && !client->error.empty());
}

// Whether the rank's client has the clock: it follows a plan, or measures.
bool HasClock(const ClientReport* client) {
  return client != nullptr && client->agent &&
         (client->state == "following" || client->state == "profiling");
}

// A rank stands for its GPU.
struct NodeGpu {
  store::JobHead job;
  store::RankRecord rank;
  std::optional<ClientReport> client = {};

  template <std::string ClientReport::*kText>
  static std::string Of(const NodeGpu& gpu) {
    return gpu.client ? (*gpu.client).*kText : "";
  }
};
constexpr Field kNodeGpuFields[] = {
    Value<&NodeGpu::rank, &store::RankRecord::gpu_uuid>("uuid").Nullable().UnlessEmpty(),
    Value<&NodeGpu::rank, &store::RankRecord::gpu_name>("name").Nullable().UnlessEmpty(),
    Value<&NodeGpu::job, &store::JobHead::id>("job").Says("That the GPU runs."),
    Value<&NodeGpu::job, &store::JobHead::name>("job_name"),
    Value<&NodeGpu::rank, &store::RankRecord::rank>("rank"),
    Value<NodeGpu::Of<&ClientReport::process>>("process").Nullable().UnlessEmpty().Says(
        "That has the clock, for people."),
    Value<NodeGpu::Of<&ClientReport::state>>("state").Nullable().UnlessEmpty().Says(
        "As its client says; null, as what follows: it did not report."),
    Value("heard_at",
          [](const NodeGpu& gpu) {
            return gpu.client ? std::optional(gpu.client->heard_at_seconds) : std::nullopt;
          })
        .Nullable()
        .Says("When its client reported last, seconds since 1970."),
    Value<NodeGpu::Of<&ClientReport::version>>("client_version").Nullable().UnlessEmpty(),
    Value("agent_version",
          [](const NodeGpu& gpu) {
            const bool has_agent = gpu.client && gpu.client->agent;
            return has_agent ? std::optional(gpu.client->agent->version) : std::nullopt;
          })
        .Nullable()
        .Says("null: no agent answers; empty: it does not say."),
    Value<NodeGpu::Of<&ClientReport::relay>>("relay_version")
        .Nullable()
        .UnlessEmpty()
        .Says("null: the client reports to the server itself."),
    Value("refused",
          [](const NodeGpu& gpu) { return RefusedCalls(gpu.client ? &*gpu.client : nullptr); })
        .Says("Clock calls that were refused, since the client began."),
    Value("clock_conflicts",
          [](const NodeGpu& gpu) {
            const bool has_agent = gpu.client && gpu.client->agent;
            return has_agent ? gpu.client->agent->clock_conflicts : std::vector<std::string>();
          })
        .Says("What acts against its clock: a power cap, heat, a profile."),
    Value<NodeGpu::Of<&ClientReport::error>>("error").Nullable().UnlessEmpty()};
constexpr Message<NodeGpu> kNodeGpu = {"NodeGpu", kNodeGpuFields};

// Sums over all ranks of a node, which may have far more than an answer shows.
struct Node {
  std::string name = {};
  std::optional<double> heard_at_seconds = {};
  std::int64_t gpu_count = 0;
  std::int64_t leased = 0;
  std::int64_t refused = 0;
  std::int64_t complaining = 0;
  std::int64_t clock_conflicts = 0;
  std::vector<NodeGpu> gpus = {};  // That are shown.

  bool is_troubled() const { return refused > 0 || complaining > 0 || clock_conflicts > 0; }

  void Add(const ClientReport* client) {
    ++gpu_count;
    if (client == nullptr) return;
    leased += HasClock(client) ? 1 : 0;
    refused += RefusedCalls(client);
    complaining += client->error.empty() ? 0 : 1;
    clock_conflicts += HasConflicts(client) ? 1 : 0;
    heard_at_seconds = std::max(heard_at_seconds.value_or(0), client->heard_at_seconds);
  }
};
constexpr Field kNodeFields[] = {
    Value<&Node::name>("node").Says("As its ranks call it."),
    Value<&Node::heard_at_seconds>("heard_at")
        .Nullable()
        .Says("When one of its ranks reported last."),
    Value<&Node::gpu_count>("gpu_count")
        .Says("Of its ranks. This and the numbers that follow count all of them."),
    Value<&Node::leased>("leased").Says(
        "GPUs whose clock a client has, to follow a plan or to measure."),
    Value<&Node::refused>("refused"),
    Value<&Node::complaining>("complaining").Says("Ranks that report an error."),
    Value<&Node::clock_conflicts>("clock_conflicts")
        .Says("GPUs with a clock conflict: something acts against their clock."),
    Object<&Node::gpus>("gpus", kNodeGpu)
        .List(kMostGpusOfNode)
        .Says("At most 64 of its ranks, job by job; those with refused clocks, errors or clock "
              "conflicts "
              "before others.")};
constexpr Message<Node> kNode = {"Node", kNodeFields};
struct NodeList {
  std::vector<Node> nodes = {};
  std::optional<std::string> next = {};
};
constexpr Field kNodeListFields[] = {
    Object<&NodeList::nodes>("nodes", kNode),
    Value<&NodeList::next>("next").Nullable().Says("For `after`; null: no more.")};
constexpr Message<NodeList> kNodeList = {"NodeList", kNodeListFields};

// The GPUs of a node in an answer: rather those in trouble, in the order in which they came.
class ShownGpus {
 public:
  void Add(const store::JobHead& job, const store::RankRecord& rank, const ClientReport* client) {
    auto& list = IsTroubled(client) ? troubled_ : others_;
    if (list.size() < kMostGpusOfNode) {
      list.emplace_back(
          count_, NodeGpu{job, rank, client == nullptr ? std::nullopt : std::optional(*client)});
    }
    ++count_;
  }

  std::vector<NodeGpu> Take() {
    for (auto& gpu : others_) {
      if (troubled_.size() < kMostGpusOfNode) troubled_.push_back(std::move(gpu));
    }
    std::sort(troubled_.begin(), troubled_.end(),
              [](const auto& a, const auto& b) { return a.first < b.first; });
    std::vector<NodeGpu> list;
    for (auto& [number, gpu] : troubled_) list.push_back(std::move(gpu));
    return list;
  }

 private:
  std::vector<std::pair<std::size_t, NodeGpu>> troubled_;  // Each with its number, as it came.
  std::vector<std::pair<std::size_t, NodeGpu>> others_;
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

// Ranks are visited twice, first for filters and sums: an answer copies no more of them than it
// shows.
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
    gpus += std::min(static_cast<std::size_t>(end->second.gpu_count), kMostGpusOfNode);
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
  NodeList list;
  for (auto node = begin; node != end; ++node) {
    Node& shown = list.nodes.emplace_back(node->second);
    shown.name = node->first;
    shown.gpus = page[node->first].Take();
  }
  if (end != nodes.end()) list.next = std::prev(end)->first;
  return JsonAnswer(200, kNodeList, list);
}

}  // namespace

Messages NodeMessages() {
  static constexpr const AnyMessage* kAll[] = {&kNodeList};
  return kAll;
}

void AddNodeRoute(RouteMaker* routes) { routes->OnStore(RowOf("listNodes"), ListNodes); }

}  // namespace perseus::server
