# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0

# Writes OUTPUT, a C++ file that holds each of ASSETS as a string:
# cmake -DASSETS=a.css;b.js -DNAMESPACE=report -DHEADER=report/assets.h -DOUTPUT=assets.cc -P EmbedAssets.cmake

# Compilers need not accept longer literals, so the text goes in as pieces. What these come to is
# more than C++ asks of compilers, and Clang says so.
set(piece_length 8000)

set(code "// Made by EmbedAssets.cmake.\n#include \"${HEADER}\"\n")
string(APPEND code "\n#pragma GCC diagnostic push\n"
                   "#pragma GCC diagnostic ignored \"-Woverlength-strings\"\n"
                   "\nnamespace perseus::${NAMESPACE} {\n")
foreach(asset IN LISTS ASSETS)
  file(READ "${asset}" text)
  if(text MATCHES "[^\t\n -~]")
    message(FATAL_ERROR "${asset}: only ASCII can be cut into pieces; write other characters as escapes")
  endif()
  # report.css -> ReportCss
  get_filename_component(name "${asset}" NAME)
  string(REGEX MATCHALL "[a-z]+" words "${name}")
  set(function "")
  foreach(word IN LISTS words)
    string(SUBSTRING "${word}" 0 1 first)
    string(SUBSTRING "${word}" 1 -1 rest)
    string(TOUPPER "${first}" first)
    string(APPEND function "${first}${rest}")
  endforeach()
  string(APPEND code "\nstd::string_view ${function}() {\n  return")
  string(LENGTH "${text}" length)
  set(offset 0)
  while(offset LESS length)
    string(SUBSTRING "${text}" ${offset} ${piece_length} piece)
    string(APPEND code "\n      R\"asset(${piece})asset\"")
    math(EXPR offset "${offset} + ${piece_length}")
  endwhile()
  string(APPEND code ";\n}\n")
endforeach()
string(APPEND code "\n}  // namespace perseus::${NAMESPACE}\n\n#pragma GCC diagnostic pop\n")
file(WRITE "${OUTPUT}" "${code}")
