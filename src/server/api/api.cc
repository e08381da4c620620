// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// The routes with their handlers, and the OpenAPI document: of the routes, the events, and the
// tables of messages.

#include "server/api/api.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "job/job_fields.h"
#include "perseus/version.h"
#include "server/api/api_handlers.h"
#include "server/api/messages.h"
#include "server/runtime/events.h"

namespace perseus::server {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kInSchemas = "#/components/schemas/";

constexpr Field kErrorParts[] = {
    Text("code"), Text("message").Says("One sentence"),
    Text("field").Sometimes().Says("What it is about: \"ranks[3].gpu\", or a query parameter.")};
constexpr AnyMessage kErrorPart = {"ErrorParts", kErrorParts};
constexpr Field kErrorFields[] = {Object("error", kErrorPart)};
constexpr AnyMessage kError = {"Error", kErrorFields};
constexpr Field kHealthFields[] = {Value<&Health::status>("status"),
                                   Value<&Health::message>("message").Sometimes().UnlessEmpty()};
constexpr std::string_view kRoles[] = {"read", "train", "operate"};
constexpr Field kTokenRoleFields[] = {
    Choice("role", kRoles,
           [](const http::Request& request) { return http::RoleName(request.role); })
        .Says("operate where the server has no tokens."),
    Value<&http::Request::token_name>("name").Says(
        "As the token file has it; empty where the server has no tokens."),
    Value("is_bound", [](const http::Request& request) {
      return !request.binding.is_free();
    }).Says("Whether it is for some jobs alone.")};
constexpr Message<http::Request> kTokenRole = {"TokenRole", kTokenRoleFields};

Json RefTo(std::string_view schema) {
  return {{"$ref", std::string(kInSchemas) + std::string(schema)}};
}

std::vector<std::string> WordsOf(std::string_view text) {
  std::vector<std::string> words;
  while (!text.empty()) {
    const std::size_t size = std::min(text.find(' '), text.size());
    words.emplace_back(text.substr(0, size));
    text.remove_prefix(std::min(size + 1, text.size()));
  }
  return words;
}

void AddRange(const NumberRange& range, Json* json) {
  const auto whole = [](double bound) {
    const auto integer = static_cast<std::int64_t>(bound);
    return static_cast<double>(integer) == bound ? Json(integer) : Json(bound);
  };
  if (range.least > kAnyNumber.least) {
    (*json)[range.above_least ? "exclusiveMinimum" : "minimum"] = whole(range.least);
  }
  if (range.most < kAnyNumber.most) {
    (*json)[range.below_most ? "exclusiveMaximum" : "maximum"] = whole(range.most);
  }
}

// Of one value, before lists and null.
Json ValueJson(const Field& member) {
  Json json;
  switch (member.kind) {
    case wire::Kind::kInteger:
      json["type"] = "integer";
      break;
    case wire::Kind::kNumber:
      json["type"] = "number";
      break;
    case wire::Kind::kText:
      json["type"] = "string";
      break;
    case wire::Kind::kBoolean:
      json["type"] = "boolean";
      break;
    case wire::Kind::kChoice:
      json["enum"] = WordsOf(member.of);
      for (const std::string_view word : member.words) json["enum"].push_back(word);
      break;
    case wire::Kind::kObject:
    case wire::Kind::kJson: {
      const bool is_map = member.type != nullptr && member.type->many == wire::Many::kMap;
      if (member.message != nullptr && !is_map) return RefTo(member.message->name);
      return Json{{"type", "object"}};
    }
    case wire::Kind::kArray:
      json["type"] = "array";
      break;
  }
  AddRange(member.range, &json);
  if (member.most_bytes > 0) json["maxLength"] = member.most_bytes;
  return json;
}

Json MemberJson(const Field& member) {
  Json json = ValueJson(member);
  if (member.is_list) {
    json = {{"type", "array"}, {"items", std::move(json)}};
    if (member.most_elements > 0) json["maxItems"] = member.most_elements;
  }
  if (member.presence == wire::Presence::kNullable ||
      member.presence == wire::Presence::kOptional) {
    if (json.contains("$ref")) {
      json = {{"anyOf", {std::move(json), {{"type", "null"}}}}};
    } else if (json.contains("enum")) {
      json["enum"].push_back(nullptr);
    } else {
      if (!json["type"].is_array()) json["type"] = Json::array({json["type"]});
      json["type"].push_back("null");
    }
  }
  if (!member.about.empty()) json["description"] = member.about;
  return json;
}

// `are_there`: not of a part that may be missing. (Of ordered objects a reference to a member does
// not outlive the next member that is added.)
void AddMembers(std::span<const Field> fields, bool are_there, Json* json) {
  for (const Field& field : fields) {
    if (field.name.empty()) {
      const bool is_one = field.type == nullptr || field.type->many == wire::Many::kOne;
      AddMembers(field.message->fields, are_there && is_one, json);
      continue;
    }
    (*json)["properties"][std::string(field.name)] = MemberJson(field);
    const bool is_there = are_there && (field.presence == wire::Presence::kAlways ||
                                        field.presence == wire::Presence::kNullable);
    Json& required = (*json)["required"];
    const auto known = std::find(required.begin(), required.end(), field.name);
    if (is_there && known == required.end()) required.push_back(field.name);
  }
}

Json ObjectJson(const AnyMessage& message) {
  Json json = {{"type", "object"}};
  if (!message.about.empty()) json["description"] = message.about;
  json["properties"] = Json::object();
  json["required"] = Json::array();
  AddMembers(message.fields, true, &json);
  if (json["required"].empty()) json.erase("required");
  if (message.is_closed) json["additionalProperties"] = false;
  return json;
}

// Those that it holds come before it.
void AddSchema(const AnyMessage& message, Json* schemas) {
  if (!message.name.empty() && schemas->contains(message.name)) return;
  for (const Field& field : message.fields) {
    if (field.message != nullptr) AddSchema(*field.message, schemas);
  }
  if (!message.name.empty()) (*schemas)[std::string(message.name)] = ObjectJson(message);
}

// The JSON type of a job file's field. A quantity may be text with its unit.
struct FieldSchema {
  const job::Field& field;

