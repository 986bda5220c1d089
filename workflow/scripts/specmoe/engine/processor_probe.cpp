// Uses the instruction sets that virtual machines list and yet trap, if the compiler's flags turn
// them on. Where this program crashes, a llama.cpp compiled with the same flags crashes too.

#if defined(__x86_64__) || defined(__i386__)
#include <immintrin.h>
#endif

#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

static volatile int sink = 1;

#if defined(__linux__) && defined(__AMX_TILE__) && defined(__AMX_INT8__) && defined(__AVX512VNNI__)
static void use_amx() {
    // llama.cpp makes the same request, and uses no AMX if it is refused (ggml_amx_init in
    // ggml/src/ggml-cpu/amx/amx.cpp): ARCH_REQ_XCOMP_PERM of XFEATURE_XTILEDATA.
    if (syscall(SYS_arch_prctl, 0x1023, 18) != 0) {
        return;
    }
    alignas(64) unsigned char tiles[64] = {1};  // palette 1
    tiles[16] = 64;                             // bytes in a row of tile 0
    tiles[48] = 8;                              // its rows
    _tile_loadconfig(tiles);
    _tile_zero(0);
    _tile_release();
}
#endif

int main() {
#if defined(__AVX2__)
    const __m256i wide = _mm256_add_epi32(_mm256_set1_epi32(sink), _mm256_set1_epi32(sink));
    sink = _mm256_extract_epi32(wide, 0);
#endif
#if defined(__AVX512F__)
    const __m512i wider = _mm512_add_epi32(_mm512_set1_epi32(sink), _mm512_set1_epi32(sink));
    sink = _mm512_reduce_add_epi32(wider);
#endif
#if defined(__AVX512VNNI__)
    const __m512i bytes = _mm512_set1_epi32(sink);
    sink = _mm512_reduce_add_epi32(_mm512_dpbusd_epi32(bytes, bytes, bytes));
#endif
#if defined(__linux__) && defined(__AMX_TILE__) && defined(__AMX_INT8__) && defined(__AVX512VNNI__)
    use_amx();
#endif
    return 0;
}
