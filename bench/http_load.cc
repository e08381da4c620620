// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// Load that the HTTP server bears on this machine: parked long polls, their memory, how fast
// news reaches all of them, and requests a second. Server and clients are two processes,
// over real sockets:
//   cmake --build build/release --target http_load
//   build/release/bench/http_load [POLLS [CERTIFICATE KEY]]     (8192 polls; with files: TLS)

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "http/client_wire.h"
#include "http/server.h"
#include "http/transport.h"

namespace perseus::http {
namespace {

constexpr std::size_t kBodyBytes = 16 << 10;  // A plan of a few hundred computations.
constexpr int kRounds = 5;
constexpr int kBusyConnections = 64;
constexpr double kBusySeconds = 3;

using Clock = std::chrono::steady_clock;

std::int64_t NowNs() { return Clock::now().time_since_epoch().count(); }
double SecondsSince(std::int64_t begin_ns) { return static_cast<double>(NowNs() - begin_ns) / 1e9; }

// Resident memory of this process.
double ResidentMib() {
  std::ifstream file("/proc/self/statm");
  double total = 0;
  double resident = 0;
  file >> total >> resident;
  return resident * static_cast<double>(::sysconf(_SC_PAGESIZE)) / (1 << 20);
}

[[noreturn]] void Die(const std::string& sentence) {
  std::fprintf(stderr, "http_load: %s\n", sentence.c_str());
  std::_Exit(1);
}

template <typename T>
T Must(Result<T> result) {
  if (!result) Die(result.error().message);
  return *std::move(result);
}

void RaiseFileLimit() {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

std::string Percentiles(std::vector<double> seconds) {
  std::sort(seconds.begin(), seconds.end());
  const auto at = [&](double share) {
    return 1e3 * seconds[static_cast<std::size_t>(share * static_cast<double>(seconds.size() - 1))];
  };
  return fmt::format("p50 {:.2f} ms, p99 {:.2f} ms, last {:.2f} ms", at(0.5), at(0.99), at(1));
}

// Many connections of one client process, answered in any order.
class Crowd {
 public:
  Crowd(const std::string& url, const std::string& ca_file, int count)
      : cancel_(Must(CancelSignal::Make())), epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
    const Endpoint endpoint = Must(ParseEndpoint(url));
    std::optional<TlsContext> tls;
    if (endpoint.is_tls) tls = Must(TlsContext::ForClient(ca_file));
    for (int i = 0; i < count; ++i) {
      FileDescriptor socket = Must(ConnectSocket(endpoint, DeadlineIn(30), *cancel_));
      members_.push_back(
          {tls ? tls->Connect(std::move(socket), endpoint.host) : PlainTransport(std::move(socket)),
           ""});
      Transport& transport = *members_.back().transport;
      while (transport.Handshake().what != IoResult::What::kDone) {
        WaitFor(transport.descriptor(), POLLIN, DeadlineIn(1), *cancel_);
      }
      epoll_event event{};
      event.events = EPOLLIN;
      event.data.u64 = static_cast<std::uint64_t>(i);
      ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, transport.descriptor(), &event);
    }
  }

  std::size_t size() const { return members_.size(); }

  void Ask(std::size_t member, const char* target) {
    const std::string request = fmt::format("GET {} HTTP/1.1\r\nHost: localhost\r\n\r\n", target);
    if (members_[member].transport->Write(request, {}).bytes != request.size()) {
      Die("a request did not fit the socket");
    }
  }

  // Calls `on_answer(member, body)` for each answer until it returns false.
  template <typename F>
  void Read(F on_answer) {
    std::array<epoll_event, 256> events{};
    std::vector<char> buffer(64 << 10);
    for (;;) {
      const int count = ::epoll_wait(epoll_.get(), events.data(), events.size(), 30000);
      if (count <= 0) Die("nothing came for 30 s");
      for (int i = 0; i < count; ++i) {
        const std::size_t index = events[static_cast<std::size_t>(i)].data.u64;
        Member& member = members_[index];
        IoResult result;
        while ((result = member.transport->Read(buffer.data(), buffer.size())).what ==
               IoResult::What::kDone) {
          member.input.append(buffer.data(), result.bytes);
        }
        if (result.what != IoResult::What::kWantRead) Die("a connection was closed");
        std::string body;
        if (TakeAnswer(&member.input, &body) && !on_answer(index, body)) return;
      }
    }
  }

 private:
  struct Member {
    std::unique_ptr<Transport> transport;
    std::string input;
  };

  static bool TakeAnswer(std::string* input, std::string* body) {
    const std::size_t end = input->find("\r\n\r\n");
    if (end == std::string::npos) return false;
    const std::size_t length = input->find("Content-Length: ");
    const std::size_t size = std::strtoul(input->c_str() + length + 16, nullptr, 10);
    if (input->size() < end + 4 + size) return false;
    *body = input->substr(end + 4, size);
    input->erase(0, end + 4 + size);
    return true;
  }

