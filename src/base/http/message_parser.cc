// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "http/message_parser.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/beast/http/basic_parser.hpp>
#include <boost/beast/http/error.hpp>
#include <limits>
#include <optional>
#include <utility>

#include "http/message.h"

// Not without a name: MessageParser::Impl is made of these.
namespace perseus::http::grammar {

namespace beast = boost::beast;

// Each costs memory of its own, however short it is.
constexpr std::size_t kMaxHeaders = 100;
// A body's memory before it arrives: what a sender announces costs it nothing.
constexpr std::size_t kMaxReservedBytes = 64 << 10;

// The target of the grammar's callbacks.
struct Sink {
  MessageHead head;
  std::string body;
  std::size_t max_body_bytes = 0;
  std::size_t body_bytes = 0;  // That were read, also those taken away again.
  bool head_done = false;
  bool too_many_headers = false;
  bool body_too_long = false;

  void AddHeader(std::string_view name, std::string_view value, beast::error_code& error) {
    if (head_done) return;  // A trailer, which could overrule what was checked.
    if (head.headers.size() == kMaxHeaders) {
      too_many_headers = true;
      error = beast::http::error::header_limit;
      return;
    }
    head.headers.emplace_back(name, value);
  }

  std::size_t AddBody(std::string_view piece, beast::error_code& error) {
    if (piece.size() > max_body_bytes - std::min(max_body_bytes, body_bytes)) {
      body_too_long = true;
      error = beast::http::error::body_limit;
      return 0;
    }
    if (body.empty() && head.content_length) {
      body.reserve(std::min<std::uint64_t>(*head.content_length, kMaxReservedBytes));
    }
    body_bytes += piece.size();
    body.append(piece);
    return piece.size();
  }
};

std::string_view View(beast::string_view text) { return {text.data(), text.size()}; }

template <bool kIsRequest>
class Grammar final : public beast::http::basic_parser<kIsRequest> {
 public:
  explicit Grammar(Sink* sink) : sink_(sink) {}

  // Not `override`: Boost before 1.85 has no such function, and gives trailers to
  // on_field_impl.
  void on_trailer_field_impl(beast::http::field /*field*/, beast::string_view /*name*/,
                             beast::string_view /*value*/, beast::error_code& /*error*/) {}

 private:
  void on_request_impl(beast::http::verb /*verb*/, beast::string_view method,
                       beast::string_view target, int version, beast::error_code& /*e*/) override {
    sink_->head.method = View(method);
    sink_->head.target = View(target);
    sink_->head.is_http_1_1 = version == 11;
  }
  void on_response_impl(int status, beast::string_view /*reason*/, int version,
                        beast::error_code& /*error*/) override {
    sink_->head.status = status;
    sink_->head.is_http_1_1 = version == 11;
  }
  void on_field_impl(beast::http::field /*field*/, beast::string_view name,
                     beast::string_view value, beast::error_code& error) override {
    sink_->AddHeader(View(name), View(value), error);
  }
  void on_header_impl(beast::error_code& /*error*/) override { sink_->head_done = true; }
  void on_body_init_impl(const boost::optional<std::uint64_t>& /*length*/,
                         beast::error_code& /*error*/) override {}
  std::size_t on_body_impl(beast::string_view piece, beast::error_code& error) override {
    return sink_->AddBody(View(piece), error);
  }
  void on_chunk_header_impl(std::uint64_t /*size*/, beast::string_view /*extensions*/,
                            beast::error_code& /*error*/) override {}
  std::size_t on_chunk_body_impl(std::uint64_t /*remain*/, beast::string_view piece,
                                 beast::error_code& error) override {
    return sink_->AddBody(View(piece), error);
  }
  void on_finish_impl(beast::error_code& /*error*/) override {}

  Sink* sink_;
};

}  // namespace perseus::http::grammar

namespace perseus::http {
namespace {

// A fault of a request that the grammar allows. None: all is well.
std::optional<MessageParser::Failure> FaultOfRequest(const MessageHead& head) {
  int hosts = 0;
  int codings = 0;
  for (const auto& [name, value] : head.headers) {
    if (SameIgnoringCase(name, "Host")) ++hosts;
    if (!SameIgnoringCase(name, "Transfer-Encoding")) continue;
    ++codings;
    // Another coding beside "chunked" could be read in two ways (RFC 9112, 6.1).
    if (!SameIgnoringCase(value, "chunked") || codings > 1) {
      return MessageParser::Failure{501, "No Transfer-Encoding but chunked is understood."};
    }
  }
  if (codings > 0 && !head.is_http_1_1) {
    return MessageParser::Failure{400, "HTTP/1.0 has no Transfer-Encoding."};
  }
  if (hosts > 1 || (hosts == 0 && head.is_http_1_1)) {
    return MessageParser::Failure{400, "A request needs one Host header."};
  }
  return std::nullopt;
}

}  // namespace

class MessageParser::Impl {
  using Sink = grammar::Sink;
  template <bool kIsRequest>
  using Grammar = grammar::Grammar<kIsRequest>;
  using ErrorCode = boost::beast::error_code;
  using GrammarError = boost::beast::http::error;

