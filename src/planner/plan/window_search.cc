// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "plan/window_search.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <optional>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include "plan/option_search.h"

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

// From durations to clocks where there are many.
//
// A dive (option_search.cc) over a whole pipeline re-optimises the whole
// pipeline for each computation: its cost grows with the square of their
// number. But what rounding one computation loses or wins is best made good
// nearby. So the dive is done window by window, along a topological order:
//
// Construction. The window starts when what was chosen before it ends, and ends
// when the relaxation wants what comes after it to start. It is a small problem,
// solved exactly from the prices of the whole; a dive rounds it, its first part
// is kept, and the window moves on. There is always a solution: the relaxation's
// durations of the last part are still one.
//
// Passes. Given a choice, the window lies between what comes before it, as
// early as it can be, and what comes after it, as late as it can be: all slack
// is the window's. A dive that ends below the cost of what is there replaces
// it.
//
// Which construction and which pass is best is luck, so they alternate: each
// construction in another style gets some passes, then the best choice gets
// some. The sequence is the same whatever the limit of work.

namespace {

using frontier::DeadlineProgram;
using frontier::Int128;
using frontier::kNoLimit;
using frontier::Network;
using Order = DiveStyle::Order;

// How to go over the activities.
struct PassStyle {
  int window = 0;  // Activities at once,
  int step = 0;    // by which the window moves.
  int offset = 0;  // Length of the first step, if not 0.
  DiveStyle dive;
};

// The constructions, best first for what they cost. A window of 0: as long as
// kLongShare of the usual work allows.
constexpr std::array<PassStyle, 6> kConstructions = {{
    {.window = 64, .step = 16, .dive = {.candidates = 2}},
    {.window = 128,
     .step = 64,
     .dive = {.order = Order::kRankByRank, .candidates = 2, .look_ahead = false}},
    {.dive = {.order = Order::kRankByRank, .candidates = 2, .look_ahead = false}},
    {.dive = {.order = Order::kLastRankFirst, .candidates = 2}},
    {.dive = {.candidates = 3}},
    {.dive = {.backward = true, .candidates = 2}},
}};
constexpr std::size_t kShortConstructions = 1;
constexpr double kLongShare = 0.4;
// The most work of a dive, for each pair of an activity and one in its window. Rank by rank, fixed
// activities lie together, and less changes.
constexpr double kWorkPerPair = 40;
constexpr double kWorkPerPairOfRanks = 10;
constexpr std::array<int, 3> kPassWindows = {32, 64, 128};
// Within a pass what is better is offered whenever so many activities are done. Within the first
// construction an offer goes over all that are left: where there are very many activities, when
// twice as many are done, and then some kMostOffers times, up to twice that by rounding.
constexpr int kOfferEvery = 256;
constexpr int kMostOffers = 32;
// Rank by rank wins most often; one pass in so many goes another way.
constexpr int kPassesPerOther = 3;
constexpr int kMostFailedPasses = 256;  // In a row.

// A choice for every activity, and when they run.
struct Choice {
  std::vector<int> knobs;
  Int128 cost = kNoLimit;
};

class WindowSearch {
 public:
  WindowSearch(const Network& network, const DeadlineProgram& program, std::int64_t deadline,
               const SearchSpace& space, const SearchBudget& budget, const ChoiceReport& report)
      : network_(network),
        program_(program),
        space_(space),
        deadline_(deadline),
        report_(report),
        work_limit_(budget.limit),
        window_(network, program) {
    const std::size_t size = network.curve_of.size();
    long_work_ = kLongShare * static_cast<double>(budget.usual);
    for (std::size_t i = 0; i < size; ++i) {
      durations_.push_back(program.Duration(static_cast<int>(i)));
    }
    order_ = network.topological_order;
    std::stable_sort(order_.begin(), order_.end(), [&program](int a, int b) {
      return program.StartTime(a) < program.StartTime(b);
    });
    position_.resize(size);
    for (std::size_t k = 0; k < size; ++k) position_[order_[k]] = static_cast<int>(k);
    part_.options = space.options;
    table_.length.resize(size);
    table_.earliest_end.resize(size);
    table_.latest_start.resize(size);
  }