  Json operator()(std::optional<std::string> JobFile::* /*member*/) const { return Of("string"); }
  Json operator()(std::optional<bool> JobFile::* /*member*/) const { return Of("boolean"); }
  Json operator()(std::optional<int> JobFile::* /*member*/) const { return Ranged("integer"); }
  Json operator()(std::optional<double> JobFile::* /*member*/) const {
    return Ranged(Json::array({"number", "string"}));
  }
  Json operator()(std::optional<ValueRange> JobFile::* /*member*/) const {
    return Ranged(Json::array({"number", "string"}));
  }
  Json operator()(std::vector<double> JobFile::* /*member*/) const {
    return {{"anyOf",
             {Ranged(Json::array({"number", "string"})),
              {{"type", "array"},
               {"minItems", 1},
               {"items", Ranged(Json::array({"number", "string"}))}}}}};
  }
  Json operator()(std::optional<PlanTarget> JobFile::* /*member*/) const { return Of("string"); }
  Json operator()(std::optional<Granularity> JobFile::* /*member*/) const {
    return {{"enum", {"computation", "phase", "stage-type", "stage"}}};
  }
  Json operator()(std::optional<TimeMargin> JobFile::* /*member*/) const { return Of("string"); }
  Json operator()(std::optional<CallAhead> JobFile::* /*member*/) const {
    return {{"enum", {"none", "end", "predicted"}}};
  }
  Json operator()(std::vector<ClockLatency> JobFile::* /*member*/) const { return Of("string"); }
  Json operator()(std::optional<WorkSetting> JobFile::* /*member*/) const {
    return {{"type", "array"}, {"minItems", 1}, {"items", Ranged("number")}};
  }