 public:
  Impl(MessageKind kind, std::size_t max_head_bytes) : max_head_bytes_(max_head_bytes) {
    if (kind == MessageKind::kRequest) {
      Prepare(request_.emplace(&sink_));
    } else {
      Prepare(response_.emplace(&sink_)).skip(kind == MessageKind::kResponseToHead);
    }
  }

  Fed Feed(std::string_view bytes) {
    return request_ ? FeedTo(*request_, bytes) : FeedTo(*response_, bytes);
  }

  // Only a response may end so.
  bool FeedEnd() {
    if (!response_ || !response_->is_header_done()) return false;
    ErrorCode fault;
    response_->put_eof(fault);
    return !fault;
  }

  Sink& sink() { return sink_; }
  bool has_started() const { return has_started_; }
  const Failure& failure() const { return failure_; }

 private:
  template <bool kIsRequest>
  Grammar<kIsRequest>& Prepare(Grammar<kIsRequest>& grammar) {
    grammar.eager(false);
    // AddBody() bounds bodies. (In Boost 1.74 "no limit" is one of 0.)
    grammar.body_limit(std::numeric_limits<std::uint64_t>::max());
    grammar.header_limit(static_cast<std::uint32_t>(max_head_bytes_));
    return grammar;
  }

  Fed Fail(int status, std::string message, std::size_t consumed) {
    failure_ = {status, std::move(message)};
    return {Step::kFailed, consumed};
  }

  Fed FailAfter(const ErrorCode& fault, std::size_t consumed) {
    if (sink_.body_too_long) {
      return Fail(413, fmt::format("The body has more than {} bytes.", sink_.max_body_bytes),
                  consumed);
    }
    if (sink_.too_many_headers) {
      return Fail(431, fmt::format("There are more than {} headers.", grammar::kMaxHeaders),
                  consumed);
    }
    if (fault == GrammarError::header_limit) return HeadTooLong(consumed);
    if (fault == GrammarError::bad_version) {
      return Fail(505, "This server speaks HTTP/1.1 and HTTP/1.0.", consumed);
    }
    return Fail(400, fmt::format("This is no HTTP/1.1: {}.", fault.message()), consumed);
  }

  Fed HeadTooLong(std::size_t consumed) {
    return Fail(431, fmt::format("The headers have more than {} bytes.", max_head_bytes_),
                consumed);
  }

  template <bool kIsRequest>
  Fed FeedTo(Grammar<kIsRequest>& grammar, std::string_view bytes) {
    std::size_t consumed = 0;
    if (head_given_ && grammar.is_done()) return {Step::kDone, 0};
    while (consumed < bytes.size()) {
      has_started_ = true;
      const bool was_in_head = !grammar.is_header_done();
      ErrorCode fault;
      const std::size_t count =
          grammar.put(boost::asio::buffer(bytes.data() + consumed, bytes.size() - consumed), fault);
      consumed += count;
      const std::size_t kept = bytes.size() - consumed;
      if (was_in_head) head_bytes_ += count;
      if (fault && fault != GrammarError::need_more) return FailAfter(fault, consumed);
      if (head_bytes_ > max_head_bytes_) return HeadTooLong(consumed);
      if (fault) {
        if ((grammar.is_header_done() ? 0 : head_bytes_) + kept > max_head_bytes_) {
          return HeadTooLong(consumed);
        }
        return {Step::kMore, consumed};
      }
      if (was_in_head && grammar.is_header_done()) return GiveHead(grammar, consumed);
      if (grammar.is_done()) return {Step::kDone, consumed};
    }
    return {Step::kMore, consumed};
  }

  template <bool kIsRequest>
  Fed GiveHead(Grammar<kIsRequest>& grammar, std::size_t consumed) {
    head_given_ = true;
    sink_.head.keep_alive = grammar.keep_alive();
    sink_.head.has_body = !grammar.is_done();
    if (const auto length = grammar.content_length()) sink_.head.content_length = *length;
    if (kIsRequest) {
      if (std::optional<Failure> failure = FaultOfRequest(sink_.head)) {
        failure_ = *std::move(failure);
        return {Step::kFailed, consumed};
      }
    }
    return {Step::kHead, consumed};
  }

  Sink sink_;
  bool has_started_ = false;
  Failure failure_;
  std::size_t max_head_bytes_;
  std::size_t head_bytes_ = 0;
  bool head_given_ = false;
  std::optional<Grammar<true>> request_;  // One of the two.
  std::optional<Grammar<false>> response_;
};

MessageParser::MessageParser(MessageKind kind, std::size_t max_head_bytes)
    : impl_(std::make_unique<Impl>(kind, max_head_bytes)) {}
MessageParser::MessageParser(MessageParser&&) noexcept = default;
MessageParser& MessageParser::operator=(MessageParser&&) noexcept = default;
MessageParser::~MessageParser() = default;

MessageParser::Fed MessageParser::Feed(std::string_view bytes) { return impl_->Feed(bytes); }
bool MessageParser::FeedEnd() { return impl_->FeedEnd(); }

void MessageParser::AllowBody(std::size_t max_bytes) { impl_->sink().max_body_bytes = max_bytes; }

bool MessageParser::has_started() const { return impl_->has_started(); }
MessageHead& MessageParser::head() { return impl_->sink().head; }
std::string& MessageParser::body() { return impl_->sink().body; }
const MessageParser::Failure& MessageParser::failure() const { return impl_->failure(); }

}  // namespace perseus::http
