# Adds our program to llama.cpp's own build: CMake includes this file after each `project`.
if(PROJECT_NAME STREQUAL "llama.cpp")
    function(specmoe_add_program)
        add_executable(model_passes "${SPECMOE_PROGRAM}")
        target_link_libraries(model_passes PRIVATE llama)
        target_compile_features(model_passes PRIVATE cxx_std_17)
    endfunction()
    # llama.cpp defines its libraries after this point.
    cmake_language(DEFER CALL specmoe_add_program)
endif()
