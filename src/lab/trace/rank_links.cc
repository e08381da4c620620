// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "trace/rank_links.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <tuple>

namespace perseus::trace {
namespace {

using enum OperationKind;

class RankLinks {
 public:
  RankLinks(const Recording& recording, int first, int last, std::vector<Wait>* waits,
            std::vector<int>* computation_of)
      : recording_(recording), waits_(waits), computation_of_(computation_of) {
    for (int i = first; i < last; ++i) {
      const OperationKind kind = At(i).kind;
      Of(kind).push_back(i);
      if (IsComputation(kind)) computations_.push_back(i);
    }
    std::sort(computations_.begin(), computations_.end(),
              [&](int a, int b) { return Started(a) < Started(b); });
  }

  Result<void> Link() {
    Chain(computations_);
    for (const OperationKind kind :
         {kForwardSend, kForwardReceive, kBackwardSend, kBackwardReceive}) {
      Chain(Of(kind));
      if (auto good = LinkTransfers(kind); !good) return good;
    }
    LinkFirstBackwardTransfers();
    LinkGathers();
    LinkTail();
    return {};
  }

 private:
  const Operation& At(int operation) const { return recording_.operations[operation]; }
  std::vector<int>& Of(OperationKind kind) { return of_kind_[static_cast<std::size_t>(kind)]; }
  std::tuple<double, int, OperationKind> Started(int operation) const {
    return {At(operation).start_seconds, At(operation).sequence, At(operation).kind};
  }
  void Add(int from, int to) { waits_->push_back({from, to}); }
  void Chain(const std::vector<int>& operations) {
    for (std::size_t i = 1; i < operations.size(); ++i) Add(operations[i - 1], operations[i]);
  }

  // Whether a computation's output (input) goes to (comes from) another stage.
  bool HasPeer(int computation, OperationKind transfer) const {
    const int last = recording_.virtual_stages * recording_.stages - 1;
    const bool upwards = transfer == kForwardSend || transfer == kBackwardReceive;
    return recording_.stages > 1 && At(computation).block != (upwards ? last : 0);
  }

  // One transfer for each computation that needs one; or one for each at all, of
  // which some moved nothing.
  Result<void> LinkTransfers(OperationKind kind) {
    const std::vector<int>& transfers = Of(kind);
    const std::vector<int>& all = Of(IsForward(kind) ? kForward : kBackward);
    std::vector<int> needed;
    std::copy_if(all.begin(), all.end(), std::back_inserter(needed),
                 [&](int computation) { return HasPeer(computation, kind); });
    if (transfers.size() != needed.size() && transfers.size() != all.size()) {
      const Operation& any = At(transfers.empty() ? all.front() : transfers.front());
      return InvalidInput(fmt::format(
          "{}:{}: step {}, dp_rank {}, stage {} has {} {} for {} computations that need one",
          recording_.source, any.line, any.step, any.pipeline, any.stage, transfers.size(),
          OperationKindName(kind), needed.size()));
    }
    const std::vector<int>& served = transfers.size() == needed.size() ? needed : all;
    for (std::size_t i = 0; i < transfers.size(); ++i) {
      const int computation = served[i];
      if (HasPeer(computation, kind)) (*computation_of_)[transfers[i]] = computation;
      if (IsSend(kind)) {
        Add(computation, transfers[i]);
        continue;
      }
      Add(transfers[i], computation);
      const int sequence = At(computation).sequence;
      if (sequence > 0) Add(all[static_cast<std::size_t>(sequence) - 1], transfers[i]);
    }
    return {};
  }

  // They are begun with the transfers of the forward before the last one of the
  // warm-up, as one call of the framework.
  void LinkFirstBackwardTransfers() {
    const auto first =
        std::find_if(computations_.begin(), computations_.end(),
                     [&](int computation) { return At(computation).kind == kBackward; });
    if (first - computations_.begin() < 2) return;
    for (const OperationKind kind : {kBackwardReceive, kBackwardSend}) {
      if (!Of(kind).empty()) Add(*(first - 2), Of(kind).front());
    }
  }

  // Parameters are gathered chunk by chunk, before the chunk's first forward.
  void LinkGathers() {
    std::vector<int> stream = Of(kGather);
    stream.insert(stream.end(), Of(kScatter).begin(), Of(kScatter).end());
    Chain(stream);
    std::map<int, int> last_of_chunk;
    for (const int gather : Of(kGather)) last_of_chunk[At(gather).chunk] = gather;
    for (const auto& [chunk, gather] : last_of_chunk) {
      const auto first = std::find_if(computations_.begin(), computations_.end(),
                                      [&, wanted = chunk](int computation) {
                                        return At(computation).kind == kForward &&
                                               (wanted < 0 || At(computation).chunk == wanted);
                                      });
      if (first != computations_.end()) Add(gather, *first);
    }
  }

  // What follows the last computation. Where gradients are reduced chunk by chunk
  // behind the computations, which "separate" ones tell, only the rest follows.
  void LinkTail() {
    const int last =
        *std::max_element(computations_.begin(), computations_.end(),
                          [&](int a, int b) { return At(a).end_seconds() < At(b).end_seconds(); });
    const bool overlapped = !Of(kSeparateGradients).empty();
    std::vector<int> tail = {last};
    const auto append = [&](OperationKind kind) {
      tail.insert(tail.end(), Of(kind).begin(), Of(kind).end());
    };
    append(kCollectGarbage);
    append(kLayerNorm);
    append(kEmbedding);
    append(overlapped ? kSeparateGradients : kScatter);
    append(kClip);
    append(kOptimizer);
    Chain(tail);
    if (!overlapped || Of(kScatter).empty()) return;
    if (!Of(kLayerNorm).empty()) Add(Of(kScatter).back(), Of(kLayerNorm).front());
    std::map<int, int> first_of_chunk;
    for (const int scatter : Of(kScatter)) first_of_chunk.try_emplace(At(scatter).chunk, scatter);
    for (const auto& [chunk, scatter] : first_of_chunk) {
      for (auto it = computations_.rbegin(); it != computations_.rend(); ++it) {
        if (At(*it).kind != kBackward || (chunk >= 0 && At(*it).chunk != chunk)) continue;
        Add(*it, scatter);
        break;
      }
    }
  }

  const Recording& recording_;
  std::vector<Wait>* waits_;
  std::vector<int>* computation_of_;
  std::array<std::vector<int>, kNumOperationKinds> of_kind_;  // In order of sequence.
  std::vector<int> computations_;                             // In order of start.
};

}  // namespace

Result<void> LinkRank(const Recording& recording, int first, int last, std::vector<Wait>* waits,
                      std::vector<int>* computation_of) {
  return RankLinks(recording, first, last, waits, computation_of).Link();
}

}  // namespace perseus::trace
