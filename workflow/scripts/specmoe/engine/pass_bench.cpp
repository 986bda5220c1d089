// Times one pass of a model by its width, and counts the experts that it visits.
//
// A pass decodes `width` consecutive tokens of a text behind `depth` others, in one sequence, as a
// target verifies a draft. llama-bench gives the output of the last token only, llama-batched-bench
// decodes one token of each of many sequences; neither is that pass.
//
// Each sample starts at another place of the text. Within a sample all passes start from the same
// state and follow one another in random order. Standard output receives one JSON object a line:
//
//     {"sample": 0, "width": 5, "experts": [11, 13]}          distinct experts of each MoE layer
//     {"sample": 0, "width": 5, "outputs": "all", "ms": 1.25}
//
// The first line is {"tokens": ...}, the length of the text.
//
// Usage: pass_bench MODEL TEXT THREADS GPU_LAYERS DEPTH SAMPLES OUTPUTS WIDTHS
//
// The last two are lists with commas, OUTPUTS of `all` and `last`.

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "ggml-backend.h"
#include "ggml.h"
#include "llama.h"

namespace {

using Tokens = std::vector<llama_token>;
using State = std::vector<uint8_t>;

struct Options {
    std::string model, text;
    int threads, gpu_layers, depth, samples;
    std::vector<std::string> outputs;
    std::vector<int> widths;
};

[[noreturn]] void fail(const std::string & reason) {
    fprintf(stderr, "pass_bench: %s\n", reason.c_str());
    exit(1);
}

std::vector<std::string> split(const std::string & list) {
    std::vector<std::string> parts;
    std::stringstream stream(list);
    for (std::string part; std::getline(stream, part, ',');) {
        parts.push_back(part);
    }
    return parts;
}

Tokens tokenize(const llama_model * model, const std::string & path) {
    std::ifstream file(path, std::ios::binary);
    if (!file) {
        fail("cannot read " + path);
    }
    std::stringstream text;
    text << file.rdbuf();
    const std::string content = text.str();
    const llama_vocab * vocab = llama_model_get_vocab(model);
    Tokens tokens(content.size() + 2);
    const int count = llama_tokenize(vocab, content.data(), (int32_t) content.size(), tokens.data(),
                                     (int32_t) tokens.size(), false, false);
    if (count < 0) {
        fail("cannot tokenize " + path);
    }
    tokens.resize(count);
    return tokens;
}

// The router's choices, which the engine hands over while it computes a graph.
struct Visited {
    std::map<std::string, std::set<int32_t>> experts;  // by the name of the layer's tensor

    static bool see(ggml_tensor * tensor, bool ask, void * self) {
        if (strncmp(tensor->name, "ffn_moe_topk-", 13) != 0 || tensor->type != GGML_TYPE_I32) {
            return !ask;
        }
        if (ask) {
            return true;
        }
        State data(ggml_nbytes(tensor));  // the choices may be a view of all experts in order
        ggml_backend_tensor_get(tensor, data.data(), 0, data.size());
        auto & layer = static_cast<Visited *>(self)->experts[tensor->name];
        for (int64_t token = 0; token < tensor->ne[1]; token++) {
            for (int64_t choice = 0; choice < tensor->ne[0]; choice++) {
                int32_t expert;
                const size_t at = token * tensor->nb[1] + choice * tensor->nb[0];
                memcpy(&expert, data.data() + at, sizeof(expert));
                layer.insert(expert);
            }
        }
        return true;
    }
};

class Bench {
  public:
    Bench(llama_model * model, const Options & options, const Tokens & text, Visited * visited)
        : text(text), depth(options.depth) {
        llama_context_params params = llama_context_default_params();
        const int widest = *std::max_element(options.widths.begin(), options.widths.end());
        params.n_seq_max = 1;
        params.n_ctx = depth + widest;
        params.n_batch = params.n_ubatch = std::max(512, depth + widest);
        params.n_threads = params.n_threads_batch = options.threads;
        params.no_perf = true;
        if (options.gpu_layers > 0) {
            params.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_ENABLED;
        }
        if (visited) {
            params.cb_eval = Visited::see;
            params.cb_eval_user_data = visited;
        }
        context = llama_init_from_model(model, params);
        if (!context) {
            fail("no context could be made");
        }
        batch = llama_batch_init(params.n_batch, 0, 1);
        const int last = (int) text.size() - depth - widest;
        for (int sample = 0; sample < options.samples; sample++) {
            starts.push_back((int) ((int64_t) last * sample / std::max(options.samples - 1, 1)));
        }
    }

    Bench(const Bench &) = delete;

