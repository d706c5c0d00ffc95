(* What is proved, in one file: each statement in full, from Definitions.v alone; the proofs are in the other files.
   `Print Assumptions` after each shows that it rests on no axiom. *)
From mathcomp Require Import all_ssreflect all_algebra.
From Spectheory Require Import Definitions Sums OneToken MeanAcceptance Values Calls Ratios Along Optimality Algorithms
  Stops Trees.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import GRing.Theory Num.Theory Order.TTheory.
Local Open Scope ring_scope.

(* A1: one draft token *)
Section A1.
Variables (R : realFieldType) (A : eqType) (voc : seq A) (p q : A -> R).
Hypotheses (all_tokens : vocabulary voc) (p_pmf : pmf voc p) (q_pmf : pmf voc q).

(* Token verification outputs the target's law, draws its draft from q and outputs what it accepts. *)
Theorem A1_lossless : lossless_once voc p q (token_call voc p q).
Proof. exact: token_is_lossless. Qed.

(* It accepts with probability sum min(p, q). *)
Theorem A1_acceptance : token_accepts voc p q = overlap voc p q.
Proof. exact: token_acceptance. Qed.

(* No rule accepts more. *)
Theorem A1_most law : lossless_once voc p q law -> sum voc (fun x => law x x true) <= overlap voc p q.
Proof. exact: no_rule_accepts_more. Qed.
End A1.

(* C6: N the tokens of the text, refused = N (1 - mean acceptance) *)
Section C6.
Variables (R : realFieldType) (k : nat) (l : seq R).
Hypothesis ok : all (fun a => 0 <= a <= 1) l.

(* At least (k + 1)/(1 + k (1 - a)) tokens a call, up to an end term of k/(k + 1) calls *)
Theorem C6_least : expected_calls k l * k.+1%:R <= (size l)%:R + k%:R * refused l + k%:R.
Proof. exact: other_calls_are_full. Qed.

(* At most 1/(1 - a) tokens a call *)
Theorem C6_most : refused l <= expected_calls k l.
Proof. exact: refusals_end_calls. Qed.

(* At most k + 1 tokens a call *)
Theorem C6_full : (size l)%:R <= expected_calls k l * k.+1%:R.
Proof. exact: calls_are_long. Qed.
End C6.

(* B7 and the path theorem. A policy's call may depend on all results before it, and on coins, which are part of a
   result. `steady` holds for k drafts a call of cost 1. *)
Section B7.
Variables (R : realFieldType) (A : eqType) (voc : seq A) (P : problem R A).
Hypotheses (all_tokens : vocabulary voc) (ok : proper voc P).

Section OneCall.
Variables (C : calls A) (w : seq A) (law : result C -> R).
Hypothesis fresh : lossless P w law.

(* (i) no lossless fresh call has more mass than block verification, *)
Theorem B7_masses x : survives law x <= block P w x.
Proof. exact: (survives_block all_tokens ok fresh). Qed.

(* (ii) and its cost, with block verification afterwards, is V(w) and what it loses. *)
Theorem B7_cost : ~~ ended P w ->
  cost P w + sum (results C) (fun o => law o * value voc P (block P) (w ++ output o)) =
  value voc P (block P) w + loss voc P law w.
Proof.
move=> go; have fresh_w := lossless_fresh fresh.
by rewrite (after_call all_tokens fresh_w (value voc P (block P))) (call_loss ok (survives_start fresh_w) _ go).
Qed.

(* The path theorem: given that the text after w begins with xr, the call accepts the drafts x with probability
   survives law x / P(x), whatever r. *)
Theorem path_theorem x r :
  sum (results C) (fun o => if (size x <= accepted o)%N then law o * begins P w (output o) (x ++ r) else 0) =
  survives law x * prob (target P) (w ++ x) r.
Proof. exact: (path_survival (lossless_fresh fresh)). Qed.
End OneCall.

(* The renewal identity *)
Theorem B7_renewal w : ~~ ended P w ->
  sum (runs voc (drafts P w)) (fun x => block P w x * saving voc P (block P) (w ++ x)) = cost P w.
Proof. by move=> go; apply: (renewal ok (s := block P)). Qed.

(* (iii) *)
Theorem B7_shift w z x : block P w (z :: x) <= draft P w z * block P (rcons w z) x.
Proof. exact: (block_shift ok). Qed.

Section Steady.
Hypothesis even : steady voc P.

(* (iv) *)
Theorem B7_saving w : 0 <= saving voc P (block P) w <= cost P w.
Proof. exact: (saving_between ok even w (block_shifts ok even)). Qed.

(* (v) every policy has at least V expected calls. *)
Theorem B7_optimal (C : calls A) (pi : policy R C) :
  lossless_policy P pi -> value voc P (block P) [::] <= expected_cost P pi.
Proof. exact: (block_is_optimal all_tokens ok even). Qed.
End Steady.

(* The regret *)
Theorem B7_regret (C : calls A) (pi : policy R C) : lossless_policy P pi ->
  expected_cost P pi = value voc P (block P) [::] + expected P pi (fun h => loss voc P (pi h) (so_far h)).
Proof. exact: (regret all_tokens ok). Qed.

Theorem B7_no_negative_loss (C : calls A) (pi : policy R C) h : steady voc P ->
  lossless_policy P pi -> ~~ ended P (so_far h) -> 0 <= loss voc P (pi h) (so_far h).
Proof. by move=> even fresh; apply: (loss_ge0 all_tokens ok even fresh). Qed.

(* Block verification, run as an algorithm, is such a policy, and has V expected calls. *)
Section Attained.
Variable most : nat.
Hypothesis k_most : forall w, (drafts P w <= most)%N.

Theorem block_is_lossless : lossless_policy P (@block_policy R A voc P most).
Proof. exact: (block_policy_lossless all_tokens ok k_most). Qed.

Theorem B7_attained : expected_cost P (@block_policy R A voc P most) = value voc P (block P) [::].
Proof. exact: (block_policy_attains all_tokens ok k_most). Qed.

Theorem block_survival w x : (size x <= drafts P w)%N ->
  survives (@block_law R A voc P most w (block P w)) x = block P w x.
Proof.
move=> short; apply: (block_law_survives all_tokens ok k_most) => //;
  [exact: block_grows | exact: (block_ge0 ok) | exact: block_drafted].
Qed.

(* Token verification too is lossless and fresh, with the masses prod min(p, q). *)
Theorem token_is_lossless_call w : lossless P w (@token_law R A voc P most w).
Proof. exact: (token_law_lossless all_tokens ok k_most). Qed.

Theorem token_survival w x : (size x <= drafts P w)%N -> survives (@token_law R A voc P most w) x = token P w x.
Proof. exact: (token_law_survives all_tokens ok k_most). Qed.
End Attained.
End B7.

(* Along a text of positive probability: token verification survives with prod min(1, rho), block verification with the
   least product of the first ratios, 1 if none is less. *)
Theorem token_along_text (R : realFieldType) (A : eqType) (voc : seq A) (P : problem R A) w x : proper voc P ->
  prob (target P) w x != 0 -> token P w x / prob (target P) w x = product_of_ratios P w x.
Proof. by move=> ok; apply: (token_ratios ok). Qed.

Theorem block_along_text (R : realFieldType) (A : eqType) (voc : seq A) (P : problem R A) w x : proper voc P ->
  prob (target P) w x != 0 -> block P w x / prob (target P) w x = running_least P 1 1 w x.
Proof. by move=> ok; apply: (block_ratios ok). Qed.

(* The recursion of calls along a text, C(w) = 1 + sum_i P(tau = i | text) C(w and i + 1 tokens), has the mean V over
   texts drawn from the target. *)
Section AlongTexts.
Variables (R : realFieldType) (A : eqType) (voc : seq A) (P : problem R A) (most : nat).
Hypotheses (ok : proper voc P) (k_most : forall w, (drafts P w <= most)%N).

Theorem block_calls_along w : value voc P (block P) w =
  sum (chains voc (longest P + most).+1) (fun v => prob (target P) w v * along P (block P) w v).
Proof.
apply: (along_texts ok) => // [v x|v x]; first exact: block_ge0 ok v x.
by apply: (grows_text ok) => // y z; apply: block_grows.
Qed.

Theorem token_calls_along w : value voc P (token P) w =
  sum (chains voc (longest P + most).+1) (fun v => prob (target P) w v * along P (token P) w v).
Proof.
apply: (along_texts ok) => // [v x|v x]; first exact: token_ge0 ok v x.
by apply: (grows_text ok) => // y z; apply: (token_grows ok).
Qed.
End AlongTexts.

(* Longer chains never need more calls. More drafts at every text, the rest as in P: *)
Section Longer.
Variables (R : realFieldType) (A : eqType) (voc : seq A) (P : problem R A) (more : seq A -> nat).
Definition with_more := Problem (target P) (draft P) more (cost P) (ended P) (longest P).
Hypotheses (ok : proper voc P) (ok_more : proper voc with_more) (even : steady voc with_more)
  (longer : forall w, (drafts P w <= more w)%N).

(* under any rule with masses s that do not depend on the number of drafts, and s(w, zx) <= c(z) s(wz, x) with shares c
   that sum to at most 1 where a call costs 1 (`shifts` in Values.v), *)
Theorem B7_longer (s : masses R A) (c : seq A -> A -> R) :
  shifts voc with_more s c -> (forall w x z, s w (rcons x z) <= target P (w ++ x) z * s w x) ->
  forall w, value voc with_more s w <= value voc P s w.
Proof. by move=> sh grows w; apply: (longer_chains ok ok_more even longer sh grows). Qed.

(* so under block verification and under token verification. *)
Theorem B7_longer_block w : value voc with_more (block P) w <= value voc P (block P) w.
Proof. by apply: B7_longer (block_shifts ok_more even) _ w => v x z; apply: block_grows. Qed.

Theorem B7_longer_token w : value voc with_more (token P) w <= value voc P (token P) w.
Proof. by apply: B7_longer (token_shifts ok_more even) _ w => v x z; apply: (token_grows ok). Qed.
End Longer.

(* A free token never costs calls under token verification either. *)
Theorem B7_saving_token (R : realFieldType) (A : eqType) (voc : seq A) (P : problem R A) w :
  proper voc P -> steady voc P -> 0 <= saving voc P (token P) w <= cost P w.
Proof. by move=> ok even; apply: (saving_between ok even w (token_shifts ok even)). Qed.

(* B10: a call costs cost P w, 1 in the theorem as stated, and each drafted token c. Drafting may end after any token,
   by coins, memory or anything else. `u` is any choice with the maximum at each text; V and D are of that choice. *)
Section B10.
Variables (R : realFieldType) (A : eqType) (voc : seq A) (P : problem R A) (c : R) (u : seq A -> seq A -> R).
Hypotheses (all_tokens : vocabulary voc) (ok : proper voc P) (even : steady voc P).
Hypotheses (c0 : 0 <= c) (best : best_stops voc P c u).
Local Notation V := (stopped_value voc P c u).
Local Notation D := (stopped_saving voc P c u).

(* A call goes on with probabilities that `may_go` allows, and has at most the masses of block verification against
   the law of the stopped drafts. *)
Theorem B10_masses (C : calls A) w (law : result C -> R) x : lossless_stopping P w law ->
  may_go P w (goes_on law) /\ survives law x <= stopped P (goes_on law) w x.
Proof. by move=> fresh; split; [exact: goes_on_may_go fresh | exact: (survives_stopped ok fresh)]. Qed.

(* What a call drafts in the mean *)
Theorem B10_drafted (C : calls A) w (law : result C -> R) : lossless_stopping P w law ->
  sum (results C) (fun o => law o * (size (chain o))%:R) = sum (runs voc (drafts P w)) (goes_on law).
Proof. by move=> fresh; apply: (drafted_tokens all_tokens fresh). Qed.

(* V(w) = 1 + sum p V(wz) - max [sum mu D - c sum Q R], where the first sum has no empty run: V(w) is at most this for
   any choice g, with equality if and only if g is a maximum. *)
Theorem B10_recursion w g : ~~ ended P w -> may_go P w g ->
  V w <= cost P w + sum voc (fun z => target P w z * V (rcons w z)) - (gain voc P c u w g - D w)
    ?= iff (gain voc P c u w g == gain voc P c u w (u w)).
Proof. exact: (value_of_stops ok c0 best). Qed.

Theorem B10_shift w z x g : may_go P w g ->
  stopped P g w (z :: x) <= draft P w z * g [::] * stopped P (rest_of_call P w z g) (rcons w z) x.
Proof. by move=> fg; apply: (stopped_shift ok). Qed.

Theorem B10_saving w : ~~ ended P w -> Num.min c (cost P w) <= D w <= cost P w.
Proof. by move=> go; apply: (stopped_saving_between ok even c0 best go). Qed.

(* No policy costs less than V. *)
Theorem B10_optimal (C : calls A) (pi : policy R C) :
  lossless_stopping_policy P pi -> V [::] <= expected_price P c pi.
Proof. by move=> fresh; apply: (stopped_is_least ok even c0 best all_tokens fresh). Qed.
End B10.

(* S2: draft trees; the law m v of the next rank may depend on the ranks v so far *)
Section S2.
Variables (R : realFieldType) (A : eqType) (voc : seq A) (m : model R A) (T : seq (seq A)).
Hypotheses (all_ranks : vocabulary voc) (laws : forall v, pmf voc (m v)).

(* The expected tokens of a call: 1 and the weights of the tree's nodes *)
Theorem S2_tokens : tree T -> tree_tokens voc m T = 1 + sum T (weight m).
Proof. exact: tokens_of_tree. Qed.

(* A greedy tree has the heaviest nodes: none outside it outweighs one of it. *)
Theorem S2_frontier : greedy m T -> forall v t, v != [::] -> v \notin T -> t \in T -> weight m v <= weight m t.
Proof. exact: (outside all_ranks laws). Qed.

(* No set of as many nodes weighs more. *)
Theorem S2_heaviest (T' : seq (seq A)) : greedy m T -> uniq T -> uniq T' -> [::] \notin T' ->
  (size T' <= size T)%N -> sum T' (weight m) <= sum T (weight m).
Proof. exact: (heaviest all_ranks laws). Qed.

(* No tree of as many nodes gives more tokens. *)
Theorem S2_optimal (T' : seq (seq A)) : tree T -> greedy m T -> tree T' -> (size T' <= size T)%N ->
  tree_tokens voc m T' <= tree_tokens voc m T.
Proof. exact: (greedy_is_best all_ranks laws). Qed.
End S2.

Print Assumptions A1_lossless.
Print Assumptions A1_acceptance.
Print Assumptions A1_most.
Print Assumptions C6_least.
Print Assumptions C6_most.
Print Assumptions C6_full.
Print Assumptions B7_masses.
Print Assumptions B7_cost.
Print Assumptions path_theorem.
Print Assumptions B7_renewal.
Print Assumptions B7_shift.
Print Assumptions B7_saving.
Print Assumptions B7_optimal.
Print Assumptions B7_regret.
Print Assumptions B7_no_negative_loss.
Print Assumptions block_is_lossless.
Print Assumptions B7_attained.
Print Assumptions block_survival.
Print Assumptions token_is_lossless_call.
Print Assumptions token_survival.
Print Assumptions token_along_text.
Print Assumptions block_along_text.
Print Assumptions block_calls_along.
Print Assumptions token_calls_along.
Print Assumptions B7_longer.
Print Assumptions B7_longer_block.
Print Assumptions B7_longer_token.
Print Assumptions B7_saving_token.
Print Assumptions B10_masses.
Print Assumptions B10_drafted.
Print Assumptions B10_recursion.
Print Assumptions B10_shift.
Print Assumptions B10_saving.
Print Assumptions B10_optimal.
Print Assumptions S2_tokens.
Print Assumptions S2_frontier.
Print Assumptions S2_heaviest.
Print Assumptions S2_optimal.
