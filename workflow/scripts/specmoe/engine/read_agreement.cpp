// Reads texts with a draft, and says at each of their tokens what the draft would have proposed.
//
// What a greedy draft proposes depends on the tokens before it alone, and as long as it agrees these
// are the target's own. So one reading of the text that a target wrote gives every draft length.
//
// Usage: read_agreement MODEL TEXTS THREADS GPU_LAYERS WIDTH
//
// Each line of the file of texts is the length of a prompt, and the ids of the prompt and of the
// tokens that the target wrote. The prompt is read at once, as llama-server does, and the rest in
// batches of `width`. Standard output receives one JSON object for each token that was written:
//
//     {"text": 0, "position": 3, "token": 5, "agrees": true, "confidence": 0.9, "lead_nats": 2.1}
//
// `token` is the draft's likeliest, `confidence` its probability among the ten likeliest, which
// llama-server compares with p_min (common/speculative.cpp). `lead_nats` is how far that token leads
// the next one where the two agree, and the target's token where they do not: how much rounding
// would have to move to make it otherwise.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <vector>

#include "ggml-backend.h"
#include "llama.h"

namespace {

using Tokens = std::vector<llama_token>;

constexpr int CANDIDATES = 10;  // that the server's draft samples from
constexpr int PROMPT_BATCH = 2048, PHYSICAL_BATCH = 512;  // llama-server's

struct Text {
    int prompt;  // tokens of the prompt, with which `tokens` begins
    Tokens tokens;
};

[[noreturn]] void fail(const std::string & reason) {
    fprintf(stderr, "read_agreement: %s\n", reason.c_str());
    exit(1);
}

std::vector<Text> read_texts(const std::string & path) {
    std::ifstream file(path);
    if (!file) {
        fail("cannot read " + path);
    }
    std::vector<Text> texts;
    for (std::string line; std::getline(file, line);) {
        std::stringstream words(line);
        Text text;
        words >> text.prompt;
        for (llama_token token; words >> token;) {
            text.tokens.push_back(token);
        }
        texts.push_back(std::move(text));
    }
    return texts;
}

// Refuse texts that are none of this model's, by the number of the first one; return the longest.
int check(const std::vector<Text> & texts, const llama_model * model) {
    const int vocabulary = llama_vocab_n_tokens(llama_model_get_vocab(model));
    const int context = llama_model_n_ctx_train(model);
    int longest = 1;
    for (size_t number = 0; number < texts.size(); number++) {
        const Text & text = texts[number];
        const int length = (int) text.tokens.size();
        const auto [least, most] = std::minmax_element(text.tokens.begin(), text.tokens.end());
        if (text.prompt < 1 || text.prompt >= length || *least < 0 || *most >= vocabulary) {
            fail("text " + std::to_string(number) + " has no prompt, nothing after it, or a token" +
                 " that the draft's vocabulary of " + std::to_string(vocabulary) + " lacks");
        }
        if (length > context) {
            fail("text " + std::to_string(number) + " has " + std::to_string(length) +
                 " tokens, and the draft's context is " + std::to_string(context));
        }
        longest = std::max(longest, length);
    }
    return longest;
}

void print(int text, int position, llama_token target, const float * logits, int count) {
    std::vector<float> best(logits, logits + count);
    const int kept = std::min(CANDIDATES, count);
    std::partial_sort(best.begin(), best.begin() + kept, best.end(), std::greater<float>());
    const auto token = (llama_token) (std::max_element(logits, logits + count) - logits);
    double sum = 0;
    for (int at = 0; at < kept; at++) {
        sum += std::exp((double) best[at] - best[0]);
    }
    const bool agrees = token == target;
    const double lead = (double) best[0] - (agrees ? best[1] : logits[target]);
    printf("{\"text\": %d, \"position\": %d, \"token\": %d, \"agrees\": %s, \"confidence\": %.9g,"
           " \"lead_nats\": %.9g}\n",
           text, position, token, agrees ? "true" : "false", 1 / sum, lead);
}

// Read one text; the output of each token that is not the last tells the next one.
void read(llama_context * context, llama_batch & batch, const Text & text, int number, int width) {
    const int vocabulary = llama_vocab_n_tokens(llama_model_get_vocab(llama_get_model(context)));
    const int last = (int) text.tokens.size() - 1;
    llama_memory_clear(llama_get_memory(context), true);
    for (int at = 0; at < last;) {
        const bool prompt = at < text.prompt;
        const int end = std::min(prompt ? text.prompt : last, at + (prompt ? PROMPT_BATCH : width));
        batch.n_tokens = end - at;
        for (int place = at; place < end; place++) {
            const int row = place - at;
            batch.token[row] = text.tokens[place];
            batch.pos[row] = place;
            batch.n_seq_id[row] = 1;
            batch.seq_id[row][0] = 0;
            batch.logits[row] = place >= text.prompt - 1;
        }
        if (llama_decode(context, batch) != 0) {
            fail("text " + std::to_string(number) + " failed to decode");
        }
        for (int place = std::max(at, text.prompt - 1); place < end; place++) {
            print(number, place + 1 - text.prompt, text.tokens[place + 1],
                  llama_get_logits_ith(context, place - at), vocabulary);
        }
        at = end;
    }
}

// Leave out what the engine says of a model that it loads, or an error would be below all that.
void log_faults(ggml_log_level level, const char * text, void *) {
    if (level == GGML_LOG_LEVEL_WARN || level == GGML_LOG_LEVEL_ERROR) {
        fputs(text, stderr);
    }
}

}  // namespace

int main(int, char ** argv) {
    const std::string self = argv[0], file = argv[1], of_texts = argv[2];
    const int threads = atoi(argv[3]), gpu_layers = atoi(argv[4]), width = atoi(argv[5]);
    llama_log_set(log_faults, nullptr);
    // An engine for every processor has its kernels in libraries beside its programs.
    ggml_backend_load_all_from_path((self.substr(0, self.rfind('/') + 1) + "bin").c_str());
    llama_backend_init();
    llama_model_params of_model = llama_model_default_params();
    of_model.n_gpu_layers = gpu_layers;
    llama_model * model = llama_model_load_from_file(file.c_str(), of_model);
    if (!model) {
        fail("cannot load " + file);
    }
    const std::vector<Text> texts = read_texts(of_texts);
    llama_context_params params = llama_context_default_params();
    params.n_ctx = (uint32_t) check(texts, model);
    params.n_batch = PROMPT_BATCH;
    params.n_ubatch = PHYSICAL_BATCH;
    params.n_threads = params.n_threads_batch = threads;
    params.no_perf = true;
    llama_context * context = llama_init_from_model(model, params);
    if (!context) {
        fail("no context could be made");
    }
    llama_batch batch = llama_batch_init(PROMPT_BATCH, 0, 1);
    for (size_t number = 0; number < texts.size(); number++) {
        read(context, batch, texts[number], (int) number, width);
    }
    llama_batch_free(batch);
    llama_free(context);
    llama_model_free(model);
    llama_backend_free();
    return 0;
}
