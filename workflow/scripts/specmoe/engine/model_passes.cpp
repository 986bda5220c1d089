// Our program on one model, for what no program of llama.cpp does.
//
// Usage: model_passes time TEXT DEPTH SAMPLES SECONDS ROW PASSES FLAGS...
//        model_passes score TEXTS N_TOKENS FLAGS...
//        model_passes play TEXTS N_PREDICT REPLAYS SETTINGS FLAGS...
//
// FLAGS are those that llama-server has: the model is loaded and computed as it does.
//
// `time` times one forward pass by its tokens, and counts the experts that it activates. A pass
// decodes consecutive tokens of a text, in one sequence, as a target verifies draft tokens.
// llama-bench gives the output of the last token only; llama-batched-bench decodes one token of
// each of many sequences. PASSES are a list, in JSON, of pairs such as ["all", 5]: five tokens with
// an output for each, or for the "last" one. ROW equal ones follow each other behind DEPTH tokens,
// as a server's do: the first one's graph is new, those after it use that again, on a GPU as
// captured. Each of the SAMPLES starts at another place of the text, and has the rows in a random
// order; after two, none begins later than so many SECONDS after the first. Experts are counted
// with all outputs: some graphs compute those of the last layer for outputs alone. Standard output
// has a JSON object a line:
//
//     {"sample": 0, "n_tokens": 5, "experts": [11, 13]}    distinct ones of each MoE layer
//     {"sample": 0, "n_tokens": 5, "outputs": "all", "sampled_ms": 0.11, "ms": [1.31, 1.25]}
//     {"sample": 0, "saved_ms": 0.81, "restored_ms": 0.62}    of a recurrent state
//
// `score` says at each token of a text what a draft model would have proposed. That depends on the
// tokens before it alone, so one scoring of a target's output gives every draft length. TEXTS is a
// list, in JSON, of pairs: the length of a prompt, and the ids of the prompt and of the target's
// output, which the context holds. The prompt is processed at once, as llama-server does, the rest
// N_TOKENS at once. For each:
//
//     {"text": 0, "position": 3, "token": 5, "agrees": true, "confidence": 0.9, "lead_nats": 2.1}
//
// What these are, `Proposal` in measure/model_passes.py says.
//
// `play` needs no model: it plays the rounds in which n-grams draft while a target writes the same
// TEXTS, N_PREDICT tokens at most, with the functions and in the order of llama-server
// (tools/server/server-context.cpp). A rejection is followed by a replay if REPLAYS is 1. SETTINGS
// are a list of lists, in JSON: llama-server's flags of each. Each meets nothing of other settings
// or texts. The steps are numbers of rounds, replays, accepted and drafted tokens:
//
//     {"setting": 0, "text": 0, "steps": [[0, 0, 0, 0], [1, 1, 3, 8]]}

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <iostream>
#include <iterator>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "arg.h"
#include "common.h"
#include "ggml-backend.h"
#include "ggml.h"
#include "llama-cpp.h"
#include "log.h"
#include "sampling.h"
#include "speculative.h"

namespace {

using Clock = std::chrono::steady_clock;
using Json = nlohmann::json;
using Tokens = std::vector<llama_token>;

constexpr int CANDIDATES = 10;  // of a draft model in the server (common/speculative.cpp)

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

void print(const Json & line) {
    std::cout << line << '\n';
}

double ms_between(Clock::time_point began, Clock::time_point ended) {
    return std::chrono::duration<double, std::milli>(ended - began).count();
}

// Decode tokens behind those of the context, and return how many milliseconds that took. The tokens
// from number `output` on get an output.
double decode(llama_context * context, const llama_token * tokens, int count, int output) {
    std::vector<int8_t> outputs(count);
    std::fill(outputs.begin() + output, outputs.end(), 1);
    llama_batch batch = llama_batch_get_one(const_cast<llama_token *>(tokens), count);
    batch.logits = outputs.data();
    llama_synchronize(context);
    const auto began = Clock::now();
    if (llama_decode(context, batch) != 0) {
        fail("a pass failed to decode");
    }
    llama_synchronize(context);
    return ms_between(began, Clock::now());
}

// Where passes are timed or counted; `row` are equal ones that follow each other, of no more than
// `widest` tokens.
struct Plan {
    int depth, samples, row, widest;
    double seconds;
    Tokens text;
};

// The distinct experts of each MoE layer, by its number, which the tensor with its router's choices
// has in its name.
using Visited = std::map<int, std::set<int32_t>>;

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
    auto & layer = (*static_cast<Visited *>(visited))[atoi(tensor->name + 13)];
    for (int64_t token = 0; token < tensor->ne[1]; token++) {
        const int32_t * chosen = &data[token * tensor->nb[1] / sizeof(int32_t)];
        layer.insert(chosen, chosen + tensor->ne[0]);
    }
    return true;
}

