// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/support/redaction.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace perseus::cli {
namespace {

std::string Redacted(const std::string& text) { return Redactor().Redact(text); }

TEST(RedactionTest, SecretsAreRemovedWhereverTheyStand) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"?password=hunter2&sslmode=require", "?password=[removed]&sslmode=require"},
      {"PGPASSWORD=Tr0ub4dor&3\nNAME=a", "PGPASSWORD=[removed]\nNAME=a"},
      {"export PGPASSWORD=ab;cd&ef", "export PGPASSWORD=[removed]"},
      {"Environment=\"PGPASSWORD=two words;x\"", "Environment=\"PGPASSWORD=[removed]\""},
      {"DB_PASS=hunter2", "DB_PASS=[removed]"},
      {"MYSQL_PWD=hunter2", "MYSQL_PWD=[removed]"},
      {"postgresql://perseus:it's-me@db/x", "postgresql://perseus:[removed]@db/x"},
      {"\"http://server:7787\", \"mail\": \"a@b\"", "\"http://server:7787\", \"mail\": \"a@b\""},
      {"HF_TOKEN=abc", "HF_TOKEN=[removed]"},
      {"api-key: abc def", "api-key: [removed] def"},
      {"PGPASSWORD='two words' x", "PGPASSWORD='[removed]' x"},
      {R"({"token": "a\"b", "n": 1})", R"({"token": "[removed]", "n": 1})"},
      {R"({"token": 17, "n": 1})", R"({"token": "[removed]", "n": 1})"},
      {R"({"token": null, "secret": {"a": 1}})", R"({"token": null, "secret": {"a": 1}})"},
      {R"({"message": "bad: {\"password\": \"x y\"}"})",
       R"({"message": "bad: {\"password\": \"[removed]\"}"})"},
      {"run --password hunter2 -v", "run --password [removed] -v"},
      {"run --api-key=hunter2 -v", "run --api-key=[removed] -v"},
      {"Authorization: Basic dXNlcjp4\nnext", "Authorization: [removed]\nnext"},
      {"curl -H 'Authorization: Bearer 12345678' url", "curl -H 'Authorization: [removed]' url"},
      {"with Bearer abc.def.ghi, then", "with Bearer [removed] then"},
      {"postgresql://perseus:p/w@rd@db:5432/x?y", "postgresql://perseus:[removed]@db:5432/x?y"},
      {"db.example:5432:perseus:perseus:choose one\nx",
       "db.example:5432:perseus:perseus:[removed]\nx"},
      {"*:*:*:*:p:w", "*:*:*:*:[removed]"},
      {"  train bbbbbbbbbbbbbbbbbbbb nodes key=a", "  train [removed] nodes key=[removed]"},
      {"a\n-----BEGIN PRIVATE KEY-----\nMIIx\n-----END PRIVATE KEY-----\nb", "a\n[removed]\nb"},
      {"-----BEGIN PRIVATE KEY-----\nMIIx cut", "[removed]"},
      {"job 0123456789abcdef0123456789abcdef0123456789abcdef", "job [removed]"},
      {"x=AbCdEfGhIjKlMnOp12qr/+Zz==;", "[removed];"},
      {"AKIAIOSFODNN7EXAMPLE and ghp_abcdefghijklmnop", "[removed] and [removed]"},
      {"/home/a/0123456789abcdef0123456789abcdef/f", "/home/a/[removed]/f"},
      {"SetCredential=x:y", "SetCredential=[removed]"},
  };
  for (const auto& [text, expected] : cases) EXPECT_EQ(Redacted(text), expected) << text;
}

TEST(RedactionTest, WhatIsNoSecretStays) {
  for (const std::string text : {
           "perseus serve --token-file tokens --tls-key /etc/perseus/key.pem --listen 0.0.0.0:7787",
           "LoadCredential=tokens:/etc/perseus/tokens",
           "tls_key = \"/etc/perseus/key.pem\"",
           "the server wants a token that it knows; give it",
           R"({"about": "token", "message": "x"})",
           R"({"client_key": "k1", "id": "j-0123456789abcdef", "profile": "p-fedcba9876543210"})",
           "GPU-8932f937-d72c-4106-c12f-20bd9faed9f6",
           "perseus_http_request_seconds_bucket{route=\"/api/v1/jobs\",le=\"0.0005\"} 12",
           "postgresql://perseus@db.example/perseus",
           "2026-11-27T08:22:18.123Z level=info event=ready url=http://127.0.0.1:7787",
           "Linux node17 6.1.0-18-amd64 #1 SMP PREEMPT_DYNAMIC Debian 6.1.76-1 (2024-02-01)",
           "/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1",
       }) {
    EXPECT_EQ(Redacted(text), text);
  }
}

TEST(RedactionTest, KnownSecretsAreRemovedAndAllAreCounted) {
  Redactor redactor;
  redactor.AddSecret("hunter2-long");
  redactor.AddSecret("hunter2");
  redactor.AddSecret("abc");  // Too short: it would be found everywhere.
  EXPECT_EQ(redactor.Redact("xhunter2-longx hunter2 abc"), "x[removed]x [removed] abc");
  EXPECT_EQ(redactor.Redact("password=hunter2"), "password=[removed]");
  EXPECT_EQ(redactor.removed(), 3);
}

TEST(RedactionTest, NamesOfSecrets) {
  for (const char* const name : {"PASSWORD", "--api-key", "AWS_SECRET_ACCESS_KEY", "WANDB_API_KEY",
                                 "HF_TOKEN", "PGPASSWORD", "key", "auth", "accessToken"}) {
    EXPECT_TRUE(IsSecretName(name)) << name;
  }
  for (const char* const name : {"", "--token-file", "PERSEUS_TOKEN_FILE", "client_key", "tokens",
                                 "PWD", "OLDPWD", "--tls-cert", "monkey", "PGPASSFILE"}) {
    EXPECT_FALSE(IsSecretName(name)) << name;
  }
}

}  // namespace
}  // namespace perseus::cli
