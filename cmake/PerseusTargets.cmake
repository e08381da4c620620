# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0

# What every target of ours is compiled with. -ffp-contract=off: the same bits
# on every machine.
add_library(perseus_options INTERFACE)
target_compile_features(perseus_options INTERFACE cxx_std_20)
target_compile_options(perseus_options INTERFACE -Wall -Wextra -Wpedantic -ffp-contract=off)
# g++ 12 sees overlaps in string concatenation that are not there (GCC bug 105651).
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  target_compile_options(perseus_options INTERFACE -Wno-restrict)
endif()
if(PERSEUS_WERROR)
  target_compile_options(perseus_options INTERFACE -Werror)
endif()
if(PERSEUS_SANITIZE)
  target_compile_options(perseus_options INTERFACE -fsanitize=${PERSEUS_SANITIZE}
                         -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(perseus_options INTERFACE -fsanitize=${PERSEUS_SANITIZE})
  # g++ sees uninitialised members in std::regex once sanitizers instrument it (GCC bug 105562).
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(perseus_options INTERFACE -Wno-maybe-uninitialized)
  endif()
endif()
if(PERSEUS_BUILD_FUZZERS)
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    message(FATAL_ERROR "PERSEUS_BUILD_FUZZERS needs clang (libFuzzer), but the compiler is "
                        "${CMAKE_CXX_COMPILER_ID}: add -DCMAKE_CXX_COMPILER=clang++.")
  endif()
  target_compile_options(perseus_options INTERFACE -fsanitize=fuzzer-no-link)
  target_link_options(perseus_options INTERFACE -fsanitize=fuzzer-no-link)
endif()

# The objects of one room (a folder of src/): the target perseus_NAME_room.
# perseus_add_room(NAME SOURCES file... [DEPENDS library...])
function(perseus_add_room name)
  cmake_parse_arguments(PARSE_ARGV 1 ROOM "" "" "SOURCES;DEPENDS")
  add_library(perseus_${name}_room OBJECT ${ROOM_SOURCES})
  set_target_properties(perseus_${name}_room PROPERTIES POSITION_INDEPENDENT_CODE ON
                        CXX_EXTENSIONS OFF)
  target_include_directories(perseus_${name}_room PUBLIC "${PROJECT_SOURCE_DIR}/include"
                             PRIVATE "${PROJECT_SOURCE_DIR}/src")
  target_link_libraries(perseus_${name}_room PUBLIC tl::expected
                        PRIVATE perseus_options ${ROOM_DEPENDS})
endfunction()

# One test binary per room, run from the root of the repository.
# perseus_add_test(NAME SOURCES file... [LIBRARIES library...])
function(perseus_add_test name)
  cmake_parse_arguments(PARSE_ARGV 1 TEST "" "" "SOURCES;LIBRARIES")
  add_executable(${name}_test ${TEST_SOURCES})
  set_target_properties(${name}_test PROPERTIES CXX_EXTENSIONS OFF)
  target_include_directories(${name}_test PRIVATE "${PROJECT_SOURCE_DIR}/src"
                             "${PROJECT_SOURCE_DIR}/tests")
  target_link_libraries(${name}_test PRIVATE perseus_options ${TEST_LIBRARIES} GTest::gtest_main)
  gtest_discover_tests(${name}_test TEST_PREFIX "${name}." DISCOVERY_TIMEOUT 60
                       WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}")
endfunction()

# One libFuzzer binary, NAME_fuzzer; its corpus is fuzz/corpus/NAME.
# perseus_add_fuzzer(NAME SOURCES file... [LIBRARIES library...])
function(perseus_add_fuzzer name)
  cmake_parse_arguments(PARSE_ARGV 1 FUZZER "" "" "SOURCES;LIBRARIES")
  add_executable(${name}_fuzzer ${FUZZER_SOURCES})
  set_target_properties(${name}_fuzzer PROPERTIES CXX_EXTENSIONS OFF)
  target_include_directories(${name}_fuzzer PRIVATE "${PROJECT_SOURCE_DIR}/src")
  target_link_libraries(${name}_fuzzer PRIVATE perseus_options ${FUZZER_LIBRARIES})
  target_link_options(${name}_fuzzer PRIVATE -fsanitize=fuzzer)
endfunction()
