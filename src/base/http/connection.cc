// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "http/connection.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <chrono>
#include <exception>
#include <utility>

#include "http/server.h"
#include "http/server_core.h"

namespace perseus::http {
namespace {

// Calls `f` with the connection, on its thread; with null where it closed meanwhile.
// False: it is known to be closed, and `f` is not called.
template <typename F>
bool PostTo(const std::weak_ptr<ServerCore>& weak_core,
            const std::weak_ptr<Connection>& weak_connection, F f) {
  // In this order: the connection is within the core.
  const std::shared_ptr<ServerCore> core = weak_core.lock();
  if (!core) return false;
  const std::shared_ptr<Connection> connection = weak_connection.lock();
  if (!connection) return false;
  boost::asio::post(connection->context(), [weak_connection, f = std::move(f)]() mutable {
    const std::shared_ptr<Connection> self = weak_connection.lock();
    f(self.get());
  });
  return true;
}

void PostGone(const std::weak_ptr<ServerCore>& weak_core, std::function<void()> gone) {
  if (const std::shared_ptr<ServerCore> core = weak_core.lock()) {
    core->workers.Post(std::move(gone));
  }
}

}  // namespace

Exchange::Exchange(std::weak_ptr<ServerCore> core, std::weak_ptr<Connection> connection,
                   Origin origin)
    : core_(std::move(core)),
      connection_(std::move(connection)),
      serial_(origin.serial),
      stops_before_(origin.stops_before),
      socket_(origin.socket) {}

void Exchange::MarkGone() {
  alive_.store(false, std::memory_order_relaxed);
  const MutexLock lock(mutex_);
  socket_ = -1;
}

void Exchange::MarkAnswered() {
  answered_.store(true);
  const MutexLock lock(mutex_);
  socket_ = -1;
}

bool Exchange::wanted() {
  const std::shared_ptr<ServerCore> core = core_.lock();
  // One that never had a server, as in a fuzzer, has nobody who could leave.
  const std::weak_ptr<ServerCore> none;
  if (!core_.owner_before(none) && !none.owner_before(core_)) return alive();
  if (!core || core->stops.Count() != stops_before_) return false;
  const MutexLock lock(mutex_);
  return socket_ >= 0 && !IsClosedByPeer(socket_);
}

Exchange::~Exchange() {
  if (answered_.load()) return;
  Send(ErrorResponse(500, "internal", "The server gave no answer."));
}

bool Exchange::Send(Response response) {
  if (answered_.exchange(true) || !alive()) return false;
  return PostTo(core_, connection_,
                [serial = serial_, response = std::move(response)](Connection* connection) mutable {
                  if (connection != nullptr) connection->Answer(serial, std::move(response));
                });
}

void Exchange::AnswerAfter(double seconds, Response response) {
  if (answered_.load() || !alive()) return;
  PostTo(core_, connection_,
         [serial = serial_, deadline = DeadlineIn(seconds),
          response = std::move(response)](Connection* connection) mutable {
           if (connection != nullptr) connection->Park(serial, deadline, std::move(response));
         });
}

std::shared_ptr<EventStream> Exchange::StartEvents() {
  const std::shared_ptr<ServerCore> core = core_.lock();
  if (!core || answered_.exchange(true) || !alive()) return nullptr;
  auto stream = std::make_shared<EventStream>(core_, connection_, core->options.max_stream_bytes);
  const bool posted =
      PostTo(core_, connection_, [serial = serial_, stream](Connection* connection) {
        if (connection != nullptr) connection->StartEvents(serial, stream);
      });
  return posted ? stream : nullptr;
}

void Exchange::OnGone(std::function<void()> gone) {
  if (answered_.load()) return;
  auto shared = std::make_shared<std::function<void()>>(std::move(gone));
  const bool posted = PostTo(
      core_, connection_,
      [weak = weak_from_this(), core = core_, serial = serial_, shared](Connection* connection) {
        if (connection != nullptr) {
          connection->SetGone(serial, std::move(*shared));
        } else if (const std::shared_ptr<Exchange> self = weak.lock();
                   self && !self->answered_.load()) {
          PostGone(core, std::move(*shared));
        }
      });
  if (!posted) PostGone(core_, std::move(*shared));
}

EventStream::EventStream(std::weak_ptr<ServerCore> core, std::weak_ptr<Connection> connection,
                         std::size_t max_queued_bytes)
    : core_(std::move(core)),
      connection_(std::move(connection)),
      max_queued_bytes_(max_queued_bytes) {}

bool EventStream::Send(std::string_view event_name, std::string_view data, std::string_view id) {
  return Send(std::make_shared<const std::string>(Format(event_name, data, id)));
}

bool EventStream::Send(std::shared_ptr<const std::string> formatted) {
  if (!alive()) return false;
  const std::size_t size = formatted->size();
  if (queued_bytes_.fetch_add(size, std::memory_order_relaxed) + size > max_queued_bytes_) {
    if (alive_.exchange(false)) {
      PostTo(core_, connection_, [](Connection* connection) {
        if (connection != nullptr) connection->DropStream();
      });
    }
    return false;
  }
  return PostTo(core_, connection_,
                [formatted = std::move(formatted)](Connection* connection) mutable {
                  if (connection != nullptr) connection->QueueEvent(std::move(formatted));
                });
}

bool EventStream::SendFirst(std::string_view event_name, std::string_view data,
                            std::string_view id) {
  auto formatted = std::make_shared<const std::string>(Format(event_name, data, id));
  max_queued_bytes_.fetch_add(formatted->size(), std::memory_order_relaxed);
  return Send(std::move(formatted));
}

void EventStream::Close() {
  if (!alive_.exchange(false)) return;
  PostTo(core_, connection_, [](Connection* connection) {
    if (connection != nullptr) connection->EndStream();
  });
}

void EventStream::OnGone(std::function<void()> gone) {
  auto shared = std::make_shared<std::function<void()>>(std::move(gone));
  const bool posted = PostTo(core_, connection_, [core = core_, shared](Connection* connection) {
    if (connection != nullptr) {
      connection->SetStreamGone(std::move(*shared));
    } else {
      PostGone(core, std::move(*shared));
    }
  });
  if (!posted) PostGone(core_, std::move(*shared));
}

Responder::Responder(std::shared_ptr<Exchange> exchange) : exchange_(std::move(exchange)) {}

bool Responder::Send(Response response) const { return exchange_->Send(std::move(response)); }
void Responder::AnswerAfter(double seconds, Response response) const {
  exchange_->AnswerAfter(seconds, std::move(response));
}
std::shared_ptr<EventStream> Responder::StartEvents() const { return exchange_->StartEvents(); }
bool Responder::alive() const { return exchange_->alive(); }
bool Responder::wanted() const { return exchange_->wanted(); }
void Responder::OnGone(std::function<void()> gone) const { exchange_->OnGone(std::move(gone)); }

namespace {

// Reads of one connection before others have their turn.
constexpr int kReadsInTurn = 16;
constexpr std::size_t kMaxLoggedPath = 200;

constexpr double kLingerSeconds = 2;
constexpr double kLingerSecondsAtStop = 0.25;
// Events that are joined into one write.
constexpr std::size_t kBatchBytes = 32 << 10;
// A short body is copied behind its head, a long one is written from where it is.
constexpr std::size_t kJoinedBytes = 4 << 10;

}  // namespace

// A request on its way to a worker.
struct Connection::Job {
  Request request;
  std::vector<std::string> parameters;
  const Route* route;
  std::uint64_t stops_before;
  Responder responder;
  BodyCharge charge;
};

bool Connection::BodyCharge::Set(std::size_t bytes) {
  const std::uint64_t before = core_->counters.body_bytes_now.fetch_add(bytes - bytes_);
  const std::uint64_t now = before + (bytes - bytes_);
  const bool fits = bytes <= bytes_ || now <= core_->options.max_bodies_bytes;
  bytes_ = bytes;
  return fits;
}

Connection::Connection(ServerCore* core, IoLoop* loop, std::unique_ptr<Transport> transport,
                       Origin origin)
    : core_(core),
      loop_(loop),
      transport_(std::move(transport)),
      waiter_(loop->context, transport_->descriptor()),
      origin_(std::move(origin)),
      stops_at_empty_(origin_.stops),
      charge_(core) {}

Connection::~Connection() {
  if (state_ != State::kClosed) waiter_.release();  // The transport owns the socket.
}

void Connection::Start() {
  index_ = loop_->connections.size();
  loop_->connections.push_back(shared_from_this());
  SetDeadline(core_->options.header_seconds);
  OnHandshake();
}

void Connection::OnHandshake() {
  switch (transport_->Handshake().what) {
    case IoResult::What::kDone:
      NextRequest();
      return ReadSoon();
    case IoResult::What::kWantRead:
      return ArmRead();
    case IoResult::What::kWantWrite:
      return ArmWrite();
    default:
      ++core_->counters.failed_handshakes;
      return Close();
  }
}

void Connection::Close() {
  if (state_ == State::kClosed) return;
  const std::shared_ptr<Connection> self = shared_from_this();
  if (state_ == State::kWriting || state_ == State::kStreaming) LogAnswer();
  state_ = State::kClosed;
  EndExchange(/*client_is_gone=*/true);
  charge_.Set(0);
  waiter_.release();
  transport_.reset();
  std::shared_ptr<Connection>& place = loop_->connections[index_];
  place = loop_->connections.back();
  place->index_ = index_;
  loop_->connections.pop_back();
  origin_.held.reset();
  core_->ConnectionClosed(origin_.refusal != nullptr);
}

// The request is answered, or will never be.
void Connection::EndExchange(bool client_is_gone) {
  if (parked_answer_) --core_->counters.parked_now;
  parked_answer_.reset();
  if (std::exchange(has_stream_, false)) {
    if (const std::shared_ptr<EventStream> stream = stream_.lock()) stream->MarkGone();
    --core_->counters.streams_now;
  }
  if (const std::shared_ptr<Exchange> exchange = exchange_.lock()) {
    client_is_gone ? exchange->MarkGone() : exchange->MarkAnswered();
  }
  if (client_is_gone && gone_) core_->workers.Post(std::move(gone_));
  exchange_.reset();
  gone_ = nullptr;
}

void Connection::OnTick(SteadyClock::time_point now) {
  switch (state_) {
    case State::kHandshake:
    case State::kWriting:
      if (now < deadline_) return;
      ++core_->counters.timed_out;
      return Close();
    case State::kHead:
    case State::kBody:
      if (now < deadline_) return;
      if (state_ == State::kHead && !parser_->has_started()) return Close();
      ++core_->counters.timed_out;
      return Refuse(408, "The request did not arrive in time.");
    case State::kWorking:
      if (parked_answer_ && now >= deadline_) Answer(serial_, std::move(*parked_answer_));
      return;
    case State::kStreaming:
      if (!out_head_.empty()) {
        if (now >= deadline_) DropStream();
      } else if (now >= heartbeat_) {
        out_head_ = is_chunked_ ? "3\r\n:\n\n\r\n" : ":\n\n";
        SetDeadline(core_->options.write_seconds);
        Flush();
      }
      return;
    case State::kLingering:
      if (now >= deadline_) Close();
      return;
    case State::kClosed:
      return;
  }
}

void Connection::BeginStop() {
  switch (state_) {
    case State::kHandshake:
      return Close();
    case State::kHead:
      if (!parser_->has_started()) Close();
      return;
    case State::kWorking:
      if (parked_answer_) Answer(serial_, std::move(*parked_answer_));
      return;
    case State::kStreaming:
      return EndStream();
    default:
      return;
  }
}

void Connection::LookAfterStop(std::uint64_t stops) {
  if (input_.empty() && !HasInput(transport_->descriptor())) stops_at_empty_ = stops;
}

void Connection::ArmRead() {
  if (read_armed_ || state_ == State::kClosed) return;
  read_armed_ = true;
  waiter_.async_wait(boost::asio::posix::descriptor_base::wait_read,
                     [weak = weak_from_this()](const boost::system::error_code& error) {
                       const std::shared_ptr<Connection> self = weak.lock();
                       if (!self) return;
                       self->read_armed_ = false;
                       if (!error) self->OnReadable();
                     });
}

void Connection::ReadSoon() {
  boost::asio::post(loop_->context, [weak = weak_from_this()] {
    const std::shared_ptr<Connection> self = weak.lock();
    if (self && !self->read_armed_) self->OnReadable();
  });
}

// Requests that a client sends before it has its answer are kept up to the size of
// one head; beyond that, they stay with the client.
bool Connection::WantsInput() const {
  if (peer_ended_) return false;
  return state_ != State::kWriting &&
         (state_ != State::kWorking || input_.size() < core_->options.max_header_bytes);
}

void Connection::OnReadable() {
  if (state_ == State::kHandshake) return OnHandshake();
  if (write_wants_read_) Flush();
  for (int turn = 0; turn < kReadsInTurn; ++turn) {
    if (state_ == State::kClosed || !WantsInput()) return;
    const std::uint64_t stops = core_->stops.Count();
    const IoResult result = transport_->Read(loop_->scratch.data(), loop_->scratch.size());
    switch (result.what) {
      case IoResult::What::kDone:
        core_->counters.bytes_in += result.bytes;
        Consume({loop_->scratch.data(), result.bytes});
        break;
      case IoResult::What::kWantRead:
        if (input_.empty()) stops_at_empty_ = stops;
        return ArmRead();
      case IoResult::What::kWantWrite:
        return ArmWrite();
      case IoResult::What::kEnd:
        return OnPeerEnd();
      case IoResult::What::kBroken:
        return Close();
    }
  }
  ReadSoon();
}

// The client sends no more. Whoever asked may still wait for its answer; but who
// waits for news and closes cannot be told from one that was killed.
void Connection::OnPeerEnd() {
  peer_ended_ = true;
  const bool waits = state_ == State::kWorking && !route_->long_poll;
  if (!waits && state_ != State::kWriting) Close();
}

void Connection::Consume(std::string_view fresh) {
  if (state_ == State::kStreaming || state_ == State::kLingering) return;
  const bool was_empty = input_.empty();
  if (!was_empty) input_.append(fresh);
  std::string_view unread = was_empty ? fresh : std::string_view(input_);
  const std::size_t size = unread.size();
  in_consume_ = true;
  while ((state_ == State::kHead || state_ == State::kBody) && ReadStep(&unread)) {
  }
  in_consume_ = false;
  if (state_ == State::kClosed || state_ == State::kLingering) return;
  if (was_empty) {
    input_.assign(unread);
  } else {
    input_.erase(0, size - unread.size());
  }
  if (input_.empty()) input_.shrink_to_fit();
}

// Reads one part of a request. False: more has to come first.
bool Connection::ReadStep(std::string_view* unread) {
  const bool had_started = parser_->has_started();
  const MessageParser::Fed fed = parser_->Feed(*unread);
  unread->remove_prefix(fed.consumed);
  if (!had_started && parser_->has_started()) {
    begun_ = SteadyClock::now();
    stops_before_ = stops_at_empty_;
    SetDeadline(core_->options.header_seconds);
  }
  const std::string& body = parser_->body();
  if (!charge_.Set(body.empty() ? 0 : body.capacity())) {
    parser_->body() = std::string();
    charge_.Set(0);
    Refuse(503, "The server has too many long requests at once; try again soon.");
    return true;
  }
  switch (fed.step) {
    case MessageParser::Step::kMore:
      return false;
    case MessageParser::Step::kHead:
      OnHead();
      if (state_ == State::kBody && unread->empty()) ContinueBody();
      return true;
    case MessageParser::Step::kDone:
      Dispatch();
      return true;
    case MessageParser::Step::kFailed:
      Refuse(parser_->failure().status, parser_->failure().message);
      return true;
  }
  return false;
}

void Connection::OnHead() {
  MessageHead& head = parser_->head();
  method_ = head.method.substr(0, kMaxLoggedPath);
  path_ = head.target.substr(0, std::min(head.target.find('?'), kMaxLoggedPath));
  is_http_1_1_ = head.is_http_1_1;
  keep_alive_ = head.keep_alive;
  const bool has_body = head.has_body;
  if (origin_.refusal) return Respond(*origin_.refusal, /*keep_alive=*/false);
  const std::shared_ptr<const TokenSet> tokens = core_->tokens();
  AdmissionRules rules;
  rules.router = &core_->router();
  rules.starting = core_->starting();
  rules.tokens = tokens.get();
  rules.only_local_hosts = tokens == nullptr && origin_.peer != "unix";
  rules.max_body_bytes = core_->options.max_body_bytes;
  admission_ = std::make_unique<Admission>(Admit(std::move(head), rules));
  is_head_ = admission_->is_head;
  token_name_ = admission_->request.token_name;
  if (admission_->refusal) {
    // A body that nobody reads would be taken for the next request.
    return Respond(*std::move(admission_->refusal), keep_alive_ && !has_body);
  }
  route_ = admission_->route;
  parser_->AllowBody(admission_->max_body_bytes);
  state_ = State::kBody;
  SetDeadline(core_->options.body_seconds);
  if (!has_body) Dispatch();
}

// The client may wait to be told that its body is wanted.
void Connection::ContinueBody() {
  if (!admission_->expects_continue) return;
  constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
  const IoResult result = transport_->Write(kContinue, {});
  // Nothing else waits to be written, so that this has room.
  if (result.what != IoResult::What::kDone || result.bytes != kContinue.size()) Close();
}

void Connection::Dispatch() {
  state_ = State::kWorking;
  ++serial_;
  begun_ = SteadyClock::now();
  request_bytes_ = parser_->body().size();
  auto exchange = std::make_shared<Exchange>(
      core_->weak_from_this(), weak_from_this(),
      Exchange::Origin{serial_, transport_->descriptor(), stops_before_});
  exchange_ = exchange;
  auto job = std::make_shared<Job>(Job{std::move(admission_->request),
                                       std::move(admission_->parameters), route_, stops_before_,
                                       Responder(std::move(exchange)), std::move(charge_)});
  job->request.body = std::move(parser_->body());
  job->request.peer = origin_.peer;
  job->request.peer_uid = origin_.peer_uid;
  parser_.reset();
  admission_.reset();
  if (route_->is_instant) return Run(core_, *job);
  core_->workers.Post([core = core_, job = std::move(job)] { Run(core, *job); });
}

void Connection::Run(ServerCore* core, const Job& job) {
  if (job.route->method != "GET") {
    if (!job.responder.alive()) return;
    if (core->stops.Count() != job.stops_before) {
      ++core->counters.outdated;
      job.responder.Send(TryAgainResponse(fmt::format(
          "The server was stopped for {:.1f} s after this was sent, and did nothing of it; send "
          "the request again.",
          core->stops.last_seconds())));
      return;
    }
  }
  std::string fault;
  try {
    return job.route->handle(job.request, job.parameters, job.responder);
  } catch (const std::exception& exception) {
    fault = exception.what();
  } catch (...) {
    fault = "an exception that is none of the standard library's";
  }
  job.responder.Send(ErrorResponse(500, "internal", "The server failed at this request."));
  core->Report(
      fmt::format("A bug: {} {} threw: {}.", job.route->method, job.route->pattern, fault));
}

// Answers what never reaches a handler, and closes.
void Connection::Refuse(int status, std::string_view message) {
  Response response = ErrorResponse(status, ErrorCodeOf(status), message);
  if (status == 503) response.headers.emplace_back("Retry-After", "1");
  Respond(std::move(response), /*keep_alive=*/false);
}

void Connection::ArmWrite() {
  if (write_armed_ || state_ == State::kClosed) return;
  write_armed_ = true;
  waiter_.async_wait(boost::asio::posix::descriptor_base::wait_write,
                     [weak = weak_from_this()](const boost::system::error_code& error) {
                       const std::shared_ptr<Connection> self = weak.lock();
                       if (!self) return;
                       self->write_armed_ = false;
                       if (!error) self->OnWritable();
                     });
}

void Connection::OnWritable() {
  if (state_ == State::kHandshake) return OnHandshake();
  if (!out_head_.empty()) return Flush();
  OnReadable();  // TLS wanted to write before it could read.
}

void Connection::Answer(std::uint64_t serial, Response response) {
  if (state_ != State::kWorking || serial != serial_) return;
  EndExchange(/*client_is_gone=*/false);
  Respond(std::move(response), keep_alive_);
}

void Connection::Park(std::uint64_t serial, SteadyClock::time_point deadline, Response response) {
  if (state_ != State::kWorking || serial != serial_) return;
  if (core_->is_stopping()) return Answer(serial, std::move(response));
  if (!parked_answer_) ++core_->counters.parked_now;
  parked_answer_ = std::make_unique<Response>(std::move(response));
  deadline_ = deadline;
}

void Connection::SetGone(std::uint64_t serial, std::function<void()> gone) {
  if (state_ == State::kWorking && serial == serial_) gone_ = std::move(gone);
}

void Connection::Respond(Response response, bool keep_alive) {
  state_ = State::kWriting;
  keep_alive_ = keep_alive && !core_->is_stopping();
  status_ = response.status;
  ResponseFraming framing;
  framing.keep_alive = keep_alive_;
  framing.is_http_1_1 = is_http_1_1_;
  out_head_ = FormatHead(response, framing, loop_->Date());
  const bool has_body = response.body && MayHaveBody(response.status) && !is_head_;
  out_body_ = has_body ? std::move(response.body) : nullptr;
  // Join an unshared body to the head, whatever its size, if a shared tail follows it.
  if (out_body_ && (response.tail || out_body_->size() <= kJoinedBytes)) {
    out_head_ += *out_body_;
    out_body_ = std::move(response.tail);
  }
  out_offset_ = 0;
  const std::size_t size = out_head_.size() + (out_body_ ? out_body_->size() : 0);
  SetDeadline(core_->options.write_seconds +
              static_cast<double>(size) / core_->options.min_write_bytes_per_second);
  Flush();
}

void Connection::Flush() {
  write_wants_read_ = false;
  const std::string_view body = out_body_ ? std::string_view(*out_body_) : std::string_view();
  while (out_offset_ < out_head_.size() + body.size()) {
    const std::size_t of_head = std::min(out_offset_, out_head_.size());
    const IoResult result = transport_->Write(std::string_view(out_head_).substr(of_head),
                                              body.substr(out_offset_ - of_head));
    switch (result.what) {
      case IoResult::What::kDone:
        out_offset_ += result.bytes;
        sent_bytes_ += result.bytes;
        core_->counters.bytes_out += result.bytes;
        break;
      case IoResult::What::kWantRead:
        write_wants_read_ = true;
        return ArmRead();
      case IoResult::What::kWantWrite:
        return ArmWrite();
      default:
        return Close();
    }
  }
  OnWritten();
}

void Connection::OnWritten() {
  out_head_ = std::string();
  out_body_.reset();
  out_offset_ = 0;
  if (state_ == State::kStreaming) {
    const std::size_t sent = std::exchange(batch_bytes_, 0);
    if (const std::shared_ptr<EventStream> stream = stream_.lock()) stream->MarkSent(sent);
    return WriteEvents();
  }
  FinishAnswer();
}

void Connection::FinishAnswer() {
  LogAnswer();
  EndExchange(/*client_is_gone=*/false);
  if (!keep_alive_) return Linger();
  NextRequest();
  if (in_consume_) return;
  Consume({});
  if (state_ == State::kHead && peer_ended_) return Close();
  if (WantsInput()) ReadSoon();
}

void Connection::NextRequest() {
  const bool is_first = state_ == State::kHandshake;
  state_ = State::kHead;
  parser_.emplace(MessageKind::kRequest, core_->options.max_header_bytes);
  admission_.reset();
  route_ = nullptr;
  is_head_ = false;
  method_.clear();
  path_ = std::string();
  token_name_ = std::string();
  request_bytes_ = 0;
  const ServerOptions& options = core_->options;
  const double patience =
      is_first || origin_.refusal ? options.header_seconds : options.idle_seconds;
  SetDeadline(core_->is_stopping() ? 0 : patience);
}

void Connection::Linger() {
  transport_->EndWrite();
  state_ = State::kLingering;
  input_ = std::string();
  parser_.reset();
  charge_.Set(0);
  SetDeadline(core_->is_stopping() ? kLingerSecondsAtStop : kLingerSeconds);
  if (peer_ended_) return Close();
  ReadSoon();
}

void Connection::StartEvents(std::uint64_t serial, const std::shared_ptr<EventStream>& stream) {
  if (state_ != State::kWorking || serial != serial_ || core_->is_stopping()) {
    stream->MarkGone();
    if (state_ == State::kWorking && serial == serial_) {
      Answer(serial, ErrorResponse(503, "unavailable", "The server is stopping."));
    }
    return;
  }
  EndExchange(/*client_is_gone=*/false);
  state_ = State::kStreaming;
  keep_alive_ = false;
  stream_ = stream;
  has_stream_ = true;
  ++core_->counters.streams_now;
  Response response;
  response.content_type = "text/event-stream";
  status_ = response.status;
  is_chunked_ = is_http_1_1_;
  stream_ends_ = is_head_;
  ResponseFraming framing;
  framing.body = is_chunked_ ? BodyFraming::kChunked : BodyFraming::kUntilClose;
  framing.keep_alive = false;
  out_head_ = FormatHead(response, framing, loop_->Date());
  SetDeadline(core_->options.write_seconds);
  input_ = std::string();
  Flush();
}

void Connection::SetStreamGone(std::function<void()> gone) {
  if (state_ == State::kStreaming) {
    gone_ = std::move(gone);
  } else {
    core_->workers.Post(std::move(gone));
  }
}

void Connection::QueueEvent(std::shared_ptr<const std::string> formatted) {
  if (state_ != State::kStreaming || stream_ends_) return;
  events_.push_back(std::move(formatted));
  if (out_head_.empty()) WriteEvents();
}

void Connection::EndStream() {
  if (state_ != State::kStreaming || stream_ends_) return;
  stream_ends_ = true;
  if (const std::shared_ptr<EventStream> stream = stream_.lock()) stream->MarkGone();
  if (out_head_.empty()) WriteEvents();
}

void Connection::DropStream() {
  if (state_ != State::kStreaming) return;
  ++core_->counters.dropped_streams;
  Close();
}

// Nothing is being written: joins what waits into one write.
void Connection::WriteEvents() {
  if (events_.empty()) {
    if (!stream_ends_) {
      heartbeat_ = DeadlineIn(core_->options.heartbeat_seconds);
      return ArmRead();
    }
    if (!is_chunked_ || is_head_) return FinishAnswer();
    is_chunked_ = false;  // The empty last chunk must be written only once.
    out_head_ = "0\r\n\r\n";
  } else {
    std::string batch;
    while (!events_.empty() && (batch.empty() || batch.size() < kBatchBytes)) {
      batch += *events_.front();
      events_.pop_front();
    }
    batch_bytes_ = batch.size();
    out_head_ = is_chunked_ ? fmt::format("{:x}\r\n{}\r\n", batch.size(), batch) : std::move(batch);
  }
  SetDeadline(core_->options.write_seconds);
  Flush();
}

void Connection::LogAnswer() {
  ++core_->counters.requests;
  core_->counters.CountStatus(status_);
  if (core_->options.on_access) {
    AccessRecord record;
    record.peer = origin_.peer;
    record.method = method_;
    record.path = path_;
    record.pattern = route_ != nullptr ? std::string_view(route_->pattern) : std::string_view();
    record.token_name = token_name_;
    record.status = status_;
    record.request_bytes = request_bytes_;
    record.response_bytes = sent_bytes_;
    record.seconds = std::chrono::duration<double>(SteadyClock::now() - begun_).count();
    core_->options.on_access(record);
  }
  sent_bytes_ = 0;
}

}  // namespace perseus::http
