// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>

#include "cli/cluster/flags.h"
#include "common/temporary_directory.h"
#include "support/mentions.h"

namespace perseus::cli {
namespace {

using ::testing::StartsWith;

class ServeSettingsTest : public ::testing::Test {
 protected:
  Result<server::ServeOptions> Resolve() const {
    return ResolveServeOptions(flags_, [this](const std::string& name) {
      const auto found = environment_.find(name);
      return found == environment_.end() ? std::nullopt : std::optional<std::string>(found->second);
    });
  }
  std::string ErrorText() const {
    const auto options = Resolve();
    return options ? "" : options.error().message;
  }

  TemporaryDirectory directory_;
  ServeFlags flags_;
  std::map<std::string, std::string> environment_;
};

TEST_F(ServeSettingsTest, FlagsWinOverEnvironmentOverFileOverDefaults) {
  EXPECT_EQ(Resolve()->listen, "127.0.0.1:7787");
  EXPECT_EQ(Resolve()->max_jobs, 10'000);
  directory_.Put("serve.toml", "listen = \"127.0.0.1:1\"\nmax_jobs = 7\ntls_cert = \"c.pem\"\n");
  flags_.config_file = directory_.Path("serve.toml");
  EXPECT_EQ(Resolve()->listen, "127.0.0.1:1");
  EXPECT_EQ(Resolve()->max_jobs, 7);
  EXPECT_EQ(Resolve()->tls_certificate_file, "c.pem");
  environment_["PERSEUS_SERVE_LISTEN"] = "127.0.0.1:2";
  environment_["PERSEUS_SERVE_MAX_JOBS"] = "8";
  EXPECT_EQ(Resolve()->listen, "127.0.0.1:2");
  EXPECT_EQ(Resolve()->max_jobs, 8);
  flags_.values["listen"] = "127.0.0.1:3";
  EXPECT_EQ(Resolve()->listen, "127.0.0.1:3");
  EXPECT_EQ(Resolve()->max_jobs, 8);
}

TEST_F(ServeSettingsTest, TheEnvironmentMayNameTheFile) {
  directory_.Put("serve.toml", "grace = \"2s\"\n");
  environment_["PERSEUS_SERVE_CONFIG"] = directory_.Path("serve.toml");
  EXPECT_EQ(Resolve()->grace_seconds, 2);
}

TEST_F(ServeSettingsTest, FaultsNameWhereTheyWereFound) {
  flags_.values["workers"] = "many";
  EXPECT_THAT(ErrorText(), StartsWith("--workers: "));
  flags_.values.clear();
  environment_["PERSEUS_SERVE_LOG_FORMAT"] = "xml";
  EXPECT_THAT(ErrorText(), StartsWith("PERSEUS_SERVE_LOG_FORMAT: expected text or json"));
  environment_.clear();
  flags_.config_file = directory_.Path("serve.toml");
  directory_.Put("serve.toml", "listen = \"x\"\nlog_levl = \"info\"\n");
  EXPECT_THAT(ErrorText(), Mentions("serve.toml:2:1:"));
  EXPECT_THAT(ErrorText(), Mentions("log_level"));
  directory_.Put("serve.toml", "log_level = \"loud\"\n");
  EXPECT_THAT(ErrorText(), Mentions("debug,", "error,"));
  directory_.Put("serve.toml", "workers = 0\n");
  EXPECT_THAT(ErrorText(), Mentions("serve.toml:1:"));
}

}  // namespace
}  // namespace perseus::cli