 private:
  static Json Of(Json type) { return {{"type", std::move(type)}}; }
  Json Ranged(Json type) const {
    Json json = Of(std::move(type));
    AddRange(field.range, &json);
    return json;
  }
};

bool IsPathAlone(const job::Field& field) {
  return field.unit == job::Unit::kPath &&
         std::holds_alternative<std::optional<std::string> JobFile::*>(field.member);
}

// Of NewJob's `job`: the fields of job files, but those that name files.
Json JobSettingsJson() {
  Json json = ObjectJson(JobSettingsSchema());
  Json conditions = {{"type", "object"}, {"additionalProperties", false}};
  for (const job::Field& field : job::Fields()) {
    if (IsPathAlone(field)) continue;
    Json& table = field.condition() ? conditions : json;
    table["properties"][std::string(field.key)] = std::visit(FieldSchema{field}, field.member);
  }
  for (const auto& [also, key] : {std::pair("tensor_parallel", "tp"), {"data_parallel", "dp"}}) {
    Json same = json["properties"][key];
    same["description"] = fmt::format("The same as {}; give one.", key);
    json["properties"][also] = std::move(same);
  }
  json["properties"][std::string(job::kConditionsTable)] = std::move(conditions);
  return json;
}

Json SchemasJson() {
  Json schemas = Json::object();
  for (const AnyMessage* const message :
       std::initializer_list<const AnyMessage*>{&kError, &kHealth, &kTokenRole}) {
    AddSchema(*message, &schemas);
  }
  schemas[std::string(JobSettingsSchema().name)] = JobSettingsJson();
  for (const Messages& messages :
       {JobMessages(), RankMessages(), NodeMessages(), TimelineMessages(), HistoryMessages(),
        PlanMessages(), ZeusMessages()}) {
    for (const AnyMessage* const message : messages) AddSchema(*message, &schemas);
  }
  for (const EventType& type : EventTypes()) {
    AddSchema({type.schema, type.fields, type.when}, &schemas);
  }
  schemas["Nothing"] = {{"type", "null"}};
  schemas["PlanFile"] = {{"type", "object"}, {"description", "docs/reference/files.md"}};
  schemas["Document"] = {{"type", "object"}};
  schemas["ZeusJobId"] = {{"type", "string"}};
  return schemas;
}

Json ParametersJson(const RouteRow& row) {
  Json parameters = Json::array();
  for (std::size_t at = row.path.find('{'); at != std::string_view::npos;
       at = row.path.find('{', at + 1)) {
    const std::string_view name = row.path.substr(at + 1, row.path.find('}', at) - at - 1);
    const char* const type = name == "straggler_id" ? "integer" : "string";
    parameters.push_back(
        {{"name", name}, {"in", "path"}, {"required", true}, {"schema", {{"type", type}}}});
  }
  constexpr std::array<const char*, 3> kTypes = {"integer", "number", "string"};
  for (const wire::QueryParameter& query : row.query) {
    Json schema = {{"type", kTypes[static_cast<std::size_t>(query.kind)]}};
    if (!query.schema_words.empty()) schema["enum"] = WordsOf(query.schema_words);
    AddRange(query.range, &schema);
    parameters.push_back({{"name", query.name},
                          {"in", "query"},
                          {"required", query.is_required},
                          {"schema", std::move(schema)},
                          {"description", query.about}});
  }
  return parameters;
}

Json AnswerJson(const RouteRow& row, const wire::RouteAnswer& answer) {
  Json json = {{"description", answer.about}};
  const bool has_body = !answer.schema.empty() || answer.content_type != "application/json";
  if (answer.schema == "Job") json["headers"]["ETag"] = {{"$ref", "#/components/headers/ETag"}};
  if (!has_body) return json;
  Json& content = json["content"][std::string(answer.content_type)];
  content["schema"] = answer.schema.empty() ? Json{{"type", "string"}} : RefTo(answer.schema);
  if (row.tag != "events") return json;
  for (const EventType& type : EventTypes()) {
    content["x-perseus-events"][std::string(type.name)] = {{"when", type.when},
                                                           {"data", RefTo(type.schema)}};
  }
  return json;
}

struct Refusal {
  int status;
  const char* name;
  const char* about;
};
constexpr std::array kRefusals = {
    Refusal{400, "BadRequest", "The request cannot be parsed"},
    Refusal{401, "NoToken", "There is no token, or it is unknown"},
    Refusal{403, "Denied", "A token of another role, or one that is bound to other jobs"},
    Refusal{404, "NotFound", "It does not exist, or the token is bound to other jobs"},
    Refusal{409, "Conflict", "It contradicts the present state"},
    Refusal{412, "Changed",
            "The job has changed since the revision of If-Match; ETag has the "
            "present one"},
    Refusal{413, "TooLarge", "Over a limit"},
    Refusal{422, "Invalid", "The request is invalid"},
    Refusal{503, "Unavailable", "The store does not answer now; try again"},
};

bool CanRefuse(const RouteRow& row, int status) {
  const bool is_of_one = row.path.find('{') != std::string_view::npos;
  const bool changes = row.method != "GET";
  const bool has_body = !row.body.empty();
  const bool is_guarded = row.role != http::Role::kNone;
  switch (status) {
    case 400:
      return true;
    case 401:
    case 403:
      return is_guarded;
    case 404:
      return is_of_one || (row.refusals & wire::kNotFound) != 0;
    case 409:
      return (changes && is_of_one) || (row.refusals & wire::kConflict) != 0;
    case 412:
      return row.takes_condition;
    case 413:
      return has_body;
    case 422:  // Of a query that names what nobody knows, too.
      return row.tag != "server";
    case 503:
      return is_of_one || (row.refusals & wire::kUnavailable) != 0;
    default:
      return false;
  }
}

Json OperationJson(const RouteRow& row) {
  Json json = {{"operationId", row.id}, {"summary", row.summary}, {"tags", {row.tag}}};
  if (row.role == http::Role::kNone) {
    json["security"] = Json::array();
  } else {
    json["x-perseus-role"] = http::RoleName(row.role);
  }
  if (row.waits) json["x-perseus-waits"] = true;
  if (row.relaying != wire::Relaying::kNo) json["x-perseus-relayed"] = true;
  if (Json parameters = ParametersJson(row); !parameters.empty()) {
    json["parameters"] = std::move(parameters);
  }
  // Not as parameters: a generated request would take any text for a condition.
  if (row.takes_condition) {
    json["x-perseus-headers"]["If-Match"] =
        "Only if the job is still at this revision: its ETag, or * for any.";
  }
  if (row.tag == "events") {
    json["x-perseus-headers"]["Last-Event-ID"] = "Goes on after this event, if it is known.";
  }
  if (!row.body.empty()) {
    json["requestBody"] = {{"required", true},
                           {"content", {{"application/json", {{"schema", RefTo(row.body)}}}}}};
    if (row.max_body_bytes > 0) json["requestBody"]["x-perseus-max-bytes"] = row.max_body_bytes;
  }
  Json& responses = json["responses"];
  for (const wire::RouteAnswer& answer : row.answers) {
    if (answer.status != 0) responses[std::to_string(answer.status)] = AnswerJson(row, answer);
  }
  for (const Refusal& refusal : kRefusals) {
    if (!CanRefuse(row, refusal.status)) continue;
    responses[std::to_string(refusal.status)] = {
        {"$ref", fmt::format("#/components/responses/{}", refusal.name)}};
  }
  if ((row.refusals & wire::kNotReady) != 0) {
    responses["503"] = AnswerJson(row, {503, "They cannot", "Health"});
  }
  return json;
}

Json TagsJson() {
  return {{{"name", "jobs"}},
          {{"name", "events"}, {"description", "Server-sent events, with numbers to resume at."}},
          {{"name", "ranks"}},
          {{"name", "plans"}},
          {{"name", "stragglers"}},
          {{"name", "profiles"}, {"description", "What jobs measured, for those that come after."}},
          {{"name", "zeus"}, {"description", "The wire of Zeus' pipeline frequency optimizer."}},
          {{"name", "server"}}};
}

Json ComponentsJson() {
  Json json;
  json["securitySchemes"]["token"] = {
      {"type", "http"},
      {"scheme", "bearer"},
      {"description",
       "Roles: read, train, operate; each may do what those before it may (x-perseus-role). Not "
       "asked for where the server has no token file."}};
  json["headers"] = {{"ETag",
                      {{"description", "The revision of the job in quotes, for If-Match."},
                       {"schema", {{"type", "string"}}}}}};
  for (const Refusal& refusal : kRefusals) {
    json["responses"][refusal.name] = {
        {"description", refusal.about},
        {"content", {{"application/json", {{"schema", RefTo("Error")}}}}}};
  }
  json["schemas"] = SchemasJson();
  return json;
}

}  // namespace