  void Run() {
    RoundDown();
    int failed_passes = 0;
    for (std::size_t round = 0; !IsOver() && failed_passes < kMostFailedPasses; ++round) {
      const std::int64_t work_before = work_;
      if (const std::optional<PassStyle> style = ConstructionOf(round)) {
        Choice made = Construct(*style, /*tells=*/round == 0);
        const std::int64_t until =
            work_ + (round < kShortConstructions ? 1 : 0) * (work_ - work_before) + WorkOfRound();
        Offer(made);
        while (!IsOver() && !made.knobs.empty() && work_ < until) {
          Pass(NextPass(), &made);
          Offer(made);
        }
      }
      const std::int64_t until = work_ + std::max((work_ - work_before) / 2, WorkOfRound());
      while (!IsOver() && work_ < until && failed_passes < kMostFailedPasses) {
        Choice better = best_;
        const Int128 before = best_.cost;
        Pass(NextPass(), &better);
        Offer(better);
        failed_passes = best_.cost < before ? 0 : failed_passes + 1;
      }
    }
  }

 private:
  const GridOption& OptionOf(int activity, int knob) const {
    return space_.options[network_.curve_of[activity]][knob];
  }
  bool IsOver() const { return stopped_ || work_ >= work_limit_; }
  std::int64_t WorkOfRound() const { return 1000 * static_cast<std::int64_t>(order_.size()); }

  // Keeps and reports what is better. Not what the limit has cut short: with a
  // higher one it would not be in the sequence.
  bool Offer(const Choice& choice) {
    if (IsOver() && !best_.knobs.empty()) return false;
    const bool better = !choice.knobs.empty() && choice.cost < best_.cost;
    if (better) best_ = choice;
    if (!report_(better ? &best_.knobs : nullptr, work_)) stopped_ = true;
    return better;
  }

  // The slowest option of an activity that takes at most so long.
  int SlowestWithin(int activity, std::int64_t length) const {
    const std::vector<int>& knobs = space_.knobs[activity];
    const auto fits = [&](int knob) { return OptionOf(activity, knob).length <= length; };
    return *(std::find_if_not(knobs.begin() + 1, knobs.end(), fits) - 1);
  }

  // Every activity at its slowest option within its duration, and what uses the time that this
  // leaves: there at once.
  void RoundDown() {
    const Choice none = {.knobs = std::vector<int>(order_.size()), .cost = 0};
    Choice choice = none;
    for (const int i : order_) {
      choice.knobs[i] = SlowestWithin(i, durations_[i]);
      choice.cost += OptionOf(i, choice.knobs[i]).cost;
    }
    work_ += static_cast<std::int64_t>(order_.size());
    Offer(choice);
    StartFromRelaxation();
    work_ += static_cast<std::int64_t>(order_.size());
    Offer(RoundedForward(none, 0));
  }

  void StartFromRelaxation() {
    table_.length = durations_;
    PushEarliest(network_, order_, &table_);
    PullLatest(network_, order_, deadline_, &table_);
  }

  // Keeps the options of the activities before `first`, and gives each of the others, one after the
  // other, its slowest option from when it can start until the relaxation wants it to end.
  Choice RoundedForward(const Choice& made, int first) const {
    Choice choice = made;
    Timetable rounded = table_;
    for (std::size_t k = first; k < order_.size(); ++k) {
      const int i = order_[k];
      rounded.length[i] = 0;
      PushEarliest(network_, {&order_[k], 1}, &rounded);
      const std::int64_t until = table_.latest_start[i] + durations_[i];
      choice.knobs[i] = SlowestWithin(i, until - rounded.earliest_end[i]);
      choice.cost += OptionOf(i, choice.knobs[i]).cost;
      rounded.earliest_end[i] += OptionOf(i, choice.knobs[i]).length;
    }
    return choice;
  }

