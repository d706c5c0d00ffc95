// Replays requests with Arctic Inference's own suffix trees: standard input holds requests, standard output a draft for
// each call.
//
// Each line of the input: whether the server goes on from the line before, MAX DEPTH FACTOR PROBABILITY, the length of
// the prompt, and the text. A line of the output per call: its start, what was drafted.

#include "suffix_tree.h"

#include <iostream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

int main() {
    std::unique_ptr<SuffixTree> outputs;
    int request = 0;
    for (std::string line; std::getline(std::cin, line);) {
        std::istringstream in(line);
        int goes_on, most, depth, prompt, token;
        float factor, probability;
        in >> goes_on >> most >> depth >> factor >> probability >> prompt;
        std::vector<int32_t> text;
        while (in >> token) {
            text.push_back(token);
        }
        if (!goes_on) {
            outputs = std::make_unique<SuffixTree>(depth);
            request = 0;
        }
        SuffixTree own(depth);
        own.extend(0, std::span<const int32_t>(text.data(), prompt));
        const auto output = [&](size_t from, size_t to) {
            const std::span<const int32_t> tokens(text.data() + from, to - from);
            own.extend(0, tokens);
            outputs->extend(request, tokens);
        };
        size_t known = prompt;
        for (size_t at = prompt + 1; at < text.size();) {
            output(known, at);
            known = at;
            const size_t first = at > (size_t) depth ? at - depth : 0;
            const std::span<const int32_t> last(text.data() + first, at - first);
            Draft draft = own.speculate(last, most, factor, 0.0f, probability, false);
            const Draft other = outputs->speculate(last, most, factor, 0.0f, probability, false);
            if (draft.score < other.score) {
                draft = other;
            }
            std::cout << at - prompt;
            for (const int32_t each : draft.token_ids) {
                std::cout << ' ' << each;
            }
            std::cout << '\n';
            size_t accepted = 0;
            while (accepted < draft.token_ids.size() && at + accepted < text.size() &&
                   draft.token_ids[accepted] == text[at + accepted]) {
                ++accepted;
            }
            at += accepted + 1;
        }
        output(known, text.size());
        ++request;
        std::cout << "end\n";
    }
}
