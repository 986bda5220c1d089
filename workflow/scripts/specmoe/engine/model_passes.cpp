// Our program on one model, for what no program of llama.cpp does.
//
// Usage: model_passes time MODEL TEXT THREADS GPU_LAYERS DEPTH SAMPLES OUTPUTS COUNTS
//        model_passes score MODEL TEXTS THREADS GPU_LAYERS N_TOKENS
//
// `time` times one forward pass by its tokens, and counts the experts that it activates. A pass
// decodes `n_tokens` consecutive tokens of a text behind `depth` others, in one sequence, as a target
// verifies draft tokens. llama-bench gives the output of the last token only; llama-batched-bench
// decodes one token of each of many sequences. OUTPUTS (`all`, `last`) and COUNTS are lists with
// commas. Each sample starts at another place of the text. Within a sample all passes start from the
// same state, in random order. Standard output has a JSON object a line:
//
//     {"sample": 0, "n_tokens": 5, "experts": [11, 13]}          distinct experts of each MoE layer
//     {"sample": 0, "n_tokens": 5, "outputs": "all", "ms": 1.25}
//
// `score` says at each token of a text what a draft model would have proposed. That depends on the
// tokens before it alone, so one scoring of a target's output gives every draft length. A line of
// TEXTS is the length of a prompt, and the ids of the prompt and of the target's output. The prompt is
// processed at once, as llama-server does, and the rest in batches of `n_tokens`. For each token:
//
//     {"text": 0, "position": 3, "token": 5, "agrees": true, "confidence": 0.9, "lead_nats": 2.1}
//
// `token` is the draft model's likeliest, `confidence` its probability among the ten likeliest, which
// llama-server compares with p_min (common/speculative.cpp). `lead_nats` is how far it leads the next
// token where the two models agree, and the target's token where they do not.

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
using State = std::vector<uint8_t>;

constexpr int CANDIDATES = 10;  // that the server's draft samples from
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