  std::unique_ptr<CancelSignal> cancel_;
  FileDescriptor epoll_;
  std::vector<Member> members_;
};

// The client process: parks, reports, and then asks as fast as it can.
void RunClients(const std::string& url, const std::string& ca_file, int polls) {
  const std::int64_t begin = NowNs();
  Crowd crowd(url, ca_file, polls);
  const double connected = SecondsSince(begin);
  for (int round = 0; round < kRounds; ++round) {
    for (std::size_t i = 0; i < crowd.size(); ++i) crowd.Ask(i, "/wait");
    if (round == 0) {
      std::printf("%d connections in %.2f s, all parked after %.2f s\n", polls, connected,
                  SecondsSince(begin));
    }
    std::vector<double> latencies;
    crowd.Read([&](std::size_t, const std::string& body) {
      latencies.push_back(SecondsSince(std::strtoll(body.c_str(), nullptr, 10)));
      return latencies.size() < crowd.size();
    });
    std::printf("news of %zu bytes to all %d: %s\n", kBodyBytes, polls,
                Percentiles(std::move(latencies)).c_str());
    std::fflush(stdout);
  }
  for (std::size_t i = 0; i < crowd.size(); ++i) crowd.Ask(i, "/wait");

  Crowd busy(url, ca_file, kBusyConnections);
  std::vector<std::int64_t> asked(busy.size());
  std::vector<double> latencies;
  const std::int64_t start = NowNs();
  for (std::size_t i = 0; i < busy.size(); ++i) {
    asked[i] = NowNs();
    busy.Ask(i, "/hello/7");
  }
  busy.Read([&](std::size_t i, const std::string&) {
    latencies.push_back(SecondsSince(asked[i]));
    asked[i] = NowNs();
    busy.Ask(i, "/hello/7");
    return SecondsSince(start) < kBusySeconds;
  });
  std::printf("requests on %d connections, %d parked beside: %.0f/s, %s\n", kBusyConnections, polls,
              static_cast<double>(latencies.size()) / SecondsSince(start),
              Percentiles(latencies).c_str());
  std::fflush(stdout);
}

// Parked requests, answered by the main thread.
struct Parked {
  std::mutex mutex;
  std::vector<Responder> responders;
};

std::vector<Route> Routes(Parked* parked) {
  Route wait;
  wait.method = "GET";
  wait.pattern = "/wait";
  wait.at_least = Role::kNone;
  wait.long_poll = true;
  wait.handle = [parked](const Request&, const std::vector<std::string>&, Responder responder) {
    Response nothing;
    nothing.status = 204;
    responder.AnswerAfter(600, nothing);
    const std::lock_guard lock(parked->mutex);
    parked->responders.push_back(std::move(responder));
  };
  Route hello;
  hello.method = "GET";
  hello.pattern = "/hello/{name}";
  hello.at_least = Role::kNone;
  hello.handle = [](const Request&, const std::vector<std::string>& parameters,
                    const Responder& responder) {
    responder.Send(JsonResponse(200, "{\"hello\":\"" + parameters[0] + "\"}\n"));
  };
  return {wait, hello};
}

// Those of all clients; parked_now still counts those whose answer is on its way.
std::vector<Responder> WaitUntilParked(Parked* parked, std::size_t polls) {
  for (;;) {
    {
      const std::lock_guard lock(parked->mutex);
      if (parked->responders.size() == polls) return std::exchange(parked->responders, {});
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

int Run(int polls, const std::string& certificate, const std::string& key) {
  RaiseFileLimit();
  ServerOptions options;
  options.listen = "127.0.0.1:0";
  options.max_connections = static_cast<std::size_t>(polls) + 1000;
  options.tls_certificate_file = certificate;
  options.tls_key_file = key;
  Parked parked;
  const std::unique_ptr<Server> server = Must(Server::Open(options, Routes(&parked)));
  const pid_t child = ::fork();  // Before there are threads that matter to it.
  if (child == 0) {
    RunClients(server->url(), certificate, polls);
    std::_Exit(0);
  }
  server->Serve();
  const double before = ResidentMib();
  for (int round = 0; round < kRounds; ++round) {
    const std::vector<Responder> responders =
        WaitUntilParked(&parked, static_cast<std::size_t>(polls));
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    if (round == 0) {
      const double now = ResidentMib();
      std::printf("server: %.1f MiB before, %.1f MiB with %d parked: %.0f bytes each\n", before,
                  now, polls, (now - before) * (1 << 20) / polls);
      std::fflush(stdout);
    }
    std::string body = std::to_string(NowNs());
    body.resize(kBodyBytes, ' ');
    Response news;
    news.body = std::make_shared<const std::string>(std::move(body));
    for (const Responder& responder : responders) responder.Send(news);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  std::printf("server at the end: %.1f MiB\n", ResidentMib());
  server->Stop(1);
  return status == 0 ? 0 : 1;
}

}  // namespace
}  // namespace perseus::http

int main(int argc, char** argv) {
  const int polls = argc > 1 ? std::atoi(argv[1]) : 8192;
  if (polls < 1 || argc == 3) {
    std::fprintf(stderr, "usage: http_load [POLLS [CERTIFICATE KEY]]\n");
    return 2;
  }
  return perseus::http::Run(polls, argc > 3 ? argv[2] : "", argc > 3 ? argv[3] : "");
}
