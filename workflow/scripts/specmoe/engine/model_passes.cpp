// Our program on one model, for what no program of llama.cpp does.
//
// Usage: model_passes time MODEL TEXT THREADS GPU_LAYERS DEPTH SAMPLES OUTPUTS COUNTS
//        model_passes score MODEL TEXTS THREADS GPU_LAYERS N_TOKENS CONTEXT
//
// `time` times one forward pass by its tokens, and counts the experts that it activates. A pass
// decodes `n_tokens` consecutive tokens of a text behind `depth` others, in one sequence, as a target
// verifies draft tokens. llama-bench gives the output of the last token only; llama-batched-bench
// decodes one token of each of many sequences. OUTPUTS (`all`, `last`) and COUNTS are lists with
// spaces. Each sample starts at another place of the text. Within a sample all passes start from the
// same state, in random order. Standard output has a JSON object a line:
//
//     {"sample": 0, "n_tokens": 5, "experts": [11, 13]}          distinct experts of each MoE layer
//     {"sample": 0, "n_tokens": 5, "outputs": "all", "ms": 1.25}
//
// `score` says at each token of a text what a draft model would have proposed. That depends on the
// tokens before it alone, so one scoring of a target's output gives every draft length. A line of
// TEXTS is the length of a prompt, and the ids of the prompt and of the target's output, CONTEXT at
// most. The prompt is processed at once, as llama-server does, the rest N_TOKENS at once. For each:
//
//     {"text": 0, "position": 3, "token": 5, "agrees": true, "confidence": 0.9, "lead_nats": 2.1}
//
// What these are, `Proposal` in measure/model_passes.py says.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "ggml-backend.h"
#include "ggml.h"
#include "llama-cpp.h"

