// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "trace/links.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "trace/rank_links.h"

namespace perseus::trace {
namespace {

using enum OperationKind;

// Who works together: operations of equal keys.
struct GroupKey {
  std::array<int, 5> words = {};
  int operation = 0;

  friend auto operator<=>(const GroupKey&, const GroupKey&) = default;
};

GroupKey KeyOfGroup(const Recording& recording, int number, int step_index, int computation) {
  const Operation& operation = recording.operations[number];
  const int kind = static_cast<int>(operation.kind);
  switch (operation.kind) {
    case kForwardSend:
    case kForwardReceive:
    case kBackwardSend:
    case kBackwardReceive: {
      if (computation < 0) break;
      // The boundary is named by the block that receives.
      const Operation& moved = recording.operations[computation];
      const bool forward = IsForward(operation.kind);
      const int receiver = moved.block + (IsSend(operation.kind) ? (forward ? 1 : -1) : 0);
      return {{step_index, forward ? 0 : 1, operation.pipeline, receiver, moved.microbatch},
              number};
    }
    case kEmbedding:
      return {{step_index, kind, operation.pipeline, 0, operation.sequence}, number};
    case kClip:
      return {{step_index, kind, 0, 0, operation.sequence}, number};
    case kGather:
    case kScatter:
    case kSeparateGradients:
      return {{step_index, kind, operation.stage, 0, operation.sequence}, number};
    default:
      break;
  }
  return {{step_index, kNumOperationKinds, number, 0, 0}, number};
}

Result<void> CheckTransfer(const Recording& recording, const std::vector<int>& members) {
  const Operation& first = recording.operations[members.front()];
  if (!IsTransfer(first.kind)) return {};
  int sends = 0;
  for (const int member : members) sends += IsSend(recording.operations[member].kind) ? 1 : 0;
  if (members.size() == 2 && sends == 1) return {};
  return InvalidInput(fmt::format(
      "{}:{}: {} {} of step {}, dp_rank {}, stage {} has {} on the other side; expected one",
      recording.source, first.line, OperationKindName(first.kind), first.sequence, first.step,
      first.pipeline, first.stage, static_cast<int>(members.size()) - 1));
}

// Groups as lists, not yet in an order of running.
Result<std::vector<std::vector<int>>> FindGroups(const Recording& recording,
                                                 const std::vector<int>& computation_of) {
  std::vector<GroupKey> keys;
  keys.reserve(recording.operations.size());
  int step_index = 0;
  for (int i = 0; i < static_cast<int>(recording.operations.size()); ++i) {
    while (recording.steps[step_index] != recording.operations[i].step) ++step_index;
    keys.push_back(KeyOfGroup(recording, i, step_index, computation_of[i]));
  }
  std::sort(keys.begin(), keys.end());
  std::vector<std::vector<int>> groups;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (i == 0 || keys[i].words != keys[i - 1].words) groups.emplace_back();
    groups.back().push_back(keys[i].operation);
  }
  for (const std::vector<int>& group : groups) {
    if (computation_of[group.front()] < 0) continue;
    if (auto good = CheckTransfer(recording, group); !good) return tl::unexpected(good.error());
  }
  return groups;
}

void IndexWaits(const std::vector<Wait>& waits, int operations, Links* links) {
  links->first_wait.assign(operations + 1, 0);
  for (const Wait& wait : waits) ++links->first_wait[wait.to + 1];
  for (int i = 0; i < operations; ++i) links->first_wait[i + 1] += links->first_wait[i];
  links->waits.resize(waits.size());
  std::vector<int> next = links->first_wait;
  for (const Wait& wait : waits) links->waits[next[wait.to]++] = wait.from;
}

// An order in which groups can run; shorter than all where there is none.
std::vector<int> RunOrder(const std::vector<Wait>& waits, const std::vector<int>& group_of,
                          int groups) {
  std::vector<int> missing(groups, 0);
  std::vector<int> first(groups + 1, 0);
  for (const Wait& wait : waits) {
    ++missing[group_of[wait.to]];
    ++first[group_of[wait.from] + 1];
  }
  for (int i = 0; i < groups; ++i) first[i + 1] += first[i];
  std::vector<int> after(waits.size());
  std::vector<int> next = first;
  for (const Wait& wait : waits) after[next[group_of[wait.from]]++] = group_of[wait.to];
  std::vector<int> order;
  order.reserve(groups);
  for (int i = 0; i < groups; ++i) {
    if (missing[i] == 0) order.push_back(i);
  }
  for (std::size_t done = 0; done < order.size(); ++done) {
    for (int k = first[order[done]]; k < first[order[done] + 1]; ++k) {
      if (--missing[after[k]] == 0) order.push_back(after[k]);
    }
  }
  return order;
}

}  // namespace

Result<Links> LinkOperations(const Recording& recording) {
  const int operations = static_cast<int>(recording.operations.size());
  Links links;
  links.computation_of.assign(operations, -1);
  std::vector<Wait> waits;
  for (std::size_t cell = 0; cell + 1 < recording.first_of.size(); ++cell) {
    auto linked = LinkRank(recording, recording.first_of[cell], recording.first_of[cell + 1],
                           &waits, &links.computation_of);
    if (!linked) return tl::unexpected(linked.error());
  }
  const auto groups = FindGroups(recording, links.computation_of);
  if (!groups) return tl::unexpected(groups.error());
  std::vector<int> group_of(operations);
  for (std::size_t group = 0; group < groups->size(); ++group) {
    for (const int member : (*groups)[group]) group_of[member] = static_cast<int>(group);
  }
  const std::vector<int> order = RunOrder(waits, group_of, static_cast<int>(groups->size()));
  if (order.size() != groups->size()) {
    std::vector<bool> runs(groups->size());
    for (const int group : order) runs[group] = true;
    for (int i = 0; i < operations; ++i) {
      if (runs[group_of[i]]) continue;
      const Operation& stuck = recording.operations[i];
      return InvalidInput(fmt::format(
          "{}:{}: the operations of step {} wait for each other in a circle, {} {} of dp_rank {}, "
          "stage {} among them; are start times or microbatches (mb_id) mixed up?",
          recording.source, stuck.line, stuck.step, OperationKindName(stuck.kind), stuck.sequence,
          stuck.pipeline, stuck.stage));
    }
  }
  IndexWaits(waits, operations, &links);
  links.group_of.resize(operations);
  links.first_member.push_back(0);
  for (const int group : order) {
    for (const int member : (*groups)[group]) {
      links.group_of[member] = static_cast<int>(links.first_member.size()) - 1;
      links.members.push_back(member);
    }
    links.first_member.push_back(static_cast<int>(links.members.size()));
  }
  return links;
}

}  // namespace perseus::trace