std::ifstream opened(const std::string & path) {
    std::ifstream file(path, std::ios::binary);
    if (!file) {
        fail("cannot read " + path);
    }
    return file;
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

std::vector<std::string> split(const std::string & list) {
    std::vector<std::string> parts;
    std::stringstream stream(list);
    for (std::string part; std::getline(stream, part, ',');) {
        parts.push_back(part);
    }
    return parts;
}

Tokens tokenize(const llama_model * model, const std::string & path) {
    std::ifstream file = opened(path);
    const std::string content(std::istreambuf_iterator<char>(file), {});
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
    State data(ggml_nbytes(tensor));  // the choices may be a view of all experts in order
    ggml_backend_tensor_get(tensor, data.data(), 0, data.size());
    auto & layer = (*static_cast<Visited *>(visited))[tensor->name];
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

class Bench {
  public:
    Bench(llama_model * model, const Options & options, const Tokens & text, Visited * visited)
        : options(options), text(text) {
        llama_context_params params = llama_context_default_params();
        params.n_seq_max = 1;
        params.n_ctx = options.depth + options.widest;
        params.n_batch = params.n_ubatch = std::max(512u, params.n_ctx);
        if (options.gpu_layers > 0) {
            params.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_ENABLED;
        }
        params.cb_eval = visited ? see : nullptr;
        params.cb_eval_user_data = visited;
        context = context_of(model, params, options.threads);
    }

    // Decode the text before a sample's passes, and keep the state.
    void begin(int sample) {
        const int64_t last = (int64_t) text.size() - options.depth - options.widest;
        start = &text[last * sample / std::max(options.samples - 1, 1)];
        llama_memory_clear(llama_get_memory(context.get()), false);
        decode(context.get(), start, options.depth, options.depth - 1);
        state.resize(llama_state_seq_get_size(context.get(), 0));
        llama_state_seq_get_data(context.get(), state.data(), state.size(), 0);
    }

    // Decode the `n_tokens` tokens that follow, and return how many milliseconds that took.
    double pass(int n_tokens, bool all_outputs) {
        llama_memory_clear(llama_get_memory(context.get()), false);
        if (!llama_state_seq_set_data(context.get(), state.data(), state.size(), 0)) {
            fail("the state cannot be restored");
        }
        return decode(context.get(), start + options.depth, n_tokens,
                      all_outputs ? 0 : n_tokens - 1);
    }

  private:
    llama_context_ptr context;
    State state;  // behind the first `depth` tokens
    const Options & options;
    const Tokens & text;
    const llama_token * start = nullptr;
};

void count_experts(llama_model * model, const Options & options, const Tokens & text) {
    Visited visited;
    Bench bench(model, options, text, &visited);
    for (int sample = 0; sample < options.samples; sample++) {
        bench.begin(sample);
        for (const int n_tokens : options.counts) {
            visited.clear();
            bench.pass(n_tokens, false);
            if (visited.empty()) {
                return;  // a dense model
            }
            printf("{\"sample\": %d, \"n_tokens\": %d, \"experts\": [", sample, n_tokens);
            const char * comma = "";
            for (const auto & [name, layer] : visited) {
                printf("%s%zu", comma, layer.size());
                comma = ", ";
            }
            printf("]}\n");
        }
    }
}

void time_passes(llama_model * model, const Options & options, const std::string & file) {
    const Tokens text = tokenize(model, file);
    if ((int) text.size() <= options.depth + options.widest) {
        fail("the text has " + std::to_string(text.size()) + " tokens, too few");
    }
    count_experts(model, options, text);
    Bench bench(model, options, text, nullptr);
    std::vector<std::pair<int, std::string>> passes;
    for (const int n_tokens : options.counts) {
        for (const auto & outputs : options.outputs) {
            passes.emplace_back(n_tokens, outputs);
        }
    }
    std::mt19937 random(1);
    for (int sample = -1; sample < options.samples; sample++) {  // the first is a warm-up
        bench.begin(std::max(sample, 0));
        std::shuffle(passes.begin(), passes.end(), random);
        for (const auto & [n_tokens, outputs] : passes) {
            const double ms = bench.pass(n_tokens, outputs == "all");
            if (sample >= 0) {
                printf("{\"sample\": %d, \"n_tokens\": %d, \"outputs\": \"%s\", \"ms\": %.6f}\n",
                       sample, n_tokens, outputs.c_str(), ms);
            }
        }
    }
}

struct Text {
    int prompt;  // tokens of the prompt, with which `tokens` begins
    Tokens tokens;
};

std::vector<Text> read_texts(const std::string & path) {
    std::ifstream file = opened(path);
    std::vector<Text> texts;
    for (std::string line; std::getline(file, line);) {
        std::stringstream words(line);
        Text & text = texts.emplace_back();
        words >> text.prompt;
        text.tokens.assign(std::istream_iterator<llama_token>(words), {});
    }
    return texts;
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

// Score one text; the output of each token that is not the last tells the next one.
void score(llama_context * context, const Text & text, int number, int n_tokens) {
    const int vocabulary = llama_vocab_n_tokens(llama_model_get_vocab(llama_get_model(context)));
    const int last = (int) text.tokens.size() - 1;
    llama_memory_clear(llama_get_memory(context), true);
    for (int at = 0, end = 0; at < last; at = end) {
        const bool prompt = at < text.prompt;
        end = std::min(prompt ? text.prompt : last, at + (prompt ? PROMPT_BATCH : n_tokens));
        const int output = std::clamp(text.prompt - 1, at, end);
        decode(context, &text.tokens[at], end - at, output - at);
        for (int place = output; place < end; place++) {
            print(number, place + 1 - text.prompt, text.tokens[place + 1],
                  llama_get_logits_ith(context, place - at), vocabulary);
        }
    }
}

void score_all(llama_model * model, const std::string & file, int threads, int n_tokens) {
    const std::vector<Text> texts = read_texts(file);
    size_t longest = 1;
    for (const Text & text : texts) {
        longest = std::max(longest, text.tokens.size());
    }
    llama_context_params params = llama_context_default_params();
    params.n_ctx = (uint32_t) longest;
    params.n_batch = PROMPT_BATCH;
    params.n_ubatch = PHYSICAL_BATCH;
    const llama_context_ptr context = context_of(model, params, threads);
    for (size_t number = 0; number < texts.size(); number++) {
        score(context.get(), texts[number], (int) number, n_tokens);
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
        score_all(model.get(), text, threads, atoi(argv[6]));
    } else {
        Options options{threads, gpu_layers, atoi(argv[6]), atoi(argv[7]), split(argv[8]), {}, 0};
        for (const auto & n_tokens : split(argv[9])) {
            options.counts.push_back(std::stoi(n_tokens));
            options.widest = std::max(options.widest, options.counts.back());
        }
        time_passes(model.get(), options, text);
    }
    return 0;
}
