// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/cluster/event_text.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>

#include "cli/cluster/job_values.h"
#include "cli/cluster/json_values.h"
#include "cli/framework/table.h"
#include "common/printable.h"

namespace perseus::cli {
namespace {

using Json = nlohmann::ordered_json;

// "state      j-1f2e llama".
std::string LineStart(const std::string& what, const std::string& id, const std::string& name) {
  return fmt::format("{:<10} {}{}{}", Printable(what), id, name.empty() ? "" : " ", name);
}

// "1 of 4 have"; empty where a server of before does not say.
std::string HowManyHave(const Json& job, const char* key) {
  const std::string count = MemberText(job, key);
  const std::string all = MemberText(job, "world_size");
  return count.empty() || all.empty() ? "" : fmt::format(" ({} of {} have)", count, all);
}

std::string AwaitedText(const Json& job) {
  const std::string state = MemberText(job, "state");
  if (state == "finished") return "nothing: the job has finished; deleting it ends this";
  if (HasEnded(job)) return "its trainers have ended; finishing or deleting it is next";
  if (state == "registering") {
    return "waits for its ranks to register" + HowManyHave(job, "ranks_registered");
  }
  if (state == "profiling") {
    return "waits for its ranks to measure" + HowManyHave(job, "ranks_measured");
  }
  if (state == "characterizing") return "waits for its first plan, which is being made";
  if (state == "failed") return "has no plan; waits until somebody sees to it";
  if (HasFirstPlan(job)) return "trains; waits for better plans, which are being searched for";
  return "trains; waits for other plans, for stragglers and for findings";
}

}  // namespace

std::string AwaitedLine(const Json& job) {
  return fmt::format("{}: {}\n", LineStart("next", MemberText(job, "id"), MemberText(job, "name")),
                     AwaitedText(job));
}

std::string EventText(const std::string& name, const std::string& data) {
  return fmt::format("{} {}\n", Printable(name), JsonText(data));
}

std::string JsonText(const std::string& text) {
  const Json json = Json::parse(text, nullptr, false);
  return json.is_discarded() ? Printable(text) : json.dump(-1, ' ', /*ensure_ascii=*/true);
}

std::string EventLine(const std::string& name, const Json& data, const Json& job) {
  const auto part = [](const std::string& before, const std::string& value) {
    return value.empty() ? "" : before + value;
  };
  std::string id = MemberText(data, "job");
  if (id.empty()) id = MemberText(data, "id");
  std::string text = LineStart(name, id, MemberText(job, "name"));
  if (data.value("deleted", Json()) == true) return text + ": deleted\n";
  text += part(": ", MemberText(data, "sentence"));
  text += part(": straggler ", MemberText(data, "straggler_id"));
  if (name == "job" && data.contains("labels")) {  // They changed.
    const std::string labels = LabelsOf(data);
    text += labels.empty() ? ": has no labels" : ": labels " + labels;
  }
  text += part(": ", MemberText(job, "state"));
  text += part(", ", MemberText(job, "reason"));
  const Json& plan = ObjectOf(job, "plan");
  if (plan.empty()) return text + "\n";
  text += fmt::format(", plan {} ({})", MemberText(plan, "version"), MemberText(plan, "reason"));
  text += part(", iteration ", SecondsOf(WholeJobOf(plan), "iteration_time_s"));
  text += part(", saving ", SavingNow(job));
  if (const long long slow = SlowPipelines(job); slow > 0) {
    text += ", " + CountOf(slow, "slow pipeline");
  }
  return text + "\n";
}

}  // namespace perseus::cli