    ~Bench() {
        llama_batch_free(batch);
        llama_free(context);
    }

    // Decode the text before a sample's passes, and keep the state.
    void begin(int sample) {
        start = starts[sample];
        llama_memory_clear(llama_get_memory(context), false);
        decode(0, depth, false);
        state.resize(llama_state_seq_get_size(context, 0));
        llama_state_seq_get_data(context, state.data(), state.size(), 0);
    }

    // Decode the `width` tokens that follow, and return how many milliseconds that took.
    double pass(int width, bool all_outputs) {
        llama_memory_clear(llama_get_memory(context), false);
        if (!llama_state_seq_set_data(context, state.data(), state.size(), 0)) {
            fail("the state cannot be restored");
        }
        return decode(depth, width, all_outputs);
    }

  private:
    // Decode tokens from a place of the text on, and return how many milliseconds that took.
    double decode(int place, int count, bool all_outputs) {
        batch.n_tokens = count;
        for (int at = 0; at < count; at++) {
            batch.token[at] = text[start + place + at];
            batch.pos[at] = place + at;
            batch.n_seq_id[at] = 1;
            batch.seq_id[at][0] = 0;
            batch.logits[at] = all_outputs || at == count - 1;
        }
        llama_synchronize(context);
        const auto began = std::chrono::steady_clock::now();
        if (llama_decode(context, batch) != 0) {
            fail("a pass failed to decode");
        }
        llama_synchronize(context);
        const auto took = std::chrono::steady_clock::now() - began;
        return std::chrono::duration<double, std::milli>(took).count();
    }

    llama_context * context;
    llama_batch batch;
    State state;  // behind the first `depth` tokens
    const Tokens & text;
    const int depth;
    int start = 0;
    std::vector<int> starts;
};

void count_experts(llama_model * model, const Options & options, const Tokens & text) {
    Visited visited;
    Bench bench(model, options, text, &visited);
    for (int sample = 0; sample < options.samples; sample++) {
        bench.begin(sample);
        for (const int width : options.widths) {
            visited.experts.clear();
            bench.pass(width, false);
            if (visited.experts.empty()) {
                return;  // a dense model
            }
            printf("{\"sample\": %d, \"width\": %d, \"experts\": [", sample, width);
            const char * comma = "";
            for (const auto & [name, layer] : visited.experts) {
                printf("%s%zu", comma, layer.size());
                comma = ", ";
            }
            printf("]}\n");
        }
    }
}

void time_passes(llama_model * model, const Options & options, const Tokens & text) {
    Bench bench(model, options, text, nullptr);
    std::vector<std::pair<int, std::string>> passes;
    for (const int width : options.widths) {
        for (const auto & outputs : options.outputs) {
            passes.emplace_back(width, outputs);
        }
    }
    std::mt19937 random(1);
    for (int sample = -1; sample < options.samples; sample++) {  // the first is a warm-up
        bench.begin(std::max(sample, 0));
        std::shuffle(passes.begin(), passes.end(), random);
        for (const auto & [width, outputs] : passes) {
            const double ms = bench.pass(width, outputs == "all");
            if (sample >= 0) {
                printf("{\"sample\": %d, \"width\": %d, \"outputs\": \"%s\", \"ms\": %.6f}\n",
                       sample, width, outputs.c_str(), ms);
            }
        }
    }
}

}  // namespace

int main(int, char ** argv) {
    Options options{argv[1],       argv[2],       atoi(argv[3]),  atoi(argv[4]),
                    atoi(argv[5]), atoi(argv[6]), split(argv[7]), {}};
    for (const auto & width : split(argv[8])) {
        options.widths.push_back(std::stoi(width));
    }
    // An engine for every processor has its kernels in libraries beside its programs.
    const std::string self = argv[0];
    ggml_backend_load_all_from_path((self.substr(0, self.rfind('/') + 1) + "bin").c_str());
    llama_backend_init();
    llama_model_params params = llama_model_default_params();
    params.n_gpu_layers = options.gpu_layers;
    llama_model * model = llama_model_load_from_file(options.model.c_str(), params);
    if (!model) {
        fail("cannot load " + options.model);
    }
    const Tokens text = tokenize(model, options.text);
    const int widest = *std::max_element(options.widths.begin(), options.widths.end());
    if ((int) text.size() <= options.depth + widest) {
        fail("the text has " + std::to_string(text.size()) + " tokens, too few");
    }
    printf("{\"tokens\": %zu}\n", text.size());
    count_experts(model, options, text);
    time_passes(model, options, text);
    llama_model_free(model);
    llama_backend_free();
    return 0;
}
