# Compiles llama.cpp in half the time, and the same in every folder; it includes this file at its
# `project` command.
#
# Kernels, and all that runs for every token, keep llama.cpp's own flags, also what sends it (JSON,
# HTTP). Chat parsers, pictures, tools and command lines are hardly optimized. Sources are merged, so
# that headers are parsed less often. A source that no pattern names is compiled as llama.cpp does.
# SPECMOE_KERNEL_FLAGS are further flags of the processor's kernels, without effect on the rest.

# Nothing here is reached over HTTPS, and the warnings are not ours.
option(LLAMA_OPENSSL "" OFF)
option(LLAMA_ALL_WARNINGS "" OFF)
# The day's newest page would be downloaded into llama-server.
option(LLAMA_USE_PREBUILT_UI "" OFF)

# Neither asserts nor libraries name the folder of sources and build. With nvcc names of kernels still
# have a digest of it, and symbols the number of a process, so they are dropped.
get_filename_component(work "${CMAKE_SOURCE_DIR}" DIRECTORY)
add_compile_options("$<$<NOT:$<COMPILE_LANGUAGE:CUDA>>:-ffile-prefix-map=${work}=.>")
add_link_options("$<$<BOOL:${GGML_CUDA}>:-s>")
set(CMAKE_BUILD_RPATH_USE_ORIGIN ON)

# Compiles the sources of a target whose names match a pattern as one, with further options.
function(merge target name pattern)
    if(NOT TARGET ${target})
        return()
    endif()
    get_target_property(sources ${target} SOURCES)
    get_target_property(folder ${target} SOURCE_DIR)
    get_target_property(build ${target} BINARY_DIR)
    list(FILTER sources INCLUDE REGEX "${pattern}")
    list(FILTER sources INCLUDE REGEX "\\.cpp$")
    if(NOT sources)
        return()
    endif()
    set(text "")
    foreach(source IN LISTS sources)
        get_filename_component(source "${source}" ABSOLUTE BASE_DIR "${folder}")
        # Relative, so that a compiler cache knows it in another folder too.
        file(RELATIVE_PATH beside "${build}" "${source}")
        string(APPEND text "#include \"${beside}\"\n")
        set_source_files_properties(
            "${source}" TARGET_DIRECTORY ${target} PROPERTIES HEADER_FILE_ONLY ON
        )
    endforeach()
    set(merged "${build}/${target}-${name}.cpp")
    file(CONFIGURE OUTPUT "${merged}" CONTENT "${text}" @ONLY)
    target_sources(${target} PRIVATE "${merged}")
    set_source_files_properties(
        "${merged}"
        TARGET_DIRECTORY ${target}
        PROPERTIES COMPILE_OPTIONS "${ARGN}" SKIP_UNITY_BUILD_INCLUSION ON
    )
endfunction()

function(merge_all)
    set(hardly -O1)
    if(TARGET ggml-cpu)
        target_compile_options(ggml-cpu PRIVATE ${SPECMOE_KERNEL_FLAGS})
    endif()
    if(SPECMOE_ONE_BY_ONE)
        return()
    endif()
    # The library's name in November and in March of 2026.
    foreach(common llama-common common)
        merge(${common} chat "^(chat-|peg-parser)|parsers/" ${hardly})
        merge(${common} json "^(chat\\.|download|jinja/[^v]|json-)")
        merge(${common} value "^jinja/value" ${hardly}) # specializes what others instantiate
        merge(${common} start "^(arg|console|debug|fit|hf-cache|preset|regex-)" ${hardly})
    endforeach()
    merge(mtmd models "^models/" ${hardly})
    merge(mtmd media "^(clip|mtmd)(-audio|-image)?\\." ${hardly})
    merge(mtmd helper "^mtmd-helper" ${hardly}) # refuses the headers of the others
    merge(server-context tokens "^server-(common|context|queue|stream|task)")
    merge(server-context tools "^server-(chat|mcp|schema|tools)" ${hardly})
    foreach(server llama-server-impl llama-server)
        merge(${server} http "^server")
    endforeach()
    merge(cpp-httplib http ".")
endfunction()

# At the end of the top folder, where all targets exist.
cmake_language(DEFER CALL merge_all)
if(SPECMOE_PROGRAM)
    cmake_language(DEFER CALL include "${SPECMOE_PROGRAM}")
endif()
