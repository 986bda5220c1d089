# Adds pass_bench to llama.cpp's own build: CMake includes this file after each `project`.
if(PROJECT_NAME STREQUAL "llama.cpp")
    function(specmoe_add_pass_bench)
        add_executable(pass_bench "${SPECMOE_PASS_BENCH}")
        target_link_libraries(pass_bench PRIVATE llama)
        target_compile_features(pass_bench PRIVATE cxx_std_17)
    endfunction()
    # llama.cpp defines its libraries after this point.
    cmake_language(DEFER CALL specmoe_add_pass_bench)
endif()