// A context such as llama-server makes for a draft model: no pool of threads waits for its passes.
llama_context_ptr make_context(llama_model * model, const common_params & params) {
    llama_context_ptr context(
        llama_init_from_model(model, common_context_params_to_llama(params)));
    if (!context) {
        fail("no context could be made");
    }
    return context;
}

// Print how long the server takes to copy what it cannot cut back, before a round and, to return to
// it, after a target's rejection or a draft model's drafts; nothing where all layers have a cache.
void time_checkpoint(llama_context * context, int sample) {
    const llama_model * model = llama_get_model(context);
    if (!llama_model_is_hybrid(model) && !llama_model_is_recurrent(model)) {
        return;
    }
    const auto flags = LLAMA_STATE_SEQ_FLAGS_PARTIAL_ONLY;
    std::vector<uint8_t> state;
    for (int again = 0; again < 2; again++) {  // a server's memory for it is used again
        const auto began = Clock::now();
        state.resize(llama_state_seq_get_size_ext(context, 0, flags));
        llama_state_seq_get_data_ext(context, state.data(), state.size(), 0, flags);
        const auto saved = Clock::now();
        llama_state_seq_set_data_ext(context, state.data(), state.size(), 0, flags);
        llama_synchronize(context);
        if (again) {
            print({{"sample", sample},
                   {"saved_ms", ms_between(began, saved)},
                   {"restored_ms", ms_between(saved, Clock::now())}});
        }
    }
}

// Call `measure` at every place of the text, behind the tokens before it: with the place's number,
// each width, and the tokens from there on.
void at_places(llama_context * context, const Plan & plan, std::vector<int> widths, bool timed,
               const std::function<void(int, int, const llama_token *)> & measure) {
    const int64_t last = (int64_t) plan.text.size() - plan.depth - plan.row * plan.widest;
    std::mt19937 random(1);
    std::vector<uint8_t> state;  // behind the first `depth` tokens
    const auto began = Clock::now();
    const auto late = [&] { return ms_between(began, Clock::now()) > 1000 * plan.seconds; };
    for (int sample = 0; sample < plan.samples && (sample < 2 || !late()); sample++) {
        const auto * start = &plan.text[last * sample / std::max(plan.samples - 1, 1)];
        llama_memory_clear(llama_get_memory(context), false);
        for (int at = 0, end = 0; at < plan.depth; at = end) {
            end = std::min(plan.depth, at + (int) llama_n_batch(context));
            decode(context, start + at, end - at, end - at - 1);
        }
        if (timed) {
            time_checkpoint(context, sample);
        }
        state.resize(llama_state_seq_get_size(context, 0));
        llama_state_seq_get_data(context, state.data(), state.size(), 0);
        std::shuffle(widths.begin(), widths.end(), random);
        for (const int n_tokens : widths) {
            llama_memory_clear(llama_get_memory(context), false);
            if (!llama_state_seq_set_data(context, state.data(), state.size(), 0)) {
                fail("the state cannot be restored");
            }
            measure(sample, n_tokens, start + plan.depth);
        }
    }
}

