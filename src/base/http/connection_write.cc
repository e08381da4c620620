// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "http/connection.h"
#include "http/exchange.h"

// The half of Connection that writes.
namespace perseus::http {
namespace {

constexpr double kLingerSeconds = 2;
constexpr double kLingerSecondsAtStop = 0.25;
// Events that are joined into one write.
constexpr std::size_t kBatchBytes = 32 << 10;
// A short body is copied behind its head, a long one is written from where it is.
constexpr std::size_t kJoinedBytes = 4 << 10;

}  // namespace

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
  // What is not shared goes behind the head, whatever its size, where more follows it.
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
    if (stream_) stream_->MarkSent(std::exchange(batch_bytes_, 0));
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

void Connection::StartEvents(std::uint64_t serial, std::shared_ptr<EventStreamCore> stream) {
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
  stream_ = std::move(stream);
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
  if (stream_) stream_->MarkGone();
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
      heartbeat_ =
          SteadyClock::now() + std::chrono::duration_cast<SteadyClock::duration>(
                                   std::chrono::duration<double>(core_->options.heartbeat_seconds));
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
