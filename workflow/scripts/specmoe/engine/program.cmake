# Our program in llama.cpp's own build; `build.cmake` includes this file where all targets exist.
add_executable(model_passes "${CMAKE_CURRENT_LIST_DIR}/model_passes.cpp")
# The library's name in November and in March of 2026.
target_link_libraries(model_passes PRIVATE $<IF:$<TARGET_EXISTS:llama-common>,llama-common,common>)
target_compile_features(model_passes PRIVATE cxx_std_17)
# The libraries of an engine, from beside its `bin`.
set(beside "$<IF:$<PLATFORM_ID:Darwin>,@loader_path,$ORIGIN>/bin")
set_target_properties(model_passes PROPERTIES BUILD_RPATH "${beside}")