// Print the experts that passes of each width activate; nothing of a dense model.
void count_experts(llama_model * model, common_params params, const Plan & plan,
                   const std::vector<int> & widths) {
    Visited visited;
    params.cb_eval = see;
    params.cb_eval_user_data = &visited;
    const llama_context_ptr context = make_context(model, params);
    const auto measure = [&](int sample, int n_tokens, const llama_token * ids) {
        if (visited.empty()) {
            return;  // not even by the tokens before it
        }
        visited.clear();
        decode(context.get(), ids, n_tokens, 0);
        Json experts = Json::array();
        for (const auto & [layer, distinct] : visited) {
            experts.push_back(distinct.size());
        }
        print({{"sample", sample}, {"n_tokens", n_tokens}, {"experts", experts}});
    };
    at_places(context.get(), plan, widths, false, measure);
}

// Print the times of passes with some outputs, and of sampling each of these.
void time_passes(llama_context * context, const Plan & plan, const std::string & outputs,
                 const std::vector<int> & widths, common_sampler * sampler) {
    std::vector<double> row(plan.row);
    const auto measure = [&](int sample, int n_tokens, const llama_token * ids) {
        const int first = outputs == "all" ? 0 : n_tokens - 1;
        for (double & ms : row) {
            ms = decode(context, ids, n_tokens, first);
            ids += n_tokens;
        }
        const auto began = Clock::now();
        for (int place = first; place < n_tokens; place++) {
            common_sampler_sample(sampler, context, place);
        }
        const double sampled = ms_between(began, Clock::now()) / (n_tokens - first);
        print({{"sample", sample}, {"n_tokens", n_tokens}, {"outputs", outputs},
               {"sampled_ms", sampled}, {"ms", row}});
    };
    at_places(context, plan, widths, true, measure);
}

void print_proposal(int text, int position, llama_token target, const float * logits, int count) {
    std::vector<float> best(std::min(CANDIDATES, count));
    std::partial_sort_copy(logits, logits + count, best.begin(), best.end(), std::greater<float>());
    const auto token = (llama_token) (std::max_element(logits, logits + count) - logits);
    double sum = 0;
    for (const float logit : best) {
        sum += std::exp((double) logit - best[0]);
    }
    const bool agrees = token == target;
    const double lead = (double) best[0] - (agrees ? best[1] : logits[target]);
    print({{"text", text}, {"position", position}, {"token", token}, {"agrees", agrees},
           {"confidence", 1 / sum}, {"lead_nats", lead}});
}

using Text = std::pair<int, Tokens>;  // which begins with a prompt of so many tokens

// Score texts; the output of each token that is not the last tells the next one.
void score(llama_context * context, const std::vector<Text> & texts, int n_tokens) {
    const int vocabulary = llama_vocab_n_tokens(llama_model_get_vocab(llama_get_model(context)));
    const int prompt_batch = llama_n_batch(context);
    for (int number = 0; number < (int) texts.size(); number++) {
        const auto & [prompt, text] = texts[number];
        const int last = (int) text.size() - 1;
        llama_memory_clear(llama_get_memory(context), true);
        for (int at = 0, end = 0; at < last; at = end) {
            end = at < prompt ? std::min(prompt, at + prompt_batch) : std::min(last, at + n_tokens);
            const int output = std::clamp(prompt - 1, at, end);
            decode(context, &text[at], end - at, output - at);
            for (int place = output; place < end; place++) {
                print_proposal(number, place + 1 - prompt, text[place + 1],
                               llama_get_logits_ith(context, place - at), vocabulary);
            }
        }
    }
}

