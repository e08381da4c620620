// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "agent/protocol.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstddef>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

#include "common/tree.h"
#include "common/unix_socket.h"
#include "wire/message.h"

namespace perseus::agent {

namespace {

using device::GpuConditions;
using wire::Field;
using wire::Message;
using wire::Object;
using wire::Value;

constexpr NumberRange kCount = {.least = 0};
constexpr NumberRange kClock = {.least = 0, .most = kMaxClockMhz};
constexpr NumberRange kLockableClock = {.least = 1, .most = kMaxClockMhz};

// A text of an agent, which limits its whole answer.
template <auto... kPath>
constexpr Field Words(std::string_view name) {
  return Value<kPath...>(name).Most(kMaxAnswerBytes);
}

void ReadName(const Field& /*field*/, const TreeCursor& at, void* member) {
  std::string text = at.String();
  if (text.size() > kMaxNameBytes) at.Fail("is longer than 128 bytes");
  *static_cast<std::string*>(member) = std::move(text);
}

// An empty name would be a request about no GPU.
void ReadGpu(const Field& field, const TreeCursor& at, void* member) {
  ReadName(field, at, member);
  if (static_cast<std::string*>(member)->empty()) at.FailExpected("the name of a GPU");
}

// Whole numbers end at 2^53, which is 104 days of nanoseconds; nodes run for longer.
void ReadNanoseconds(const Field& /*field*/, const TreeCursor& at, void* member) {
  constexpr double kMost = 9e18;
  *static_cast<std::int64_t*>(member) =
      static_cast<std::int64_t>(at.Number({.least = 0, .most = kMost}));
}

// Requests.
constexpr Field kId = Value<&Request::id>("id").In({.least = 1, .most = double{kMaxRequestId}});
// Which operation it is has been read before.
constexpr Field kOperation =
    Value("op", [](const Request& request) { return OperationName(request.operation); });
constexpr Field kGpu = Value<&Request::gpu>("gpu").ReadBy(ReadGpu);
constexpr Field kClient =
    Value<&Request::client>("client").Sometimes().UnlessEmpty().ReadBy(ReadName);

constexpr Field kPlainFields[] = {kId, kOperation};
constexpr Field kHelloFields[] = {kId, kOperation,
                                  Value<&Request::version>("version").In({.least = 1}), kClient};
constexpr Field kGpuFields[] = {kId, kOperation, kGpu};
constexpr Field kSetFields[] = {kId, kOperation, kGpu,
                                Value<&Request::mhz>("mhz").In(kLockableClock)};
constexpr Field kReleaseAllFields[] = {kId, kOperation,
                                       kGpu.ReadBy(ReadName).Sometimes().UnlessEmpty()};
constexpr auto kPlainRequest = Message<Request>("request", kPlainFields).Closed();
constexpr auto kHelloRequest = Message<Request>("request", kHelloFields).Closed();
constexpr auto kGpuRequest = Message<Request>("request", kGpuFields).Closed();
constexpr auto kSetRequest = Message<Request>("request", kSetFields).Closed();
constexpr auto kReleaseAllRequest = Message<Request>("request", kReleaseAllFields).Closed();

// By Operation.
struct OperationRow {
  std::string_view name;
  const Message<Request>* request;
};
constexpr OperationRow kOperations[] = {
    {"hello", &kHelloRequest},
    {"lease", &kGpuRequest},
    {"set", &kSetRequest},
    {"release", &kGpuRequest},
    {"yield", &kGpuRequest},
    {"renew", &kPlainRequest},
    {"energy", &kGpuRequest},
    {"clock", &kGpuRequest},
    {"conditions", &kGpuRequest},
    {"status", &kPlainRequest},
    {"release_all", &kReleaseAllRequest},
};
const OperationRow& RowOf(Operation operation) {
  return kOperations[static_cast<std::size_t>(operation)];
}
std::optional<Operation> OperationNamed(std::string_view name) {
  for (const OperationRow& row : kOperations) {
    if (row.name == name) return static_cast<Operation>(&row - kOperations);
  }
  return std::nullopt;
}

// Answers, by what they say beyond their head.
constexpr std::string_view kRefusalNames[] = {"held",        "not_leased",  "denied",
                                              "unknown_gpu", "bad_request", "device"};
constexpr Field kRefusedFields[] = {wire::Choice<&Refused::code>("code", kRefusalNames),
                                    Words<&Refused::message>("message")};
constexpr Message<Refused> kRefused = {"refused", kRefusedFields};

constexpr Field kGpuSummaryFields[] = {
    Words<&GpuSummary::uuid>("uuid"),
    Words<&GpuSummary::name>("name"),
    Value<&GpuSummary::index>("index").In(kCount),
    Value<&GpuSummary::clocks_mhz>("clocks_mhz").In(kLockableClock),
    Value<&GpuSummary::owner_pid>("owner_pid").In(kCount).Nullable(),
};
constexpr Message<GpuSummary> kGpuSummary = {"gpu", kGpuSummaryFields};
constexpr Field kHelloAnswerFields[] = {
    Value<&HelloAnswer::version>("version").In({.least = 1}),
    Words<&HelloAnswer::program_version>("program_version").Optional(),
    Value<&HelloAnswer::observe>("observe"),
    Value<&HelloAnswer::max_silence_seconds>("max_silence_s").In(kNotNegative),
    Object<&HelloAnswer::gpus>("gpus", kGpuSummary),
};
constexpr Message<HelloAnswer> kHelloAnswer = {"hello", kHelloAnswerFields};

constexpr Field kSetAnswerFields[] = {
    Value<&SetAnswer::mhz>("mhz").In(kClock).Sometimes().UnlessEmpty(),
    Value<&SetAnswer::took_us>("took_us").In(kCount).Sometimes(),
    Value<&SetAnswer::superseded>("superseded").Sometimes().UnlessEmpty(),
};
constexpr Message<SetAnswer> kSetAnswer = {"set", kSetAnswerFields};

constexpr Field kEnergyFields[] = {Value<&EnergyAnswer::joules>("joules"),
                                   Value<&EnergyAnswer::at_ns>("at_ns").ReadBy(ReadNanoseconds)};
constexpr Message<EnergyAnswer> kEnergyAnswer = {"energy", kEnergyFields};

constexpr Field kClockFields[] = {Value<&ClockAnswer::mhz>("mhz").In(kClock)};
constexpr Message<ClockAnswer> kClockAnswer = {"clock", kClockFields};

constexpr Field kGpuConditionsFields[] = {
    Value<&GpuConditions::power_limit_watts>("power_limit_w").Nullable(),
    Value<&GpuConditions::default_power_limit_watts>("default_power_limit_w").Nullable(),
    Value<&GpuConditions::temperature_celsius>("temperature_c").Nullable(),
    Value<&GpuConditions::throttle_reasons>("throttle_reasons").In(kCount),
    Words<&GpuConditions::power_profiles>("power_profiles"),
    Value<&GpuConditions::power_floor_watts>("power_floor_w").Nullable(),
    Value<&GpuConditions::mig>("mig"),
};
constexpr Message<GpuConditions> kGpuConditions = {"conditions", kGpuConditionsFields};
constexpr Field kConditionsFields[] = {
    Object<&ConditionsAnswer::conditions>("conditions", kGpuConditions),
    Words<&ConditionsAnswer::conflicts>("clock_conflicts"),
};
constexpr Message<ConditionsAnswer> kConditionsAnswer = {"conditions", kConditionsFields};

constexpr Field kOwnerFields[] = {
    Value<&OwnerStatus::pid>("pid").In(kCount),
    Value<&OwnerStatus::uid>("uid").In(kCount),
    Words<&OwnerStatus::user>("user"),
    Words<&OwnerStatus::client>("client"),
    Value<&OwnerStatus::held_seconds>("held_s").In(kNotNegative),
    Value<&OwnerStatus::silent_seconds>("silent_s").In(kNotNegative),
};
constexpr Message<OwnerStatus> kOwner = {"owner", kOwnerFields};
constexpr Field kGpuStatusFields[] = {
    Words<&GpuStatus::uuid>("uuid"),
    Words<&GpuStatus::name>("name"),
    Value<&GpuStatus::index>("index").In(kCount),
    Object<&GpuStatus::owner>("owner", kOwner).Nullable(),
    Value<&GpuStatus::locked_mhz>("locked_mhz").In(kClock).Nullable(),
    Value<&GpuStatus::restore_pending>("restore_pending"),
    Words<&GpuStatus::last_error>("last_error"),
    Value<&GpuStatus::sets>("sets").In(kCount),
    Value<&GpuStatus::restores>("restores").In(kCount),
    Value<&GpuStatus::failures>("failures").In(kCount),
    Value<&GpuStatus::superseded>("superseded").In(kCount),
    Words<&GpuStatus::conflicts>("clock_conflicts"),
};
constexpr Message<GpuStatus> kGpuStatus = {"gpu", kGpuStatusFields};

template <auto kMember>
constexpr Field Counted(Refusal code) {
  return Value<kMember>(kRefusalNames[static_cast<std::size_t>(code)])
      .In(kCount)
      .Sometimes()
      .UnlessEmpty();
}
constexpr Field kRefusalCountsFields[] = {
    Counted<&RefusalCounts::held>(Refusal::kHeld),
    Counted<&RefusalCounts::not_leased>(Refusal::kNotLeased),
    Counted<&RefusalCounts::denied>(Refusal::kDenied),
    Counted<&RefusalCounts::unknown_gpu>(Refusal::kUnknownGpu),
    Counted<&RefusalCounts::bad_request>(Refusal::kBadRequest),
    Counted<&RefusalCounts::device>(Refusal::kDevice),
};
constexpr Message<RefusalCounts> kRefusalCounts = {"refused", kRefusalCountsFields};
constexpr Field kStatusFields[] = {
    Value<&StatusAnswer::pid>("pid").In(kCount),
    Words<&StatusAnswer::driver>("driver"),
    Value<&StatusAnswer::observe>("observe"),
    Value<&StatusAnswer::uptime_seconds>("uptime_s").In(kNotNegative),
    Value<&StatusAnswer::max_silence_seconds>("max_silence_s").In(kNotNegative),
    Value<&StatusAnswer::min_interval_seconds>("min_interval_s").In(kNotNegative),
    Value<&StatusAnswer::poll_seconds>("poll_s").In(kNotNegative),
    Value<&StatusAnswer::connections>("connections").In(kCount),
    Value<&StatusAnswer::leases>("leases").In(kCount),
    Object<&StatusAnswer::refused>("refused", kRefusalCounts),
    Object<&StatusAnswer::gpus>("gpus", kGpuStatus),
};
constexpr Message<StatusAnswer> kStatusAnswer = {"status", kStatusFields};

constexpr Field kReleasedFields[] = {Value<&ReleaseAllAnswer::released>("released").In(kCount),
                                     Words<&ReleaseAllAnswer::failed>("failed")};
constexpr Message<ReleaseAllAnswer> kReleaseAllAnswer = {"release_all", kReleasedFields};

const auto& TableOf(const Refused&) { return kRefused; }
const auto& TableOf(const HelloAnswer&) { return kHelloAnswer; }
const auto& TableOf(const SetAnswer&) { return kSetAnswer; }
const auto& TableOf(const EnergyAnswer&) { return kEnergyAnswer; }
const auto& TableOf(const ClockAnswer&) { return kClockAnswer; }
const auto& TableOf(const ConditionsAnswer&) { return kConditionsAnswer; }
const auto& TableOf(const StatusAnswer&) { return kStatusAnswer; }
const auto& TableOf(const ReleaseAllAnswer&) { return kReleaseAllAnswer; }

// The common head of all answers.
struct AnswerHead {
  std::optional<std::int64_t> id;
  std::string op;  // Empty: none.
  bool ok = false;
};
constexpr Field kHeadFields[] = {
    Value<&AnswerHead::id>("id").In({.least = 1}).Nullable(),
    Words<&AnswerHead::op>("op").Sometimes().UnlessEmpty(),
    Value<&AnswerHead::ok>("ok"),
};
constexpr Message<AnswerHead> kHead = {"answer", kHeadFields};

template <typename Body>
Body ReadBody(const TreeCursor& root) {
  Body body;
  wire::Read(TableOf(body), root, &body);
  return body;
}

decltype(Answer::body) ReadBody(Operation operation, const TreeCursor& root) {
  switch (operation) {
    case Operation::kLease:
    case Operation::kRelease:
    case Operation::kYield:
    case Operation::kRenew:
      break;
    case Operation::kHello:
      return ReadBody<HelloAnswer>(root);
    case Operation::kSet:
      return ReadBody<SetAnswer>(root);
    case Operation::kEnergy:
      return ReadBody<EnergyAnswer>(root);
    case Operation::kClock:
      return ReadBody<ClockAnswer>(root);
    case Operation::kConditions:
      return ReadBody<ConditionsAnswer>(root);
    case Operation::kStatus:
      return ReadBody<StatusAnswer>(root);
    case Operation::kReleaseAll:
      return ReadBody<ReleaseAllAnswer>(root);
  }
  return Done{};
}

// The number of a request that may be no request otherwise.
std::optional<std::int64_t> IdOf(const TreeNode& root) {
  const TreeMember* member = root.Find("id");
  const double* number = member == nullptr ? nullptr : std::get_if<double>(&member->node.value);
  if (number == nullptr || !(*number >= 1 && *number <= static_cast<double>(kMaxRequestId)) ||
      std::trunc(*number) != *number) {
    return std::nullopt;
  }
  return static_cast<std::int64_t>(*number);
}

Request ReadRequest(const TreeCursor& root) {
  Request request;
  static_cast<void>(wire::ReadWhole(root.Get("id"), kId.range));  // The first fault is said.
  const TreeCursor op = root.Get("op");
  const std::optional<Operation> operation = OperationNamed(op.String());
  if (!operation) {
    op.FailExpected(
        "one of hello, lease, set, release, yield, renew, energy, conditions, status, release_all");
    return request;
  }
  request.operation = *operation;
  wire::Read(*RowOf(*operation).request, root, &request);
  return request;
}

}  // namespace

std::string_view OperationName(Operation operation) { return RowOf(operation).name; }

std::string_view RefusalName(Refusal refusal) {
  return kRefusalNames[static_cast<std::size_t>(refusal)];
}

std::int64_t& RefusalCounts::Of(Refusal code) {
  constexpr std::int64_t RefusalCounts::*kMembers[] = {
      &RefusalCounts::held,        &RefusalCounts::not_leased,  &RefusalCounts::denied,
      &RefusalCounts::unknown_gpu, &RefusalCounts::bad_request, &RefusalCounts::device};
  return this->*kMembers[static_cast<std::size_t>(code)];
}

std::string FormatRequest(const Request& request) {
  return wire::Write(*RowOf(request.operation).request, request) + "\n";
}

tl::expected<Request, RequestFault> ParseRequest(std::string_view line) {
  if (line.size() > kMaxRequestBytes) {
    return tl::unexpected(RequestFault{
        std::nullopt, "the request is longer than 65536 bytes; send one request a line"});
  }
  const std::string name = "request";
  const Result<TreeNode> tree = ParseJsonTree(line, name);
  if (!tree) return tl::unexpected(RequestFault{std::nullopt, tree.error().message});
  TreeReader reader(*tree, name);
  Request request = ReadRequest(reader.Root());
  if (reader.failed()) return tl::unexpected(RequestFault{IdOf(*tree), reader.error()->message});
  return request;
}

std::string FormatAnswer(const Answer& answer) {
  const AnswerHead head = {answer.id,
                           std::string(answer.operation ? OperationName(*answer.operation) : ""),
                           !std::holds_alternative<Refused>(answer.body)};
  std::string line = wire::Write(kHead, head);
  std::visit(
      [&line](const auto& body) {
        if constexpr (!std::is_same_v<std::remove_cvref_t<decltype(body)>, Done>) {
          const std::string rest = wire::Write(TableOf(body), body);
          if (rest.size() <= 2) return;  // "{}"
          line.back() = ',';
          line.append(rest, 1);
        }
      },
      answer.body);
  return line + "\n";
}

Result<Answer> ParseAnswer(std::string_view line) {
  if (line.size() > kMaxAnswerBytes) {
    return InvalidInput(
        "the agent's answer is longer than a mebibyte; is this the agent's socket?");
  }
  const std::string name = "answer";
  const Result<TreeNode> tree = ParseJsonTree(line, name);
  if (!tree) return tl::unexpected(tree.error());
  TreeReader reader(*tree, name);
  const TreeCursor root = reader.Root();
  AnswerHead head;
  wire::Read(kHead, root, &head);
  Answer answer = {head.id, OperationNamed(head.op), {}};
  if (!head.ok) {
    answer.body = ReadBody<Refused>(root);
  } else if (answer.operation) {
    answer.body = ReadBody(*answer.operation, root);
  } else {
    root.Get("op").FailExpected("an operation of this protocol");
  }
  if (reader.failed()) return tl::unexpected(*reader.error());
  return answer;
}

namespace {

tl::unexpected<Error> Fault(const std::string& path, const std::string& what) {
  return MakeError(ErrorCode::kIo, fmt::format("the agent at {}: {}", path, what));
}

}  // namespace

Result<FileDescriptor> ConnectUnix(const std::string& path, std::chrono::milliseconds patience) {
  auto socket = ConnectUnixSocket(path, patience, SocketMode::kBlocking);
  if (socket) {
    const timeval within = {.tv_sec = patience.count() / 1000,
                            .tv_usec = patience.count() % 1000 * 1000};
    if (::setsockopt(socket->get(), SOL_SOCKET, SO_SNDTIMEO, &within, sizeof(within)) != 0) {
      return Fault(path, SystemMessage(errno));
    }
    return *std::move(socket);
  }
  const int error = socket.error();
  if (error == EINVAL || error == ENAMETOOLONG) {
    return InvalidInput(fmt::format("'{}' is no path of a socket: {}", path, SystemMessage(error)));
  }
  if (error == EAGAIN) {
    return Fault(
        path, fmt::format("it takes no connection within {} ms; does it hang?", patience.count()));
  }
  return Fault(path, SystemMessage(error) + "; is it running?");
}

Result<Control> Control::Connect(const std::string& socket_path, const std::string& name,
                                 std::chrono::milliseconds patience,
                                 std::chrono::milliseconds answers) {
  Result<FileDescriptor> socket = ConnectUnix(socket_path, patience);
  if (!socket) return tl::unexpected(socket.error());
  Control control(socket_path, *std::move(socket), answers.count() > 0 ? answers : patience);
  Request hello;
  hello.operation = Operation::kHello;
  hello.client = name;
  Result<Answer> answer = control.Ask(std::move(hello));
  if (!answer) return tl::unexpected(answer.error());
  if (const auto* refused = std::get_if<Refused>(&answer->body)) {
    return MakeError(ErrorCode::kDenied, refused->message);
  }
  auto* said = std::get_if<HelloAnswer>(&answer->body);
  if (said == nullptr) return Fault(socket_path, "it did not say what it has");
  control.hello_ = std::move(*said);
  return control;
}

Result<std::int64_t> Control::Send(Request request) {
  request.id = next_id_++;
  const std::string line = FormatRequest(request);
  for (std::size_t sent = 0; sent < line.size();) {
    const ssize_t count =
        ::send(socket_.get(), line.data() + sent, line.size() - sent, MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EPIPE) break;  // Why is in what it said last.
    if (count < 0) {
      return Fault(path_, SystemMessage(errno));
    }
    sent += static_cast<std::size_t>(count);
  }
  return request.id;
}

Result<Answer> Control::Receive() {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point deadline = Clock::now() + patience_;
  std::size_t end = buffer_.find('\n');
  while (end == std::string::npos) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    pollfd item = {socket_.get(), POLLIN, 0};
    const int ready = ::poll(&item, 1, static_cast<int>(std::max<std::int64_t>(left.count(), 0)));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) {
      return Fault(path_, fmt::format("no answer within {} ms", patience_.count()));
    }
    char chunk[16384];
    const ssize_t count = ::recv(socket_.get(), chunk, sizeof(chunk), 0);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) {
      return Fault(path_, count == 0 ? "it closed the connection" : SystemMessage(errno));
    }
    if (buffer_.size() > kMaxAnswerBytes) return Fault(path_, "its answer is too long");
    buffer_.append(chunk, static_cast<std::size_t>(count));
    end = buffer_.find('\n');
  }
  Result<Answer> answer = ParseAnswer(std::string_view(buffer_).substr(0, end));
  buffer_.erase(0, end + 1);
  if (!answer) return Fault(path_, answer.error().message);
  return answer;
}

Result<Answer> Control::Ask(Request request) {
  const Result<std::int64_t> id = Send(std::move(request));
  if (!id) return tl::unexpected(id.error());
  while (true) {
    Result<Answer> answer = Receive();
    // Without a number: to the connection as a whole.
    if (!answer || !answer->id || *answer->id == *id) return answer;
  }
}

}  // namespace perseus::agent
