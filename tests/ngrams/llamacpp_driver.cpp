// Replays texts with llama.cpp's own n-gram drafts: standard input holds requests, standard output a draft for each call.
//
// Each line of the input: whether the server goes on from the line before, KIND N M HITS (of ngram-mod: n, max, min), the
// length of the prompt, and the text. A line of the output per call: its start, what was drafted.

#include "ngram-cache.h"
#include "ngram-map.h"
#include "speculative.h"

#include <algorithm>
#include <iostream>
#include <memory>
#include <sstream>
#include <string>

int64_t ggml_time_ms() { return 0; }

int main() {
    std::unique_ptr<common_speculative_impl_ngram_mod> mod;
    std::string line;
    while (std::getline(std::cin, line)) {
        std::istringstream in(line);
        std::string kind;
        int goes_on, n, m, hits, prompt, token;
        in >> goes_on >> kind >> n >> m >> hits >> prompt;
        llama_tokens text;
        while (in >> token) {
            text.push_back(token);
        }
        common_ngram_map map(n, m, kind == "ngram-map-k", hits);
        common_ngram_cache counts, none, also_none;
        size_t counted = 0;
        common_ngram_map_begin(map, llama_tokens(text.begin(), text.begin() + prompt));
        if (!goes_on) {
            mod = std::make_unique<common_speculative_impl_ngram_mod>(common_params_speculative{{n, m, hits}}, 1);
        }
        mod->begin(0, llama_tokens(text.begin(), text.begin() + prompt));
        for (size_t at = prompt + 1; at < text.size();) {
            llama_tokens history(text.begin(), text.begin() + at - 1), draft;
            const llama_token last = text[at - 1];
            if (kind == "ngram-simple") {
                draft = common_ngram_simple_draft({(uint16_t) n, (uint16_t) m}, history, last);
            } else if (kind == "ngram-cache") {
                llama_tokens fresh(text.begin() + counted, text.begin() + at);
                common_ngram_cache_update(counts, LLAMA_NGRAM_MIN, LLAMA_NGRAM_MAX, fresh, fresh.size(), false);
                counted = at;
                llama_tokens known(text.begin(), text.begin() + at);
                draft.push_back(last);
                common_ngram_cache_draft(
                    known, draft, m, LLAMA_NGRAM_MIN, LLAMA_NGRAM_MAX, counts, none, also_none);
                draft.erase(draft.begin());
            } else if (kind == "ngram-mod") {
                common_speculative_draft_params_vec asked{{true, last, &history, &draft}};
                mod->draft(asked);
            } else {
                common_ngram_map_draft(map, history, last, draft);
            }
            size_t accepted = 0;
            while (accepted < draft.size() && at + accepted < text.size() && draft[accepted] == text[at + accepted]) {
                ++accepted;
            }
            if (!draft.empty()) {
                common_ngram_map_accept(map, accepted);
                mod->accept(0, accepted, kind != "ngram-mod");
            }
            std::cout << at - prompt;
            for (const llama_token each : draft) {
                std::cout << ' ' << each;
            }
            std::cout << '\n';
            at += accepted + 1;
        }
        std::cout << "end\n";
    }
}
