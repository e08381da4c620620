// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// Reading a plan waits for nothing that its job does.

#include <gtest/gtest.h>

#include <future>
#include <string>
#include <thread>

#include "http/client.h"
#include "http/server.h"
#include "server/api/api.h"
#include "server/service_testing.h"

namespace perseus::server {
namespace {

using BusyStrandTest = ServiceTest;

// At how many looks at the clock from now this thread is held up. 0: at none.
thread_local int looks_until_held = 0;

// A decision that does not end holds the job's strand. Plans are read all the same.
TEST_F(BusyStrandTest, ABusyStrandDelaysNoPlan) {
  std::promise<void> is_held;
  std::promise<void> is_free;
  ServiceOptions options;
  options.now_seconds = [&] {
    if (looks_until_held > 0 && --looks_until_held == 0) {
      is_held.set_value();
      is_free.get_future().wait();
    }
    return now_.load();
  };
  options.steady_seconds = [this] { return now_.load(); };
  Restart(options);
  const auto job = Create();
  RegisterAll(*job);
  AwaitRefined(*job);
  http::ServerOptions http;
  http.listen = "127.0.0.1:0";
  auto server = http::Server::Open(http, ApiRoutes(*service_));
  ASSERT_TRUE(server) << server.error().message;
  (*server)->Serve();
  http::ClientOptions to;
  to.url = (*server)->url();
  auto client = http::Client::Create(to);
  ASSERT_TRUE(client);

  std::thread holder([&] {
    looks_until_held = 1;  // That of the decision.
    DoAndWait(*job, SetTarget{"1.2x"});
  });
  is_held.get_future().wait();
  // After the deadline of a call it would be an error.
  const std::string path = "/api/v1/jobs/" + job->id();
  for (const char* const plan : {"/plan?rank=1&after=-1", "/plans?ranks=0-3&after=-1"}) {
    const auto answer = client->Call("GET", path + plan);
    EXPECT_TRUE(answer && answer->status == 200) << plan;
  }
  is_free.set_value();
  holder.join();
  EXPECT_EQ(job->View().target, "1.2x");
  (*server)->Stop(0);
}

}  // namespace
}  // namespace perseus::server