  // How to construct in a round, if at all.
  std::optional<PassStyle> ConstructionOf(std::size_t round) const {
    if (round >= kConstructions.size()) return std::nullopt;
    PassStyle style = kConstructions[round];
    if (style.window == 0) {
      style.window = LongWindow(style.dive.order);
      style.step = std::max(1, style.window * 3 / 4);
    }
    return style;
  }

  int LongWindow(Order order) const {
    const double size = static_cast<double>(order_.size());
    const double per_pair = order == Order::kByTime ? kWorkPerPair : kWorkPerPairOfRanks;
    return static_cast<int>(std::clamp(long_work_ / per_pair / size, 64.0, size));
  }

  // Without looking ahead: twice as many passes win more.
  PassStyle NextPass() {
    PassStyle style;
    style.window = kPassWindows[random_() % kPassWindows.size()];
    style.step = style.window / 2;
    style.offset = static_cast<int>(random_() % static_cast<std::uint32_t>(style.step));
    style.dive = {.order = Order::kRankByRank, .candidates = 2, .look_ahead = false};
    if (passes_ % kPassesPerOther == kPassesPerOther - 1) {
      style.dive = StyleOfDive(passes_, &random_);
    }
    ++passes_;
    return style;
  }

  std::span<const int> Stretch(int first, int last) const {
    return {order_.data() + first, order_.data() + last};
  }

  // Cuts the window out of the network, and the space with it.
  std::optional<DeadlineProgram> Cut(std::span<const int> window) {
    window_.Cut(window, table_, deadline_);
    part_.knobs.resize(window.size());
    part_.next.assign(window.size(), -1);
    const int first = position_[window.front()];
    for (std::size_t k = 0; k < window.size(); ++k) {
      part_.knobs[k] = space_.knobs[window[k]];
      const int next = space_.next[window[k]];
      if (next >= 0 && position_[next] - first < static_cast<int>(window.size())) {
        part_.next[k] = position_[next] - first;
      }
    }
    return window_.Program(&work_);
  }

  // Dives into what Cut() gave. The first `wanted` activities of the window
  // are enough. Empty where its bound passes the limit, or out of work.
  std::vector<int> DiveInto(DeadlineProgram relaxation, const DiveStyle& style, int wanted,
                            Int128 limit) {
    PartialChoice program(window_.network(), std::move(relaxation), part_);
    const std::int64_t before = program.work();
    const ActivityOrder order(part_, program.program());
    std::vector<int> activities = order.OfDive(style, &random_);
    if (style.order == Order::kByTime && !style.backward) {
      std::erase_if(activities, [wanted](int activity) { return activity >= wanted; });
    }
    const Dive::Outcome outcome =
        Dive(part_, order, style, &program).Run(activities, limit, before + work_limit_ - work_);
    work_ += program.work() - before;
    if (outcome != Dive::Outcome::kDone) return {};
    return program.chosen();
  }

  // The same in one dive, from the relaxation as it is.
  Choice ConstructAtOnce(const DiveStyle& style) {
    PartialChoice program(network_, program_, space_);
    const std::int64_t before = program.work();
    const ActivityOrder order(space_, program.program());
    const std::vector<int> activities = order.OfDive(style, &random_);
    const Dive::Outcome outcome = Dive(space_, order, style, &program)
                                      .Run(activities, kNoLimit, before + work_limit_ - work_);
    work_ += program.work() - before;
    if (outcome != Dive::Outcome::kDone) return {};
    return {.knobs = program.chosen(), .cost = program.objective()};
  }

