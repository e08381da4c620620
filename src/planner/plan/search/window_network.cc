// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "plan/search/window_network.h"

#include <algorithm>
#include <limits>

namespace perseus::plan {
namespace {

using frontier::Network;

// Of the activity whose start or end node this is.
int ActivityOf(int node) { return (node - 2) / 2; }

// Calls visit(arc's index, activity) for every arc that comes from another activity,
// or (its index, -1) for one from the source.
template <typename Visit>
void ForPredecessors(const Network& network, int activity, const Visit& visit) {
  const int node = Network::StartNode(activity);
  for (const Network::Incidence& incidence : network.IncidencesOf(node)) {
    const Network::Arc& arc = network.arcs[incidence.arc];
    if (arc.head == node)
      visit(incidence.arc, arc.tail == Network::kSource ? -1 : ActivityOf(arc.tail));
  }
}

template <typename Visit>
void ForSuccessors(const Network& network, int activity, const Visit& visit) {
  const int node = Network::EndNode(activity);
  for (const Network::Incidence& incidence : network.IncidencesOf(node)) {
    const Network::Arc& arc = network.arcs[incidence.arc];
    if (arc.tail == node)
      visit(incidence.arc, arc.head == Network::kSink ? -1 : ActivityOf(arc.head));
  }
}

}  // namespace

void PushEarliest(const Network& network, std::span<const int> activities, Timetable* table) {
  for (const int activity : activities) {
    std::int64_t start = 0;
    ForPredecessors(network, activity, [&](int index, int before) {
      const Network::Arc& arc = network.arcs[index];
      start = std::max(start, arc.length + (before < 0 ? 0 : table->earliest_end[before]));
    });
    table->earliest_end[activity] = start + table->length[activity];
  }
}

void PullLatest(const Network& network, std::span<const int> activities, std::int64_t deadline,
                Timetable* table) {
  for (auto activity = activities.rbegin(); activity != activities.rend(); ++activity) {
    std::int64_t end = deadline;
    ForSuccessors(network, *activity, [&](int index, int after) {
      const Network::Arc& arc = network.arcs[index];
      end = std::min(end, (after < 0 ? deadline : table->latest_start[after]) - arc.length);
    });
    table->latest_start[*activity] = end - table->length[*activity];
  }
}

void IndexArcs(Network* network) {
  network->first_incidence.assign(network->num_nodes() + 1, 0);
  for (const Network::Arc& arc : network->arcs) {
    ++network->first_incidence[arc.tail + 1];
    ++network->first_incidence[arc.head + 1];
  }
  for (int v = 0; v < network->num_nodes(); ++v) {
    network->first_incidence[v + 1] += network->first_incidence[v];
  }
  network->incidences.resize(2 * network->arcs.size());
  std::vector<int> next(network->first_incidence.begin(), network->first_incidence.end() - 1);
  for (int a = 0; a < static_cast<int>(network->arcs.size()); ++a) {
    const Network::Arc& arc = network->arcs[a];
    network->incidences[next[arc.tail]++] = {a, arc.head};
    network->incidences[next[arc.head]++] = {a, arc.tail};
  }
}

PartNetwork::PartNetwork(const Network& whole, const frontier::DeadlineProgram& relaxation)
    : whole_(whole), relaxation_(relaxation), local_(whole.num_activities, -1) {
  network_.scale = whole.scale;
  network_.curves = whole.curves;
}

void PartNetwork::Begin(std::span<const int> activities) {
  const int size = static_cast<int>(activities.size());
  network_.num_activities = size;
  network_.curve_of.clear();
  network_.arcs.clear();
  network_.topological_order.clear();
  starts_.clear();
  for (int k = 0; k < size; ++k) {
    starts_.push_back(relaxation_.StartOf(activities[k]));
    local_[activities[k]] = k;
    network_.curve_of.push_back(whole_.curve_of[activities[k]]);
  }
}

std::optional<frontier::DeadlineProgram> PartNetwork::Program(std::int64_t* work) const {
  auto program = frontier::DeadlineProgram::FromFlow(network_, starts_, time_);
  *work += std::int64_t{4} * network_.num_nodes() + (program ? program->work() : 0);
  return program;
}

void WindowNetwork::Cut(std::span<const int> activities, const Timetable& table,
                        std::int64_t deadline) {
  const int size = static_cast<int>(activities.size());
  Begin(activities);
  for (int k = 0; k < size; ++k) {
    network_.topological_order.push_back(k);
    network_.arcs.push_back({Network::StartNode(k), Network::EndNode(k), 0});
  }
  struct Border {
    int activity;
    std::int64_t time;
    std::int64_t flow;  // Of all arcs that are cut, together.
  };
  std::vector<Border> releases;
  std::vector<Border> dues;
  for (int k = 0; k < size; ++k) {
    std::int64_t release = 0;
    std::int64_t flow = 0;
    bool has_release = false;
    bool has_inner = false;
    ForPredecessors(whole_, activities[k], [&](int index, int before) {
      const Network::Arc& arc = whole_.arcs[index];
      const frontier::DeadlineProgram::ArcStart start = relaxation_.StartOf(index);
      if (before >= 0 && local_[before] >= 0) {
        has_inner = true;
        network_.arcs.push_back(
            {Network::EndNode(local_[before]), Network::StartNode(k), arc.length});
        starts_.push_back(start);
        return;
      }
      has_release = true;
      flow += start.flow;
      release = std::max(release, arc.length + (before < 0 ? 0 : table.earliest_end[before]));
    });
    if (has_release || !has_inner) releases.push_back({k, release, flow});
    std::int64_t due = deadline;
    flow = 0;
    bool has_due = false;
    has_inner = false;
    ForSuccessors(whole_, activities[k], [&](int index, int after) {
      const Network::Arc& arc = whole_.arcs[index];
      const frontier::DeadlineProgram::ArcStart start = relaxation_.StartOf(index);
      if (after >= 0 && local_[after] >= 0) {
        has_inner = true;
        return;
      }
      has_due = true;
      flow += start.flow;
      due = std::min(due, (after < 0 ? deadline : table.latest_start[after]) - arc.length);
    });
    if (has_due || !has_inner) dues.push_back({k, due, flow});
  }
  network_.num_precedences = static_cast<int>(network_.arcs.size()) - size;
  std::int64_t first = std::numeric_limits<std::int64_t>::max();
  std::int64_t last = 0;
  for (const Border& release : releases) first = std::min(first, release.time);
  for (const Border& due : dues) last = std::max(last, due.time);
  time_ = last - first;
  for (const Border& release : releases) {
    network_.arcs.push_back(
        {Network::kSource, Network::StartNode(release.activity), release.time - first});
    starts_.push_back({release.flow, false});
  }
  for (const Border& due : dues) {
    network_.arcs.push_back({Network::EndNode(due.activity), Network::kSink, last - due.time});
    starts_.push_back({due.flow, false});
  }
  for (const int activity : activities) local_[activity] = -1;

  IndexArcs(&network_);
}

}  // namespace perseus::plan
