# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0

# Run by ctest; see CMakeLists.txt beside this file. Everything it makes is in
# WORK_DIR.
set(consumer_dir "${CMAKE_CURRENT_LIST_DIR}/consumer")
set(prefix "${WORK_DIR}/prefix")
set(common -G "${GENERATOR}" "-DCMAKE_CXX_COMPILER=${CXX_COMPILER}"
    "-DCMAKE_CXX_COMPILER_LAUNCHER=${CXX_COMPILER_LAUNCHER}" "-DCMAKE_BUILD_TYPE=${BUILD_TYPE}"
    "-DCMAKE_FIND_USE_PACKAGE_REGISTRY=OFF")

function(run)
  execute_process(COMMAND ${ARGV} COMMAND_ECHO STDOUT COMMAND_ERROR_IS_FATAL ANY)
endfunction()

# Builds the consumer's programs in WORK_DIR/NAME and runs them.
function(run_consumer name)
  run("${CMAKE_COMMAND}" -S "${consumer_dir}" -B "${WORK_DIR}/${name}" ${common} ${ARGN})
  run("${CMAKE_COMMAND}" --build "${WORK_DIR}/${name}")
  run("${WORK_DIR}/${name}/model_calls")
  run("${WORK_DIR}/${name}/core_calls" "${WORK_DIR}/${name}")
  run("${WORK_DIR}/${name}/report_calls")
  foreach(library IN ITEMS client planner)
    if(EXISTS "${WORK_DIR}/${name}/${library}_calls")
      run("${WORK_DIR}/${name}/${library}_calls")
    endif()
  endforeach()
  run("${WORK_DIR}/${name}/read_plan" "${WORK_DIR}/${name}/plan.json" 0 0)
endfunction()

file(REMOVE_RECURSE "${WORK_DIR}")
if(KIND STREQUAL "static")
  run("${CMAKE_COMMAND}" --install "${BUILD_DIR}" --prefix "${prefix}")
  if(EXISTS "${prefix}/bin/perseus")
    run("${prefix}/bin/perseus" --version)
  endif()
  foreach(name IN ITEMS client planner)
    file(GLOB_RECURSE library "${prefix}/*/libperseus_${name}.so")
    if(library)
      run("${CMAKE_CURRENT_LIST_DIR}/check-c-abi" ${name} "${library}")
    endif()
  endforeach()
else()
  # What is linked and exported is what counts here: optimising it once more takes long.
  run_consumer(add_subdirectory "-DPERSEUS_SOURCE_DIR=${SOURCE_DIR}" -DBUILD_SHARED_LIBS=ON
               "-DCMAKE_CXX_FLAGS_RELEASE=-O1 -DNDEBUG" -DPERSEUS_INSTALL=ON
               -DPERSEUS_UNITY_BUILD=ON "-DPERSEUS_WERROR=${WERROR}")
  run("${CMAKE_COMMAND}" --install "${WORK_DIR}/add_subdirectory" --prefix "${prefix}")
  file(GLOB_RECURSE libraries "${prefix}/*/libperseus_core.so")
  if(NOT libraries)
    message(FATAL_ERROR "BUILD_SHARED_LIBS=ON installed no libperseus_core.so in ${prefix}.")
  endif()
  cmake_path(GET libraries PARENT_PATH library_folder)
  run("${CMAKE_CURRENT_LIST_DIR}/check-abi" "${library_folder}")
endif()
run_consumer(find_package "-DCMAKE_PREFIX_PATH=${prefix}")

# Before 1.0 a minor version may break: 0.1 must not pass for 0.2.
execute_process(
  COMMAND "${CMAKE_COMMAND}" -S "${consumer_dir}" -B "${WORK_DIR}/too_new" ${common}
          "-DCMAKE_PREFIX_PATH=${prefix}" -DPERSEUS_WANTED_VERSION=0.2
  RESULT_VARIABLE result OUTPUT_QUIET ERROR_VARIABLE output)
if(result EQUAL 0 OR NOT output MATCHES "compatible with requested version")
  message(FATAL_ERROR "find_package(perseus 0.2) should find no compatible version:\n${output}")
endif()