constexpr Message<Health> kHealth = {"Health", kHealthFields};

std::string OpenapiJson() {
  Json document = {
      {"openapi", "3.1.0"},
      {"info",
       {{"title", "Perseus server"},
        {"version", PERSEUS_VERSION_STRING},
        {"summary", "Jobs, plans and stragglers of pipeline-parallel training"},
        {"license", {{"name", "Apache-2.0"}, {"identifier", "Apache-2.0"}}},
        {"description",
         "Times are seconds, energies joules, powers watts, clocks MHz. Facts are durable before "
         "they are acknowledged. A query parameter that is not named here is refused. "
         "docs/explanation/server.md has examples."}}},
      // None: of a server without tokens.
      {"security", Json::array({Json::object(), {{"token", Json::array()}}})},
      {"tags", TagsJson()}};
  for (const RouteRow& row : wire::kRoutes) {
    std::string method(row.method);
    std::transform(method.begin(), method.end(), method.begin(),
                   [](unsigned char letter) { return std::tolower(letter); });
    document["paths"][std::string(row.path)][method] = OperationJson(row);
  }
  document["components"] = ComponentsJson();
  return document.dump(1) + "\n";
}

std::vector<http::Route> ApiRoutes(JobService& service) {
  std::vector<http::Route> routes;
  RouteMaker maker(service, &routes);
  AddJobRoutes(&maker);
  AddRankRoutes(&maker);
  AddNodeRoute(&maker);
  AddTimelineRoute(&maker);
  AddPlanRoutes(&maker);
  AddHistoryRoutes(&maker);
  AddEventRoutes(&maker);
  AddZeusRoutes(&maker);
  maker.On(RowOf("showToken"), [](const CallPointer& call) {
    Send(*call, JsonAnswer(200, kTokenRole, call->request));
  });
  maker.On(RowOf("openapi"), [document = std::make_shared<const std::string>(OpenapiJson())](
                                 const CallPointer& call) {
    http::Response response;
    response.body = document;
    Send(*call, std::move(response));
  });
  return routes;
}

}  // namespace perseus::server
