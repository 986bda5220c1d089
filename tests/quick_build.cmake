# Halves the compiler's time for the engines of the tests. llama.cpp includes this file at its
# `project` command; see `build_engine` in conftest.py.
#
# C++ is optimized little, except for the matrix code. Sources are compiled several at a time, so
# that headers are parsed less often, except where two of them define one name.
set(CMAKE_CXX_FLAGS_RELEASE "-O1 -DNDEBUG")
set(CMAKE_UNITY_BUILD ON)

function(except_some)
    set_target_properties(ggml-base ggml-cpu mtmd PROPERTIES UNITY_BUILD OFF)
    target_compile_options(ggml-cpu PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-O2>)
    set_source_files_properties(
        common/chat.cpp common/json.cpp
        DIRECTORY common
        PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON
    )
endfunction()

# At the end of the top folder, where all targets exist.
cmake_language(DEFER CALL except_some)
