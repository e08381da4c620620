// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// Labels of jobs: how they are read, and the route that changes them.

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "common/nearest_name.h"
#include "server/api/api_handlers.h"
#include "server/api/api_schemas.h"
#include "server/api/api_text.h"
#include "server/api/label_texts.h"

namespace perseus::server {
namespace {

constexpr Field kLabelChangesMembers[] = {
    Object("labels").Says("Name to value, as in {\"team\": \"vision\"}. null takes a label away; "
                          "what is not named stays. A job has at most 16 labels.")};
constexpr AnyMessage kLabelsSchemas[] = {
    {.name = "LabelChanges", .fields = kLabelChangesMembers, .is_closed = true}};

void ChangeLabels(const JobPointer& job, const CallPointer& call) {
  SetLabels command;
  const Outcome<void> read = ReadBody(call->request.body, [&](const TreeCursor& root) {
    AllowOnly(kLabelsSchemas[0], root);
    command.labels = ReadLabels(root.Get("labels"));
  });
  if (!read) return Send(*call, FailureResponse(read.error()));
  ChangeAndShow(job, call, std::move(command));
}

}  // namespace

Schemas LabelsSchemas() { return kLabelsSchemas; }

LabelChanges ReadLabels(const TreeCursor& labels) {
  LabelChanges changes;
  const auto* const table = std::get_if<TreeNode::Table>(&labels.node().value);
  if (table == nullptr) {
    labels.FailExpected("an object of labels, as {\"team\": \"vision\"}");
    return changes;
  }
  for (const TreeMember& member : *table) {
    if (std::holds_alternative<std::monostate>(member.node.value)) {
      changes[member.key] = std::nullopt;
    } else if (const auto* const value = std::get_if<std::string>(&member.node.value)) {
      changes[member.key] = *value;
    } else {
      labels.Fail(fmt::format("the label {} must have a text as its value, not {}",
                              Shown(member.key), member.node.Describe()));
    }
  }
  return changes;
}

Outcome<JobLabels> NewLabelsOf(const LabelChanges& changes) {
  JobLabels labels;
  for (const auto& [name, value] : changes) {
    if (value) labels.emplace(name, *value);
  }
  const Result<void> good = CheckLabels(labels);
  if (!good) return Fail(FailureCode::kInvalid, good.error().message, "labels");
  return labels;
}

Outcome<JobLabels> WantedLabels(const http::Request& request) {
  JobLabels wanted;
  const std::string text = QueryText(request, "label");
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find(','), rest.size());
    auto label = ParseLabel(rest.substr(0, end), ':');
    if (!label) return Fail(FailureCode::kInvalid, "'label': " + label.error().message, "label");
    if (!wanted.insert(*label).second) {
      return Fail(FailureCode::kInvalid,
                  fmt::format("'label' has {} twice; a job has it once", Shown(label->first)),
                  "label");
    }
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return wanted;
}

bool HasLabels(const JobLabels& labels, const JobLabels& wanted) {
  return std::includes(labels.begin(), labels.end(), wanted.begin(), wanted.end());
}

void AddLabelRoutes(RouteMaker* routes) { routes->OnJob(RowOf("setLabels"), ChangeLabels); }

}  // namespace perseus::server
