# Adds our programs to llama.cpp's own build: CMake includes this file after each `project`.
if(PROJECT_NAME STREQUAL "llama.cpp")
    function(specmoe_add_programs)
        foreach(source ${SPECMOE_PROGRAMS})
            get_filename_component(name "${source}" NAME_WE)
            add_executable(${name} "${source}")
            target_link_libraries(${name} PRIVATE llama)
            target_compile_features(${name} PRIVATE cxx_std_17)
        endforeach()
    endfunction()
    # llama.cpp defines its libraries after this point.
    cmake_language(DEFER CALL specmoe_add_programs)
endif()
