// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// Any target and any body for the handlers of the server, on a real store and a real
// job. The first line is "METHOD TARGET", the rest the body; JOB in the target stands
// for the job's id. What the answers must be is tested over HTTP (tests/hostile); here
// nothing may throw, read beyond a buffer, or hang.

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "http/admission.h"
#include "http/connection.h"
#include "http/server.h"
#include "server/api/api.h"
#include "server/planning/job_spec.h"
#include "server/runtime/job_service.h"
#include "server/runtime/waiting.h"
#include "server/store/store.h"

namespace perseus::server {
namespace {

constexpr const char* kProfile =
    "stage,instruction,frequency,time,energy\n"
    "0,forward,1400,1,100\n0,forward,1000,1.6,60\n"
    "0,backward,1400,2,200\n0,backward,1000,3.2,120\n"
    "1,forward,1400,1.5,150\n1,forward,1000,2.4,95\n"
    "1,backward,1400,3,300\n1,backward,1000,4.8,190\n";
constexpr const char* kSettings =
    R"({"schedule":"1f1b","microbatches":2,"data_parallel":2,"blocking_power":20,"effort":0.02})";
constexpr std::size_t kMostJobs = 4;
constexpr std::size_t kMostBodyBytes = 16 << 10;

template <typename T>
T Must(T result) {
  if (!result) std::abort();
  return result;
}

// A service that forgets what the inputs made, before there is much of it.
class Target {
 public:
  Target() {
    // The store writes each fact through to the disk; memory is faster.
    const char* const memory = "/dev/shm";
    folder_ = std::filesystem::is_directory(memory) ? memory : "/tmp";
    folder_ += "/perseus-fuzz-XXXXXX";
    if (mkdtemp(folder_.data()) == nullptr) std::abort();
    Start();
  }
  ~Target() {
    service_.reset();
    std::filesystem::remove_all(folder_);
  }
  Target(const Target&) = delete;
  Target& operator=(const Target&) = delete;

  void Serve(std::string_view input) {
    const std::size_t end = input.find('\n');
    std::string line(input.substr(0, end));
    std::string body(end == std::string_view::npos ? "" : input.substr(end + 1));
    if (body.size() > kMostBodyBytes) return;
    const std::size_t space = line.find(' ');
    if (space == std::string::npos) return;
    http::MessageHead head;
    head.method = line.substr(0, space);
    head.target = line.substr(space + 1);
    if (const std::size_t job = head.target.find("JOB"); job != std::string::npos) {
      head.target.replace(job, 3, job_id_);
    }
    head.headers = {{"Host", "localhost"}};
    http::AdmissionRules rules;
    rules.router = router_.get();
    rules.only_local_hosts = true;
    rules.max_body_bytes = kMostBodyBytes;
    http::Admission admission = http::Admit(std::move(head), rules);
    if (admission.refusal) return;
    admission.request.body = std::move(body);
    const std::weak_ptr<http::ServerCore> no_core;
    const std::weak_ptr<http::Connection> no_connection;
    admission.route->handle(admission.request, admission.parameters,
                            http::Responder(std::make_shared<http::Exchange>(
                                no_core, no_connection, http::Exchange::Origin{1, -1, 0})));
    Tidy();
  }

 private:
  void Start() {
    auto store = Must(store::Store::Open("sqlite:" + folder_ + "/jobs.db"));
    ServiceOptions options;
    options.max_jobs = kMostJobs;
    options.on_problem = [](const std::string& sentence) {
      std::fprintf(stderr, "%s\n", sentence.c_str());
      std::abort();
    };
    service_ = *Must(JobService::Start(*std::move(store), std::move(options)));
    router_ = std::make_unique<http::Router>(*Must(http::Router::Make(ApiRoutes(*service_))));
    MakeJob();
  }

  void MakeJob() {
    JobSpec spec = *Must(MakeJobSpec(kSettings, kProfile));
    spec.client_key = "llama";
    job_id_ = Must(Await<Outcome<JobService::Created>>([&](auto&& created) {
                service_->Create(spec, store::JobOrigin::kApi, {}, created);
              }))->job->id();
  }

  // Deletes what was made, and a job of which too much is known by now.
  void Tidy() {
    const bool worn = ++served_ % 500 == 0;
    const auto jobs = service_->Jobs();
    if (!worn && jobs.size() < kMostJobs && service_->HeadOf(job_id_)) return;
    for (const auto& job : jobs) {
      (void)DoAndWait(*job, DeleteJob{});
      service_->Forget(job->id());
    }
    MakeJob();
  }

  std::string folder_;
  std::unique_ptr<JobService> service_;
  std::unique_ptr<http::Router> router_;
  std::string job_id_;
  std::uint64_t served_ = 0;
};

}  // namespace
}  // namespace perseus::server

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static perseus::server::Target target;
  target.Serve({reinterpret_cast<const char*>(data), size});
  return 0;
}
