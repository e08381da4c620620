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
    run("${WORK_DIR}/${name}/${library}_calls")
  endforeach()
  run("${WORK_DIR}/${name}/read_plan" "${WORK_DIR}/${name}/plan.json" 0 0)
  run_examples("${WORK_DIR}/${name}")
endfunction()

# Runs the examples that are in a folder.
function(run_examples folder)
  set(profile "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/../../examples/gpt3-1.3b-a100-sxm.csv")
  run("${folder}/example_own_dag")
  run("${folder}/example_read_plan" "${folder}/plan.json" 0 0)
  run("${folder}/example_robust_plan" "${profile}")
  run("${folder}/example_stream" "${profile}")
  run("${folder}/example_straggler_report" "${profile}" "${folder}/page.html")
  execute_process(COMMAND "${folder}/example_profile_in_memory" OUTPUT_FILE "${folder}/memory.json"
                  COMMAND_ERROR_IS_FATAL ANY)
  run("${folder}/example_read_plan" "${folder}/memory.json" 1 0)
  run("${folder}/example_plan" "${profile}")
endfunction()

# The same example without CMake, by pkg-config, and a project in C that asks for nothing else.
function(run_without_cmake)
  find_program(pkg_config pkg-config)
  file(GLOB_RECURSE pc "${prefix}/*/perseus-report.pc")
  if(NOT pkg_config)
    message(FATAL_ERROR "There is no pkg-config: scripts/install-deps installs it.")
  endif()
  cmake_path(GET pc PARENT_PATH pc_folder)
  cmake_path(GET pc_folder PARENT_PATH library_folder)
  set(examples "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/../../examples")
  file(MAKE_DIRECTORY "${WORK_DIR}/pkg_config")
  set(ENV{PKG_CONFIG_PATH} "${pc_folder}")
  set(ENV{LD_LIBRARY_PATH} "${library_folder}")
  file(GLOB sources "${examples}/cpp/*.cc")
  foreach(source IN LISTS sources)
    cmake_path(GET source STEM name)
    run(sh -c "'${CXX_COMPILER}' -std=c++20 '${source}' -o '${WORK_DIR}/pkg_config/example_${name}' $('${pkg_config}' --cflags --libs perseus-report)")
  endforeach()
  run(sh -c "'${pkg_config}' --print-requires perseus-model | grep -q '^fmt >= [0-9]'")
  run(sh -c "cc -std=c99 '${examples}/c/plan.c' -o '${WORK_DIR}/pkg_config/example_plan' $('${pkg_config}' --cflags --libs perseus-planner)")
  run("${CMAKE_COMMAND}" -S "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/consumer_c" -B "${WORK_DIR}/consumer_c"
      -G "${GENERATOR}" "-DCMAKE_PREFIX_PATH=${prefix}" -DCMAKE_DISABLE_FIND_PACKAGE_tl-expected=ON)
  run("${CMAKE_COMMAND}" --build "${WORK_DIR}/consumer_c")
  run("${WORK_DIR}/consumer_c/example_plan" "${examples}/gpt3-1.3b-a100-sxm.csv")
  file(COPY "${WORK_DIR}/find_package/plan.json" DESTINATION "${WORK_DIR}/pkg_config")
  run_examples("${WORK_DIR}/pkg_config")
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
  # Links and exports count here: optimising it once more takes long.
  run_consumer(add_subdirectory "-DPERSEUS_SOURCE_DIR=${SOURCE_DIR}" -DBUILD_SHARED_LIBS=ON
               "-DCMAKE_CXX_FLAGS_RELEASE=-O1 -DNDEBUG" -DPERSEUS_INSTALL=ON
               -DPERSEUS_UNITY_BUILD=ON "-DPERSEUS_WERROR=${WERROR}"
               -DPERSEUS_BUILD_C_LIBRARIES=ON)
  run("${CMAKE_COMMAND}" --install "${WORK_DIR}/add_subdirectory" --prefix "${prefix}")
  file(GLOB_RECURSE libraries "${prefix}/*/libperseus_core.so")
  if(NOT libraries)
    message(FATAL_ERROR "BUILD_SHARED_LIBS=ON installed no libperseus_core.so in ${prefix}.")
  endif()
  cmake_path(GET libraries PARENT_PATH library_folder)
  run("${CMAKE_CURRENT_LIST_DIR}/check-abi" "${library_folder}")
endif()
run_consumer(find_package "-DCMAKE_PREFIX_PATH=${prefix}")

# All that headers name is installed.
file(GLOB headers "${prefix}/include/perseus/*.h")
set(pages)
foreach(header IN LISTS headers)
  file(STRINGS "${header}" lines REGEX "docs/")
  string(REGEX MATCHALL "docs/[a-z/_-]+\\.md" found "${lines}")
  list(APPEND pages ${found})
endforeach()
list(REMOVE_DUPLICATES pages)
foreach(page IN LISTS pages ITEMS examples/cpp/own_dag.cc examples/c/plan.c)
  if(NOT EXISTS "${prefix}/share/doc/perseus/${page}")
    message(FATAL_ERROR "A header names ${page}, which is not installed.")
  endif()
endforeach()

# Components: those that there are, and no other.
run("${CMAKE_COMMAND}" -S "${consumer_dir}" -B "${WORK_DIR}/components" ${common}
    "-DCMAKE_PREFIX_PATH=${prefix}" -DPERSEUS_WANTED_COMPONENTS=core)
execute_process(
  COMMAND "${CMAKE_COMMAND}" -S "${consumer_dir}" -B "${WORK_DIR}/no_component" ${common}
          "-DCMAKE_PREFIX_PATH=${prefix}" -DPERSEUS_WANTED_COMPONENTS=solver
  RESULT_VARIABLE result OUTPUT_QUIET ERROR_VARIABLE output)
if(result EQUAL 0 OR NOT output MATCHES "solver")
  message(FATAL_ERROR "find_package(perseus COMPONENTS solver) should fail:\n${output}")
endif()
if(KIND STREQUAL "static")
  run_without_cmake()
endif()

# Before 1.0 a minor version may break: 0.2 must not pass for 0.3.
execute_process(
  COMMAND "${CMAKE_COMMAND}" -S "${consumer_dir}" -B "${WORK_DIR}/too_new" ${common}
          "-DCMAKE_PREFIX_PATH=${prefix}" -DPERSEUS_WANTED_VERSION=0.3
  RESULT_VARIABLE result OUTPUT_QUIET ERROR_VARIABLE output)
if(result EQUAL 0 OR NOT output MATCHES "compatible with requested version")
  message(FATAL_ERROR "find_package(perseus 0.3) should find no compatible version:\n${output}")
endif()