  // A choice made from the relaxation; without knobs where there is none in
  // time.
  Choice Construct(const PassStyle& style, bool tells) {
    if (style.window >= static_cast<int>(order_.size())) return ConstructAtOnce(style.dive);
    StartFromRelaxation();
    const int size = static_cast<int>(order_.size());
    Choice choice = {.knobs = std::vector<int>(order_.size(), -1), .cost = 0};
    int next_offer = kOfferEvery;
    for (int first = 0; first < size;) {
      if (IsOver()) return {};
      const int last = std::min(size, first + style.window);
      const int kept = last == size ? size : first + style.step;
      auto relaxation = Cut(Stretch(first, last));
      if (!relaxation) return {};
      const std::vector<int> knobs =
          DiveInto(*std::move(relaxation), style.dive, kept - first, kNoLimit);
      if (knobs.empty()) return {};
      for (int k = first; k < kept; ++k) {
        const int i = order_[k];
        choice.knobs[i] = knobs[k - first];
        choice.cost += OptionOf(i, choice.knobs[i]).cost;
        table_.length[i] = OptionOf(i, choice.knobs[i]).length;
      }
      PushEarliest(network_, Stretch(first, kept), &table_);
      if (tells && kept >= next_offer && kept < size && !IsOver()) {
        const int step = std::clamp(kept, kOfferEvery, std::max(kOfferEvery, size / kMostOffers));
        next_offer = (kept / kOfferEvery) * kOfferEvery + step;
        Offer(RoundedForward(choice, kept));
        work_ += size - kept;
      }
      first = kept;
    }
    return choice;
  }

  // Goes over a choice and improves it where it can.
  void Pass(const PassStyle& style, Choice* choice) {
    const int size = static_cast<int>(order_.size());
    for (int i = 0; i < size; ++i) table_.length[i] = OptionOf(i, choice->knobs[i]).length;
    PullLatest(network_, order_, deadline_, &table_);
    work_ += size;
    for (int first = 0; first < size && !IsOver();) {
      const int last = std::min(size, first + style.window);
      Int128 now = 0;
      for (const int i : Stretch(first, last)) now += OptionOf(i, choice->knobs[i]).cost;
      auto relaxation = Cut(Stretch(first, last));
      if (relaxation && relaxation->objective() < now) {
        const std::vector<int> knobs =
            DiveInto(*std::move(relaxation), style.dive, last - first, now - 1);
        for (std::size_t k = 0; k < knobs.size(); ++k) {
          const int i = order_[first + k];
          choice->cost += OptionOf(i, knobs[k]).cost - OptionOf(i, choice->knobs[i]).cost;
          choice->knobs[i] = knobs[k];
          table_.length[i] = OptionOf(i, knobs[k]).length;
        }
      }
      const int next = last == size                     ? size
                       : first == 0 && style.offset > 0 ? style.offset
                                                        : first + style.step;
      PushEarliest(network_, Stretch(first, next), &table_);
      // Now and then in between, lest a limit lose a whole pass.
      if (next < size && next / kOfferEvery != first / kOfferEvery) Offer(*choice);
      first = next;
    }
  }

  const Network& network_;
  const DeadlineProgram& program_;  // With everything free.
  const SearchSpace& space_;
  const std::int64_t deadline_;
  const ChoiceReport& report_;
  const std::int64_t work_limit_;
  double long_work_ = 0;                 // Of a construction in long windows.
  std::vector<std::int64_t> durations_;  // [activity], of the relaxation.
  std::vector<int> order_;               // Topological.
  std::vector<int> position_;            // [activity] in order_.
  WindowNetwork window_;
  SearchSpace part_;  // Of the window.
  Timetable table_;
  Choice best_;
  std::int64_t work_ = 0;
  int passes_ = 0;
  bool stopped_ = false;
  std::mt19937 random_;  // Its sequence is fixed by the standard.
};

}  // namespace

void SearchWindows(const Network& network, const DeadlineProgram& program, std::int64_t deadline,
                   const SearchSpace& space, const SearchBudget& budget,
                   const ChoiceReport& report) {
  WindowSearch(network, program, deadline, space, budget, report).Run();
}

}  // namespace perseus::plan
