/* Guides come before proofs, figures and Python names: a reader who asks for "batch" plans a server. */
var Scorer = {
  score: ([page, , , , score]) => (/^(theorems|figures|api)\//.test(page) ? score : score + 1000),
  objNameMatch: 11, objPartialMatch: 6, objPrio: {0: 15, 1: 5, 2: -5}, objPrioDefault: 0,
  title: 15, partialTitle: 7, term: 5, partialTerm: 2,
};
