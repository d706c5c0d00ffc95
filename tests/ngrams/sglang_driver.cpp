// Replays requests with SGLang's own trie: standard input holds requests, standard output a tree for each call.
//
// Each line of the input: whether the server goes on from the line before, BFS or PROB, TOKENS DEPTH MIN MAX, the length
// of the prompt, and the text. A line of the output per call: its start, and the token of each node with the place of
// the node above it (-1: the text), level by level, by rising tokens; nodes with the same path are one.

#include "trie.h"

#include <algorithm>
#include <iostream>
#include <map>
#include <memory>
#include <sstream>
#include <string>

using namespace sglang::ngram;

int main() {
    std::unique_ptr<Trie> trie;
    for (std::string line; std::getline(std::cin, line);) {
        std::istringstream in(line);
        int goes_on, prompt, token;
        Param param{};
        in >> goes_on >> param.match_type >> param.draft_token_num >> param.max_trie_depth >> param.min_bfs_breadth >>
            param.max_bfs_breadth >> prompt;
        std::vector<int32_t> text;
        while (in >> token) {
            text.push_back(token);
        }
        if (!goes_on) {
            trie = std::make_unique<Trie>(100000, param);
        }
        MatchState state;
        for (size_t at = prompt + 1; at < text.size();) {
            const size_t size = std::min(at, param.max_trie_depth);
            const int32_t * window = text.data() + at - size;
            const size_t most = param.get_draft_token_num(1);
            const Result drafted =
                param.match_type == "BFS"
                    ? trie->buildRecency(window, size, window[size - 1], most, param, state, at)
                    : trie->buildFrequency(window, size, window[size - 1], most, param, state, at);
            const size_t n = drafted.token.size();
            std::vector<std::vector<int32_t>> paths(n);
            std::map<std::pair<size_t, std::vector<int32_t>>, int> places;
            for (size_t node = 1; node < n; ++node) {
                size_t above = node - 1;
                while (!drafted.mask[node * n + above]) {
                    --above;
                }
                paths[node] = paths[above];
                paths[node].push_back(drafted.token[node]);
                places[{paths[node].size(), paths[node]}] = 0;
            }
            std::cout << at - prompt;
            int place = 0;
            size_t accepted = 0;
            for (auto & [path, number] : places) {
                number = place++;
                auto above = path.second;
                above.pop_back();
                std::cout << ' ' << path.second.back() << ' ' << (above.empty() ? -1 : places[{above.size(), above}]);
                if (at + path.first <= text.size() && std::equal(path.second.begin(), path.second.end(), text.data() + at)) {
                    accepted = std::max(accepted, path.first);
                }
            }
            std::cout << '\n';
            trie->insert(window, size);
            at += accepted + 1;
        }
        std::cout << "end\n";
    }
}
