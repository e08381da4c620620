// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "relay/plan_set.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "common/numbers.h"
#include "relay/json_slices.h"

namespace perseus::relay {
namespace {

// More than any node asks for.
constexpr std::size_t kMostPlans = 4096;

tl::unexpected<Error> NoPlans(std::string_view why) {
  return MakeError(ErrorCode::kIo, fmt::format("the server's plans cannot be read: {}", why));
}

const JsonMember* FindMember(const std::vector<JsonMember>& members, std::string_view key) {
  const auto found = std::find_if(members.begin(), members.end(),
                                  [key](const JsonMember& member) { return member.key == key; });
  return found == members.end() ? nullptr : &*found;
}

}  // namespace

Result<std::shared_ptr<const PlanSet>> PlanSet::Parse(std::shared_ptr<const std::string> text) {
  if (text == nullptr || !IsJson(*text)) return NoPlans("they are not JSON");
  const auto members = MembersOf(*text);
  if (!members) return NoPlans("they are not a JSON object");
  const JsonMember* const version = FindMember(*members, "version");
  const auto number =
      version != nullptr ? ParseInteger<std::int64_t>(version->value) : std::nullopt;
  if (!number || *number < 0) return NoPlans("they have no version");
  const JsonMember* const list = FindMember(*members, "plans");
  const auto plans = list != nullptr ? ElementsOf(list->value) : std::nullopt;
  if (!plans || plans->size() > kMostPlans) return NoPlans("they have no list of plans");

  auto set = std::make_shared<PlanSet>();
  set->version_ = *number;
  const auto offset = [&](const char* place) {
    return static_cast<std::size_t>(place - text->data());
  };
  for (const std::string_view plan : *plans) {
    const auto parts = MembersOf(plan);
    const JsonMember* const ranks = parts ? FindMember(*parts, "ranks") : nullptr;
    const auto numbers = ranks != nullptr ? ElementsOf(ranks->value) : std::nullopt;
    if (!numbers) return NoPlans("one does not say whose it is");
    Place place;
    place.begin = offset(plan.data());
    place.end = place.begin + plan.size();
    place.ranks_begin = offset(ranks->key.data()) - 1;  // The quote.
    place.ranks_end = offset(ranks->value.data()) + ranks->value.size();
    for (const std::string_view rank : *numbers) {
      const auto value = ParseInteger<int>(rank);
      if (!value || *value < 0 || set->places_.size() >= kMostPlans) {
        return NoPlans("one does not say whose it is");
      }
      set->places_[*value] = place;
    }
  }
  set->text_ = std::move(text);
  return set;
}

std::shared_ptr<const std::string> PlanSet::BodyOf(int rank) const {
  const Place& place = places_.at(rank);
  const std::string_view text = *text_;
  return std::make_shared<const std::string>(
      fmt::format("{}\"rank\":{}{}", text.substr(place.begin, place.ranks_begin - place.begin),
                  rank, text.substr(place.ranks_end, place.end - place.ranks_end)));
}

}  // namespace perseus::relay