// Return the steps of a text, with a new process's memory of n-grams.
Json play(common_params params, const Text & of, int n_predict, bool replays) {
    const auto & [prompt, text] = of;
    const common_speculative_ptr drafter(common_speculative_init(params.speculative, 1));
    Json steps = Json::array();
    Tokens draft, processed(text.begin(), text.begin() + prompt);
    common_speculative_begin(drafter.get(), 0, processed);
    const int end = (int) text.size() - 1;
    for (int last = prompt, next; last < end; last = next) {  // `last` is sampled, not processed
        const int most = prompt + n_predict - last - 2;  // the last that the limit allows is sampled
        draft.clear();
        if (most > 0) {
            auto & asked = common_speculative_get_draft_params(drafter.get(), 0);
            asked = {true, most, (llama_pos) processed.size(), text[last], &processed, &draft};
            common_speculative_draft(drafter.get());
        }
        const int count = (int) draft.size(), left = end - last;
        int held = 0;
        while (held < std::min(count, left) && draft[held] == text[last + 1 + held]) {
            held++;
        }
        held -= held == left && held < count;  // an end is accepted as the last drafted token alone
        const int replayed = replays && held < count;
        if (count > 0) {
            // A replay drafts the accepted tokens, and the one that the target gave instead.
            common_speculative_accept(drafter.get(), 0, held + replayed);
        }
        steps.push_back({int(count > 0), replayed, held, count});
        next = std::min(last + 1 + held + replayed, end);
        processed.insert(processed.end(), text.begin() + last, text.begin() + next);
    }
    return steps;
}

// Take llama-server's flags; the first of the words is skipped.
common_params parse(std::vector<char *> words) {
    common_params params;
    if (!common_params_parse((int) words.size(), words.data(), params, LLAMA_EXAMPLE_SERVER)) {
        fail("llama-server does not take these flags");
    }
    common_log_set_verbosity_thold(LOG_LEVEL_ERROR);
    return params;
}

}  // namespace

int main(int argc, char ** argv) {
    const std::string self = argv[0], task = argv[1];
    std::ifstream file(argv[2], std::ios::binary);
    if (!file) {
        fail(std::string("cannot read ") + argv[2]);
    }
    const int flags = task == "score" ? 4 : task == "play" ? 6 : 8;  // their place
    // An engine for every processor has its kernels in libraries beside its programs.
    ggml_backend_load_all_from_path((self.substr(0, self.rfind('/') + 1) + "bin").c_str());
    const std::vector<char *> words(argv + flags - 1, argv + argc);
    common_params params = parse(words);
    llama_log_set(log_errors, nullptr);
    llama_backend_init();
    if (task == "play") {
        const auto texts = Json::parse(file).get<std::vector<Text>>();
        auto settings = Json::parse(argv[5]).get<std::vector<std::vector<std::string>>>();
        for (size_t setting = 0; setting < settings.size(); setting++) {
            auto all = words;
            for (std::string & flag : settings[setting]) {
                all.push_back(flag.data());
            }
            const common_params drafting = parse(all);
            for (size_t number = 0; number < texts.size(); number++) {
                const auto steps = play(drafting, texts[number], atoi(argv[3]), atoi(argv[4]));
                print({{"setting", setting}, {"text", number}, {"steps", steps}});
            }
        }
        return 0;
    }
    llama_numa_init(params.numa);
    const auto loaded = common_init_from_params(params);
    llama_context * context = loaded->context();
    if (!context) {
        fail("cannot load " + params.model.path);
    }
    if (task == "score") {
        score(context, Json::parse(file).get<std::vector<Text>>(), atoi(argv[3]));
        return 0;
    }
    std::map<std::string, std::vector<int>> widths;  // by their outputs
    std::set<int> every;
    const auto passes = Json::parse(argv[7]).get<std::vector<std::pair<std::string, int>>>();
    for (const auto & [outputs, n_tokens] : passes) {
        widths[outputs].push_back(n_tokens);
        every.insert(n_tokens);
    }
    const std::string content(std::istreambuf_iterator<char>(file), {});
    const Plan plan{atoi(argv[3]),  atoi(argv[4]), atoi(argv[6]),
                    *every.rbegin(), atof(argv[5]), common_tokenize(context, content, false)};
    if ((int) plan.text.size() <= plan.depth + plan.row * plan.widest) {
        fail("the text has " + std::to_string(plan.text.size()) + " tokens, too few");
    }
    count_experts(loaded->model(), params, plan, {every.begin(), every.end()});
    for (const auto & [outputs, counts] : widths) {
        // A target's context has its outputs; those of a draft model take no memory of that.
        const auto other = outputs == "last" ? make_context(loaded->model(), params) : nullptr;
        time_passes(other ? other.get() : context, plan, outputs, counts, loaded->sampler(0));
    }
    return 0;
}
