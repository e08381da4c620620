// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "http/tokens.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "http/secret_file.h"
#include "http/support.h"
#include "support/mentions.h"

namespace perseus::http {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr char kGood[] =
    "# who may do what\n"
    "read    aaaaaaaaaaaaaaaa dashboard\n"
    "\n"
    "train\tbbbbbbbbbbbbbbbb node-1\r\n"
    "  operate ABCdef0123-._~+/== alice@site";

TEST(Tokens, ReadsRolesAndNames) {
  const Result<TokenSet> tokens = TokenSet::Parse(kGood, "t");
  ASSERT_TRUE(tokens) << tokens.error().message;
  EXPECT_EQ(tokens->Find("aaaaaaaaaaaaaaaa")->role, Role::kRead);
  EXPECT_EQ(tokens->Find("bbbbbbbbbbbbbbbb")->name, "node-1");
  EXPECT_EQ(tokens->Find("ABCdef0123-._~+/==")->role, Role::kOperate);
  for (const char* unknown : {"", "aaaaaaaaaaaaaaa", "aaaaaaaaaaaaaaaaa", "AAAAAAAAAAAAAAAA"}) {
    EXPECT_FALSE(tokens->Find(unknown)) << unknown;
  }
}

TEST(Tokens, MayBeBoundToJobs) {
  const Result<TokenSet> tokens = TokenSet::Parse(
      "train aaaaaaaaaaaaaaaa alice key=alice- key=team-a/ job=j-0123456789abcdef\n"
      "train bbbbbbbbbbbbbbbb node\n",
      "t");
  ASSERT_TRUE(tokens) << tokens.error().message;
  const TokenBinding binding = tokens->Find("aaaaaaaaaaaaaaaa")->binding;
  EXPECT_FALSE(binding.is_free());
  EXPECT_THAT(binding.key_prefixes, ::testing::ElementsAre("alice-", "team-a/"));
  EXPECT_THAT(binding.jobs, ::testing::ElementsAre("j-0123456789abcdef"));
  EXPECT_TRUE(binding.HasPrefixOf("alice-llama"));
  EXPECT_FALSE(binding.HasPrefixOf("alic"));
  EXPECT_TRUE(tokens->Find("bbbbbbbbbbbbbbbb")->binding.is_free());
}

TEST(Tokens, SayWhereALineIsWrongAndNeverShowTokens) {
  const struct {
    const char* text;
    const char* message;
  } cases[] = {
      {"read aaaaaaaaaaaaaaaa\n", "t:1: a line has to be"},
      {"\nadmin aaaaaaaaaaaaaaaa x\n", "t:2: the role has to be read, train or operate"},
      {"read short-secret x\n", "t:1: a token has to have 16 to 256 characters"},
      {"read aaaaaaaaaaaaaaaa:secret x\n", "t:1: a token has to have"},
      {"read aaaaaaaaaaaaaaaa x;y\n", "t:1: a name has to have"},
      {"read aaaaaaaaaaaaaaaa x\ntrain aaaaaaaaaaaaaaaa y\n", "t:2: this token is 'x''s already"},
      {"read aaaaaaaaaaaaaaaa x key=a secret\n",
       "t:1: behind the name may be key=PREFIX and job=ID"},
      {"read aaaaaaaaaaaaaaaa x key=\n", "t:1: behind the name"},
      {"read aaaaaaaaaaaaaaaa x label=a\n", "t:1: behind the name"},
      {"# nothing\n", "t holds no token"},
  };
  for (const auto& [text, message] : cases) {
    const Result<TokenSet> tokens = TokenSet::Parse(text, "t");
    ASSERT_FALSE(tokens) << text;
    EXPECT_THAT(tokens.error().message, StartsWith(message));
    EXPECT_THAT(tokens.error().message, Not(HasSubstr("secret")));
    EXPECT_THAT(tokens.error().message, Not(HasSubstr("aaaaaaaa")));
  }
}

TEST(Tokens, RefusesFilesThatOthersMayReadOrChange) {
  const TemporaryFolder folder;
  for (const int mode : {0644, 0604, 0602, 0620, 0666, 0777}) {
    const Result<TokenSet> tokens = TokenSet::Load(folder.Write("t", kGood, mode));
    ASSERT_FALSE(tokens) << std::oct << mode;
    EXPECT_THAT(tokens.error().message, Mentions("640"));
  }
  for (const int mode : {0600, 0400, 0640, 0440}) {
    EXPECT_TRUE(TokenSet::Load(folder.Write("t", kGood, mode))) << std::oct << mode;
  }
  EXPECT_THAT(TokenSet::Load(folder.path() + "/none").error().message, Mentions("directory"));
  EXPECT_THAT(TokenSet::Load(folder.path()).error().message, Mentions("regular"));
  EXPECT_THAT(ReadSecretFile(folder.Write("t", kGood), "It", 10).error().message, Mentions("10"));
}

}  // namespace
}  // namespace perseus::http
