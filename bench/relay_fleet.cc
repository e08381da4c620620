// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// relay_fleet SERVER FOLDER FIRST COUNT: so many relays in one process, as nodes that
// bench/server_scale.py simulates. Relay i is at FOLDER/i; its threads and its two
// connections to the server are its own. Says "ready"; ends when its input does.

#include <fmt/format.h>
#include <sys/resource.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "relay/relay.h"

int main(int argc, char** argv) {
  if (argc != 5) {
    std::fputs("relay_fleet SERVER FOLDER FIRST COUNT\n", stderr);
    return 2;
  }
  // Each relay asks for its own part only.
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &files);
  const int first = std::atoi(argv[3]);
  const int count = std::atoi(argv[4]);
  std::vector<std::unique_ptr<perseus::relay::Relay>> relays;
  for (int i = first; i < first + count; ++i) {
    perseus::relay::RelayOptions options;
    options.server.url = argv[1];
    options.socket_path = fmt::format("{}/{}", argv[2], i);
    options.max_connections = 64;
    auto relay = perseus::relay::Relay::Start(std::move(options));
    if (!relay) {
      std::fputs((relay.error().message + "\n").c_str(), stderr);
      return 1;
    }
    relays.push_back(*std::move(relay));
  }
  std::puts("ready");
  std::fflush(stdout);
  while (std::getchar() != EOF) {
  }
  return 0;
}
