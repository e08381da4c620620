// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "server/domain/profiling_summary.h"

namespace perseus::server {
namespace {

constexpr Field kProfileCellFields[] = {
    Value<&ProfileKey::stage>("stage"),
    Choice<&ProfileKey::type>("instruction", kComputationTypeNames),
    Value<&ProfileKey::clock_mhz>("frequency")};

struct WaitingShown {
  std::size_t pp_rank = 0;
  int clock_mhz = 0;
  BlockingPower power = {};
};
constexpr double kDoubtfulWaiting = 0.1;  // Relative standard error.
constexpr Field kWaitingShownFields[] = {
    Value<&WaitingShown::pp_rank>("pp_rank").Sometimes(),
    Value<&WaitingShown::clock_mhz>("frequency").Sometimes(),
    Value<&WaitingShown::power, &BlockingPower::watts>("power_w").Sometimes(),
    Value<&WaitingShown::power, &BlockingPower::std_watts>("power_std_w").Sometimes(),
    Value("doubtful",
          [](const WaitingShown& shown) {
            return shown.power.std_watts > kDoubtfulWaiting * shown.power.watts;
          })
        .Sometimes()
        .Says("Its standard error is above a tenth of it.")};
constexpr Message<WaitingShown> kWaitingShown = {"WaitingShown", kWaitingShownFields};
std::vector<WaitingShown> WaitingOf(const ProfilingSummary& summary) {
  std::vector<WaitingShown> list;
  for (std::size_t pp_rank = 0; pp_rank < summary.waiting.size(); ++pp_rank) {
    for (const auto& [mhz, power] : summary.waiting[pp_rank]) list.push_back({pp_rank, mhz, power});
  }
  return list;
}
constexpr Field kSweepShownFields[] = {
    Value<&SweepSummary::ranks>("ranks").Sometimes(),
    Value<&SweepSummary::cost, &store::SweepCost::iterations>("iterations").Sometimes(),
    Value<&SweepSummary::cost, &store::SweepCost::seconds>("seconds").Sometimes(),
    Value<&SweepSummary::cost, &store::SweepCost::joules>("joules").Sometimes(),
    Value<&SweepSummary::cost, &store::SweepCost::extra_seconds>("extra_seconds").Sometimes(),
    Value<&SweepSummary::cost, &store::SweepCost::extra_joules>("extra_joules").Sometimes(),
    Value<&SweepSummary::counter_period_seconds>("counter_period_s").Optional().UnlessEmpty()};
constexpr Message<SweepSummary> kSweepShown = {"SweepShown", kSweepShownFields};

using NoteOfRanks = std::pair<std::string, std::set<int>>;
constexpr std::size_t kMostRanksShown = 8;  // Of a note.
constexpr Field kNoteShownFields[] = {
    Value<&NoteOfRanks::first>("note").Sometimes(),
    Value("ranks", [](const NoteOfRanks& note) { return note.second.size(); })
        .Sometimes()
        .Says("How many ranks said it."),
    Value("first_ranks",
          [](const NoteOfRanks& note) {
            std::vector<int> ranks(note.second.begin(), note.second.end());
            ranks.resize(std::min(ranks.size(), kMostRanksShown));
            return ranks;
          })
        .Sometimes()
        .Says("The first of them.")};
constexpr Message<NoteOfRanks> kNoteShown = {"NoteShown", kNoteShownFields};
template <double BlockingPower::*kMember>
std::vector<double> OfStages(const ProfilingSummary& summary) {
  std::vector<double> watts;
  for (const BlockingPower& power : summary.blocking) watts.push_back(power.*kMember);
  return watts;
}
constexpr Field kProfilingFields[] = {
    Value<OfStages<&BlockingPower::watts>>("blocking_power_w")
        .Sometimes()
        .Says("By rank of the pipeline."),
    Value<OfStages<&BlockingPower::std_watts>>("blocking_power_std_w").Sometimes(),
    Object<WaitingOf>("waiting", kWaitingShown)
        .Sometimes()
        .Says("What a GPU that waits draws by clock. Empty: no rank's sweep shows that it depends "
              "on the clock, so `blocking_power_w` is taken as constant."),
    Object<&ProfilingSummary::sweep>("sweep", kSweepShown)
        .Optional()
        .Says("Of the longest rank; joules of all ranks."),
    Object<&ProfilingSummary::throttled>("throttled", kProfileCell)
        .Sometimes()
        .Says("Rows that only GPUs measured which slowed themselves down."),
    Object<&ProfilingSummary::notes>("notes", kNoteShown).Sometimes()};

}  // namespace

constexpr Message<ProfileKey> kProfileCell = {"ProfileCell", kProfileCellFields};
constexpr Message<ProfilingSummary> kProfilingSummary = {"", kProfilingFields};

ProfilingSummary SummaryOf(const ProfileTable& table, int pipeline_parallel) {
  ProfilingSummary summary;
  summary.blocking = table.Blocking(pipeline_parallel);
  summary.waiting = table.Waiting(pipeline_parallel);
  summary.sweep = table.Sweep();
  summary.throttled = table.Throttled();
  for (const auto& [note, ranks] : table.notes()) summary.notes.emplace_back(note, ranks);
  return summary;
}

}  // namespace perseus::server
