// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "plan/window_network.h"

#include <algorithm>
#include <cstddef>
#include <limits>

namespace perseus::plan {
namespace {

using frontier::Network;

// Of the activity whose start or end node this is.
int ActivityOf(int node) { return (node - 2) / 2; }

// Calls visit(arc, activity) for every arc that comes from another activity,
// or (arc, -1) for one from the source.
template <typename Visit>
void ForPredecessors(const Network& network, int activity, const Visit& visit) {
  const int node = Network::StartNode(activity);
  for (const Network::Incidence& incidence : network.IncidencesOf(node)) {
    const Network::Arc& arc = network.arcs[incidence.arc];
    if (arc.head == node) visit(arc, arc.tail == Network::kSource ? -1 : ActivityOf(arc.tail));
  }
}

template <typename Visit>
void ForSuccessors(const Network& network, int activity, const Visit& visit) {
  const int node = Network::EndNode(activity);
  for (const Network::Incidence& incidence : network.IncidencesOf(node)) {
    const Network::Arc& arc = network.arcs[incidence.arc];
    if (arc.tail == node) visit(arc, arc.head == Network::kSink ? -1 : ActivityOf(arc.head));
  }
}

}  // namespace

void PushEarliest(const Network& network, std::span<const int> activities, Timetable* table) {
  for (const int activity : activities) {
    std::int64_t start = 0;
    ForPredecessors(network, activity, [&](const Network::Arc& arc, int before) {
      start = std::max(start, arc.length + (before < 0 ? 0 : table->earliest_end[before]));
    });
    table->earliest_end[activity] = start + table->length[activity];
  }
}

void PullLatest(const Network& network, std::span<const int> activities, std::int64_t deadline,
                Timetable* table) {
  for (auto activity = activities.rbegin(); activity != activities.rend(); ++activity) {
    std::int64_t end = deadline;
    ForSuccessors(network, *activity, [&](const Network::Arc& arc, int after) {
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

WindowNetwork::WindowNetwork(const Network& whole)
    : whole_(whole), local_(whole.num_activities, -1) {
  network_.scale = whole.scale;
  network_.curves = whole.curves;
}

void WindowNetwork::Cut(std::span<const int> activities, const Timetable& table,
                        std::int64_t deadline) {
  const int size = static_cast<int>(activities.size());
  network_.num_activities = size;
  network_.curve_of.clear();
  network_.arcs.clear();
  network_.topological_order.clear();
  for (int k = 0; k < size; ++k) {
    local_[activities[k]] = k;
    network_.curve_of.push_back(whole_.curve_of[activities[k]]);
    network_.topological_order.push_back(k);
    network_.arcs.push_back({Network::StartNode(k), Network::EndNode(k), 0});
  }
  struct Border {
    int activity;
    std::int64_t time;
  };
  std::vector<Border> releases;
  std::vector<Border> dues;
  for (int k = 0; k < size; ++k) {
    std::int64_t release = 0;
    bool has_release = false;
    bool has_inner = false;
    ForPredecessors(whole_, activities[k], [&](const Network::Arc& arc, int before) {
      if (before >= 0 && local_[before] >= 0) {
        has_inner = true;
        network_.arcs.push_back(
            {Network::EndNode(local_[before]), Network::StartNode(k), arc.length});
        return;
      }
      has_release = true;
      release = std::max(release, arc.length + (before < 0 ? 0 : table.earliest_end[before]));
    });
    if (has_release || !has_inner) releases.push_back({k, release});
    std::int64_t due = deadline;
    bool has_due = false;
    has_inner = false;
    ForSuccessors(whole_, activities[k], [&](const Network::Arc& arc, int after) {
      if (after >= 0 && local_[after] >= 0) {
        has_inner = true;
        return;
      }
      has_due = true;
      due = std::min(due, (after < 0 ? deadline : table.latest_start[after]) - arc.length);
    });
    if (has_due || !has_inner) dues.push_back({k, due});
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
  }
  for (const Border& due : dues) {
    network_.arcs.push_back({Network::EndNode(due.activity), Network::kSink, last - due.time});
  }
  for (const int activity : activities) local_[activity] = -1;

  IndexArcs(&network_);
}

std::optional<frontier::DeadlineProgram> WindowNetwork::Program(std::int64_t* work) const {
  frontier::Walk walk(network_);
  while (!walk.at_fastest() && walk.next_time() > time_) walk.Advance();
  *work += walk.work() + network_.num_nodes() * 4;
  if (walk.at_fastest() && walk.time() > time_) return std::nullopt;
  return frontier::DeadlineProgram(network_, walk, std::min(walk.time(), time_));
}

}  // namespace perseus::plan