namespace {

using Tokens = std::vector<llama_token>;

constexpr int CANDIDATES = 10;  // of a draft model in the server (common/speculative.cpp)
constexpr int PROMPT_BATCH = 2048, PHYSICAL_BATCH = 512;  // llama-server's

[[noreturn]] void fail(const std::string & reason) {
    fprintf(stderr, "model_passes: %s\n", reason.c_str());
    exit(1);
}

// Leave out what the engine says of a model that it loads, or an error would be below all that.
void log_errors(ggml_log_level level, const char * text, void *) {
    if (level == GGML_LOG_LEVEL_WARN || level == GGML_LOG_LEVEL_ERROR) {
        fputs(text, stderr);
    }
}

llama_context_ptr context_of(llama_model * model, llama_context_params params, int threads) {
    params.n_threads = params.n_threads_batch = threads;
    params.no_perf = true;
    llama_context_ptr context(llama_init_from_model(model, params));
    if (!context) {
        fail("no context could be made");
    }
    return context;
}

// Decode tokens behind those of the context, and return how many milliseconds that took. The tokens
// from number `output` on get an output.
double decode(llama_context * context, const llama_token * tokens, int count, int output) {
    std::vector<int8_t> outputs(count);
    std::fill(outputs.begin() + output, outputs.end(), 1);
    llama_batch batch = llama_batch_get_one(const_cast<llama_token *>(tokens), count);
    batch.logits = outputs.data();
    llama_synchronize(context);
    const auto began = std::chrono::steady_clock::now();
    if (llama_decode(context, batch) != 0) {
        fail("a pass failed to decode");
    }
    llama_synchronize(context);
    const auto took = std::chrono::steady_clock::now() - began;
    return std::chrono::duration<double, std::milli>(took).count();
}

struct Options {
    int threads, gpu_layers, depth, samples;
    std::vector<std::string> outputs;
    std::vector<int> counts;
    int widest;  // of the counts
};

Tokens tokenize(const llama_model * model, const std::string & path) {
    std::ifstream file(path, std::ios::binary);
    if (!file) {
        fail("cannot read " + path);
    }
    const std::string content(std::istreambuf_iterator<char>(file), {});
    const llama_vocab * vocab = llama_model_get_vocab(model);
    Tokens tokens(content.size() + 2);  // each has a byte at least
    tokens.resize(llama_tokenize(vocab, content.data(), (int32_t) content.size(), tokens.data(),
                                 (int32_t) tokens.size(), false, false));
    return tokens;
}

// The distinct experts of each MoE layer, by the name of the tensor with its router's choices.
using Visited = std::map<std::string, std::set<int32_t>>;

// Receives the router's choices, which the engine hands over while it computes a graph.
bool see(ggml_tensor * tensor, bool ask, void * visited) {
    if (strncmp(tensor->name, "ffn_moe_topk-", 13) != 0 || tensor->type != GGML_TYPE_I32) {
        return !ask;
    }
    if (ask) {
        return true;
    }
    const size_t size = ggml_nbytes(tensor);  // the choices may be a view of all experts in order
    std::vector<int32_t> data(size / sizeof(int32_t));
    ggml_backend_tensor_get(tensor, data.data(), 0, size);
    auto & layer = (*static_cast<Visited *>(visited))[tensor->name];
    for (int64_t token = 0; token < tensor->ne[1]; token++) {
        const int32_t * chosen = &data[token * tensor->nb[1] / sizeof(int32_t)];
        layer.insert(chosen, chosen + tensor->ne[0]);
    }
    return true;
}

void print_experts(int sample, int n_tokens, const Visited & visited) {
    printf("{\"sample\": %d, \"n_tokens\": %d, \"experts\": [", sample, n_tokens);
    const char * comma = "";
    for (const auto & [name, layer] : visited) {
        printf("%s%zu", comma, layer.size());
        comma = ", ";
    }
    printf("]}\n");
}

// Do all passes of all samples, and print how long each took, or how many experts it activates.
void do_passes(llama_model * model, const Options & options, const Tokens & text, bool count) {
    Visited visited;
    llama_context_params params = llama_context_default_params();
    params.n_seq_max = 1;
    params.n_ctx = options.depth + options.widest;
    params.n_batch = params.n_ubatch = std::max(512u, params.n_ctx);
    if (options.gpu_layers > 0) {
        params.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_ENABLED;
    }
    params.cb_eval = count ? see : nullptr;
    params.cb_eval_user_data = &visited;
    const llama_context_ptr owner = context_of(model, params, options.threads);
    llama_context * context = owner.get();
    std::vector<std::pair<int, std::string>> passes;
    for (const int n_tokens : options.counts) {
        for (const auto & outputs : count ? std::vector<std::string>{"last"} : options.outputs) {
            passes.emplace_back(n_tokens, outputs);
        }
    }
    const int64_t last = (int64_t) text.size() - options.depth - options.widest;
    std::mt19937 random(1);
    std::vector<uint8_t> state;  // behind the first `depth` tokens
    for (int sample = count ? 0 : -1; sample < options.samples; sample++) {  // -1 is a warm-up
        const auto * start = &text[last * std::max(sample, 0) / std::max(options.samples - 1, 1)];
        llama_memory_clear(llama_get_memory(context), false);
        decode(context, start, options.depth, options.depth - 1);
        state.resize(llama_state_seq_get_size(context, 0));
        llama_state_seq_get_data(context, state.data(), state.size(), 0);
        std::shuffle(passes.begin(), passes.end(), random);
        for (const auto & [n_tokens, outputs] : passes) {
            llama_memory_clear(llama_get_memory(context), false);
            if (!llama_state_seq_set_data(context, state.data(), state.size(), 0)) {
                fail("the state cannot be restored");
            }
            visited.clear();
            const double ms = decode(context, start + options.depth, n_tokens,
                                     outputs == "all" ? 0 : n_tokens - 1);
            if (count && visited.empty()) {
                return;  // a dense model
            }
            if (count) {
                print_experts(sample, n_tokens, visited);
            } else if (sample >= 0) {
                printf("{\"sample\": %d, \"n_tokens\": %d, \"outputs\": \"%s\", \"ms\": %.6f}\n",
                       sample, n_tokens, outputs.c_str(), ms);
            }
        }
    }
}

void time_passes(llama_model * model, const Options & options, const std::string & file) {
    const Tokens text = tokenize(model, file);
    if ((int) text.size() <= options.depth + options.widest) {
        fail("the text has " + std::to_string(text.size()) + " tokens, too few");
    }
    do_passes(model, options, text, true);
    do_passes(model, options, text, false);
}

void print(int text, int position, llama_token target, const float * logits, int count) {
    std::vector<float> best(std::min(CANDIDATES, count));
    std::partial_sort_copy(logits, logits + count, best.begin(), best.end(), std::greater<float>());
    const auto token = (llama_token) (std::max_element(logits, logits + count) - logits);
    double sum = 0;
    for (const float one : best) {
        sum += std::exp((double) one - best[0]);
    }
    const bool agrees = token == target;
    const double lead = (double) best[0] - (agrees ? best[1] : logits[target]);
    printf("{\"text\": %d, \"position\": %d, \"token\": %d, \"agrees\": %s, \"confidence\": %.9g,"
           " \"lead_nats\": %.9g}\n",
           text, position, token, agrees ? "true" : "false", 1 / sum, lead);
}

// Score texts of `most` tokens; the output of each token that is not the last tells the next one.
void score(llama_model * model, const std::string & file, int threads, int n_tokens, int most) {
    llama_context_params params = llama_context_default_params();
    params.n_ctx = most;
    params.n_batch = PROMPT_BATCH;
    params.n_ubatch = PHYSICAL_BATCH;
    const llama_context_ptr context = context_of(model, params, threads);
    const int vocabulary = llama_vocab_n_tokens(llama_model_get_vocab(model));
    std::ifstream texts(file);
    std::string line;
    for (int number = 0; std::getline(texts, line); number++) {
        std::istringstream words(line);
        int prompt;  // tokens, with which the text begins
        words >> prompt;
        const Tokens text(std::istream_iterator<llama_token>(words), {});
        const int last = (int) text.size() - 1;
        llama_memory_clear(llama_get_memory(context.get()), true);
        for (int at = 0, end = 0; at < last; at = end) {
            end = at < prompt ? std::min(prompt, at + PROMPT_BATCH) : std::min(last, at + n_tokens);
            const int output = std::clamp(prompt - 1, at, end);
            decode(context.get(), &text[at], end - at, output - at);
            for (int place = output; place < end; place++) {
                print(number, place + 1 - prompt, text[place + 1],
                      llama_get_logits_ith(context.get(), place - at), vocabulary);
            }
        }
    }
}

}  // namespace

