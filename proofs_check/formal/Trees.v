(* S2: no tree of as many nodes gives more tokens than the greedy one. *)
From mathcomp Require Import all_ssreflect all_algebra.
From Spectheory Require Import Definitions Sums Calls Algorithms.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import GRing.Theory Num.Theory Order.TTheory.
Local Open Scope ring_scope.

Section Trees.
Variables (R : realFieldType) (A : eqType) (voc : seq A) (m : model R A).
Hypotheses (all_ranks : vocabulary voc) (laws : forall v, pmf voc (m v)).
Local Notation W := (weight m).
Implicit Types T U : seq (seq A).

Lemma m_ge0 v r : 0 <= m v r. Proof. by have [] := laws v. Qed.
Lemma m_le1 v r : m v r <= 1.
Proof. by have [p0 <-] := laws v; apply: le_term => //; case: all_ranks. Qed.
Lemma weight_ge0 v : 0 <= W v. Proof. exact: prob_ge0 m_ge0. Qed.

Lemma parent_rcons (v : seq A) r : parent (rcons v r) = v.
Proof. by rewrite /parent size_rcons /= -cats1 take_size_cat. Qed.

Lemma weight_rcons v r : W (rcons v r) <= W v.
Proof. by rewrite /weight prob_rcons ler_pimulr ?m_le1 // weight_ge0. Qed.

Lemma closed_prefix T v x : tree T -> in_tree T (v ++ x) -> in_tree T v.
Proof.
case/and3P=> _ _ /allP closed; elim/last_ind: x => [|x r IH]; first by rewrite cats0.
rewrite -rcons_cat {1}/in_tree inE => /orP[/eqP|/closed]; first by case: (v ++ x).
by rewrite parent_rcons.
Qed.

Lemma outside T : greedy m T -> forall v t, v != [::] -> v \notin T -> t \in T -> W v <= W t.
Proof.
move=> G v t; elim/last_ind: v => // v r IH _ out tT.
case E: (in_tree T v); first by apply: G; rewrite ?parent_rcons //; case: (v).
apply: le_trans (weight_rcons v r) (IH _ _ tT).
  by case: (v) E => //; rewrite /in_tree inE.
by move: E; rewrite /in_tree inE => /negbT; rewrite negb_or => /andP[].
Qed.

(* Weights that are all at least c against weights that are all at most c *)
Lemma le_sums T U (c : R) : 0 <= c -> (forall t, t \in T -> c <= W t) -> (forall u, u \in U -> W u <= c) ->
  (size U <= size T)%N -> sum U W <= sum T W.
Proof.
move=> c0 low high le; apply: (@le_trans _ _ (c *+ size T)); last first.
  elim: T {le} low => [|t T IH] low; first by rewrite mulr0n.
  by rewrite mulrS ler_add ?low ?mem_head // IH // => u uT; rewrite low // inE uT orbT.
apply: (@le_trans _ _ (c *+ size U)); last by rewrite ler_wpmuln2l.
elim: U {le} high => [|t U IH] high; first by rewrite mulr0n.
by rewrite mulrS ler_add ?high ?mem_head // IH // => u uT; rewrite high // inE uT orbT.
Qed.

(* Nodes with a least weight *)
Lemma least_weight T t : exists2 u, u \in t :: T & forall v, v \in t :: T -> W u <= W v.
Proof.
elim: T t => [|s T IH] t; first by exists t; rewrite ?mem_head // => v; rewrite inE => /eqP->.
have [u us le] := IH s; case: (leP (W t) (W u)) => [tu|/ltW ut].
  exists t; rewrite ?mem_head // => v; rewrite inE => /orP[/eqP->//|/le]; exact: le_trans.
by exists u; rewrite ?[u \in t :: _]in_cons ?us ?orbT // => v; rewrite inE => /orP[/eqP->//|/le].
Qed.

Lemma sum_split T U : sum T W = sum [seq v <- T | v \in U] W + sum [seq v <- T | v \notin U] W.
Proof. by rewrite !sumE !big_filter (bigID (mem U)). Qed.

