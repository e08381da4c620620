// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_DOMAIN_SCHEMA_H_
#define PERSEUS_SERVER_DOMAIN_SCHEMA_H_

#include "wire/message.h"

// The words of wire's tables, for the tables of the server.
namespace perseus::server {

using wire::AnyMessage;
using wire::Array;
using wire::Base;
using wire::Boolean;
using wire::Choice;
using wire::Field;
using wire::Inline;
using wire::Integer;
using wire::Message;
using wire::Number;
using wire::Object;
using wire::RawJson;
using wire::Text;
using wire::Value;

}  // namespace perseus::server

#endif  // PERSEUS_SERVER_DOMAIN_SCHEMA_H_