int main(int, char ** argv) {
    const std::string self = argv[0], task = argv[1], file = argv[2], text = argv[3];
    const int threads = atoi(argv[4]), gpu_layers = atoi(argv[5]);
    llama_log_set(log_errors, nullptr);
    // An engine for every processor has its kernels in libraries beside its programs.
    ggml_backend_load_all_from_path((self.substr(0, self.rfind('/') + 1) + "bin").c_str());
    llama_backend_init();
    llama_model_params params = llama_model_default_params();
    params.n_gpu_layers = gpu_layers;
    const llama_model_ptr model(llama_model_load_from_file(file.c_str(), params));
    if (!model) {
        fail("cannot load " + file);
    }
    if (task == "score") {
        score(model.get(), text, threads, atoi(argv[6]), atoi(argv[7]));
    } else {
        std::istringstream outputs(argv[8]), counts(argv[9]);
        Options options{threads, gpu_layers, atoi(argv[6]), atoi(argv[7]), {}, {}, 0};
        options.outputs.assign(std::istream_iterator<std::string>(outputs), {});
        options.counts.assign(std::istream_iterator<int>(counts), {});
        options.widest = *std::max_element(options.counts.begin(), options.counts.end());
        time_passes(model.get(), options, text);
    }
    return 0;
}