Lemma heaviest T U : greedy m T -> uniq T -> uniq U -> [::] \notin U -> (size U <= size T)%N -> sum U W <= sum T W.
Proof.
move=> G uT uU root le; rewrite (sum_split U T) (sum_split T U).
have P : perm_eq [seq v <- U | v \in T] [seq v <- T | v \in U].
  by apply: uniq_perm; rewrite ?filter_uniq // => v; rewrite !mem_filter andbC.
have -> : sum [seq v <- U | v \in T] W = sum [seq v <- T | v \in U] W by rewrite !sumE; apply: perm_big.
rewrite ler_add2l.
have sizes : (size [seq v <- U | v \notin T] <= size [seq v <- T | v \notin U])%N.
  rewrite -(leq_add2l (size [seq v <- U | v \in T])) {2}(perm_size P) !size_filter.
  by rewrite (count_predC (mem T)) (count_predC (mem U)).
have out u : u \in [seq v <- U | v \notin T] -> [/\ u \in U, u \notin T & u != [::]].
  by rewrite mem_filter => /andP[uT' uU']; split=> //; apply: contraNneq root => <-.
case E : [seq v <- T | v \notin U] sizes => [|t S] sizes.
  by move: sizes; rewrite leqn0 size_eq0 => /eqP->.
have [c cin low] := least_weight S t; apply: (le_sums (weight_ge0 c)) => // u /out[_ uo u0].
apply: (outside G) => //; move: cin; rewrite -E mem_filter; by case/andP.
Qed.

(* A call's expected tokens are 1 and the weights of its nodes. *)
Lemma tokens_from T n v : tree T -> in_tree T v ->
  tree_tokens_in voc m n T v = sum (runs voc n) (fun x => if in_tree T (v ++ x) then prob m v x else 0).
Proof.
move=> tr; elim: n v => [|n IH] v vT; first by rewrite /= cats0 vT.
rewrite sum_runs cats0 vT /=; congr (1 + _); apply: eq_sum => r.
case E: (rcons v r \in T).
  rewrite IH ?/in_tree ?inE ?E ?orbT // -sumM; apply: eq_sum => x.
  by rewrite cat_rcons; case: ifP; rewrite ?mulr0.
rewrite -[LHS](sum0 R (runs voc n)); apply: eq_sum => x; rewrite -cat_rcons; case: ifP => // /(closed_prefix tr).
by rewrite /in_tree inE E; case: (v).
Qed.

Lemma in_sum_runs T n : uniq T -> (forall v, v \in T -> (size v <= n)%N) ->
  sum (runs voc n) (fun x => if x \in T then W x else 0) = sum T W.
Proof.
move=> uT deep.
have at_node : {in T, W =1 fun t => sum (runs voc n) (fun y => if y == t then W y else 0)}.
  by move=> t /deep le; rewrite (sum_runs_at all_ranks).
rewrite (eq_sum_in at_node) exchange; apply: eq_sum => x; case: ifP => xT.
  by rewrite -[LHS](sum_at (fun=> W x) uT xT); apply: eq_sum => t; rewrite eq_sym.
by rewrite -[LHS](sum0 R T); apply: eq_sum_in => t tT; case: eqP => // E; rewrite E tT in xT.
Qed.

Lemma tokens_of_tree T : tree T -> tree_tokens voc m T = 1 + sum T W.
Proof.
move=> tr; rewrite /tree_tokens tokens_from //.
have /and3P[uT root _] := tr.
have deep v : v \in [::] :: T -> (size v <= foldr maxn 0 (map size T))%N.
  rewrite inE => /orP[/eqP->//|]; elim: (T) => //= t S IH; rewrite inE leq_max.
  by case/orP=> [/eqP->|/IH->]; rewrite ?leqnn ?orbT.
by rewrite (@in_sum_runs ([::] :: T)) //= root.
Qed.

Lemma greedy_is_best T U : tree T -> greedy m T -> tree U -> (size U <= size T)%N ->
  tree_tokens voc m U <= tree_tokens voc m T.
Proof.
move=> tT G tU le; rewrite !tokens_of_tree // ler_add2l.
by have /and3P[uT _ _] := tT; have /and3P[uU rU _] := tU; apply: heaviest.
Qed.
End Trees.
