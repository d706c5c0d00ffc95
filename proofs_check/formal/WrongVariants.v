(* A wrong variant of each theorem, refuted by a counterexample that is computed. *)
From mathcomp Require Import all_ssreflect all_algebra.
From Coq Require Import ZArith QArith Qcanon.
From Spectheory Require Import Definitions Fractions Sums OneToken MeanAcceptance Values Calls Optimality Algorithms
  Stops Trees Toys.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import GRing.Theory Num.Theory Order.TTheory.
Delimit Scope nat_scope with N.
Local Open Scope bool_scope.
Local Open Scope ring_scope.

Local Notation Q := frac_realFieldType.

(* Models of the counterexamples *)

Lemma bits_vocabulary : vocabulary bits. Proof. by split=> // -[]. Qed.

Definition sure (A : eqType) (u : seq A -> A) : model Q A := fun w z => if z == u w then 1 else 0.

Lemma sure_pmf (A : eqType) (voc : seq A) (u : seq A -> A) w : vocabulary voc -> pmf voc (sure u w).
Proof. by case=> un all; split=> [z|]; [rewrite /sure; case: eqP | exact: (sum_at (fun=> 1) un (all (u w)))]. Qed.

Lemma fair_pmf : pmf bits fair. Proof. by split=> [z|]; [| apply/eqP; vm_compute]. Qed.

Lemma texts_proper (A : eqType) (voc : seq A) (p q : model Q A) k n : (forall w, pmf voc (p w)) -> (forall w, pmf voc
  (q w)) ->
  proper voc (texts p q k n).
Proof.
move=> P0 Q0; split=> //= w z le.
by rewrite size_rcons (leq_trans le).
Qed.

(* A1 without the draft's marginal: a rule that draws its drafts from the target accepts all of them. *)
Theorem not_without_the_draft : ~ (forall (A : eqType) (voc : seq A) (p q : A -> Q) (law : A -> A -> bool -> Q),
  vocabulary voc -> pmf voc p -> pmf voc q -> (forall x z b, 0 <= law x z b) ->
  (forall z, sum voc (fun x => law x z true + law x z false) = p z) -> (forall x z, x != z -> law x z true = 0) ->
  sum voc (fun x => law x x true) <= overlap voc p q).
Proof.
pose law (x z b : bool) : Q := if b && (x == z) then third [::] z else 0.
move/(_ bool_eqType bits (third [::]) (two_thirds [::]) law bits_vocabulary).
have both : pmf bits (third [::]) /\ pmf bits (two_thirds [::]).
  by split; split=> [[]|]; rewrite //; apply/eqP; vm_compute.
move/(_ both.1 both.2); have pos x z b : 0 <= law x z b by case: x; case: z; case: b.
move/(_ pos); have margin z : sum bits (fun x => law x z true + law x z false) = third [::] z.
  by case: z; apply/eqP; vm_compute.
move/(_ margin); have diagonal (x z : bool) : x != z -> law x z true = 0 by rewrite /law /= => /negbTE ->.
by move/(_ diagonal); vm_compute.
Qed.

(* C6 with the i.i.d. formula: calls <= N / (1 + a) + 1/2 for k = 1 fails where refusals come in clusters. *)
Definition clustered : seq Q := nseq 4 0 ++ nseq 4 1.
Theorem not_iid : ~ (forall l : seq Q, acceptances l ->
  let mean := 1 - refused l / (size l)%:R in expected_calls 1 l <= (size l)%:R / (1 + mean) + frac 1 2).
Proof. by move/(_ clustered isT); vm_compute. Qed.

(* B7 with any number of drafts by text (B7/lengths-free): p = q, k = 1, 2, 0, 0. A first call that accepts nothing
  saves
   a call. *)
Definition lengths (w : seq unit) : nat := nth 0%N [:: 1; 2; 0; 0]%N (size w).
Definition one_token : model Q _ := sure (fun _ : seq unit => tt).
Definition jumping := texts one_token one_token lengths 4.
Definition nothing (x : seq unit) : Q := if x is [::] then 1 else 0.
Definition refusing : policy Q (plain_calls [:: tt] 2) := fun h =>
  @block_law _ _ [:: tt] jumping 2 (so_far h) (if h is [::] then nothing else block jumping (so_far h)).

Lemma unit_vocabulary : vocabulary [:: tt]. Proof. by split=> // -[]. Qed.
Lemma jumping_proper : proper [:: tt] jumping.
Proof. by apply: texts_proper => w; apply: sure_pmf unit_vocabulary. Qed.

Lemma lengths_most w : (drafts jumping w <= 2)%N.
Proof. by rewrite /= /lengths; case: (size w) => [|[|[|[|[|n]]]]]. Qed.

Lemma refusing_lossless : lossless_policy jumping refusing.
Proof.
have ok := jumping_proper; have voc := unit_vocabulary.
have p0 w z : 0 <= target jumping w z by have [] := target_pmf ok w.
have q0 w x : 0 <= prob (draft jumping) w x by apply: prob_ge0 => v z; have [] := draft_pmf ok v.
move=> [|o h] _; apply: block_law_lossless => //; try exact: lengths_most.
- by move=> [|a x] z /=; rewrite ?mulr1 ?mulr0.
- by case.
- by case=> [|a x].
- exact: block_grows.
- exact: block_ge0 ok _.
- exact: block_drafted.
Qed.

Theorem not_any_lengths : ~ (forall (A : eqType) (voc : seq A) (P : problem Q A) (C : calls A) (pi : policy Q C),
  vocabulary voc -> proper voc P -> lossless_policy P pi -> value voc P (block P) [::] <= expected_cost P pi).
Proof.
move/(_ _ _ _ _ refusing unit_vocabulary jumping_proper refusing_lossless).
by vm_compute.
Qed.

(* B7/longer for a rule that decides differently by depth (B7/by-depth): the first draft of a call is accepted if it is
   0, later ones always. *)
Definition late_one : model Q _ := sure (fun w : seq bool => size w == 4%N).
Definition by_depth (w x : seq bool) : Q := if x is z :: _ then (if z then 0 else prob late_one w x) else 1.
Theorem not_by_depth : ~ (forall (A : eqType) (voc : seq A) (p q : model Q A) (k n : nat) (s : masses Q A),
  proper voc (texts p q (fun=> k) n) -> (forall w, s w [::] = 1) -> (forall w x, 0 <= s w x) ->
  (forall w x z, s w (rcons x z) <= p (w ++ x) z * s w x) -> (forall w x, s w x <= prob q w x) ->
  value voc (texts p q (fun=> k.+1) n) s [::] <= value voc (texts p q (fun=> k) n) s [::]).
Proof.
have P0 w : pmf bits (late_one w) by apply: sure_pmf bits_vocabulary.
have L0 w x : 0 <= prob late_one w x by apply: prob_ge0 => v z; have [] := P0 v.
move/(_ _ bits late_one late_one 2%N 6%N by_depth).
move/(_ (texts_proper _ _ P0 P0) (fun=> erefl)).
have s0 w x : 0 <= by_depth w x by case: x => [|[] x] //; apply: L0.
have sg w x z : by_depth w (rcons x z) <= late_one (w ++ x) z * by_depth w x.
  case: x => [|[] x]; rewrite ?mulr0 //; last by rewrite /by_depth [rcons _ _]/= -rcons_cons prob_rcons mulrC.
  by rewrite /by_depth /= cats0; case: z; rewrite ?mulr1 //; have [] := P0 w.
have sq w x : by_depth w x <= prob late_one w x by case: x => [|[] x] //; apply: L0.
by move/(_ s0 sg sq); vm_compute.
Qed.

(* B7 for policies whose whole text alone has the target's law (B7/not-fresh): the second token is a fair coin, which
   repeats whether the first draft was right. *)
Definition coin_p : model Q _ := fun w => if size w == 1%N then fair else sure (fun=> false) w.
Definition coin_q : model Q _ := fun w => if size w == 0%N then fair else sure (fun v => size v == 1%N) w.
Definition coin := texts coin_p coin_q (fun=> 1%N) 3.

(* Which drafts are accepted, and what is added then *)
Definition lucky (w y : seq bool) : nat * bool :=
  if w is [::] then (if y == [:: false] then (1, false) else (0, false))%N else (1, false)%N.
Definition luck : policy Q (plain_calls bits 1) := fun h o =>
  algorithm coin (fun y i => if i == (lucky (so_far h) y).1 then 1 else 0) (fun=> sure (fun=> false) [::]) (so_far h) o.

(* P(the finished text begins with v) *)
Fixpoint finally (A : eqType) (P : problem Q A) (C : calls A) n (pi : policy Q C) (h : history C) (v : seq A) : Q :=
  if n is m.+1 then
    if ended P (so_far h) then (if take (size v) (so_far h) == v then 1 else 0)
    else sum (results C) (fun o => pi h o * finally P m pi (rcons h o) v)
  else (if take (size v) (so_far h) == v then 1 else 0).

Theorem not_without_freshness : ~ (forall (A : eqType) (voc : seq A) (p q : model Q A) (k n : nat) (C : calls A) (pi
  : policy Q C),
  let P := texts p q (fun=> k) n in
  vocabulary voc -> proper voc P ->
  (forall h o, 0 <= pi h o) ->
  (forall h o, pi h o != 0 -> size (chain o) = k /\ (accepted o <= k)%N) ->
  (forall h y, size y = k -> sum (results C) (fun o => if chain o == y then pi h o else 0) = prob q (so_far h) y) ->
  (forall v, v \in chains voc n -> finally P n pi [::] v = prob p [::] v) ->
  value voc P (block P) [::] <= expected_cost P pi).
Proof.
have P0 w : pmf bits (coin_p w) by rewrite /coin_p; case: ifP => _; [exact: fair_pmf | exact: sure_pmf bits_vocabulary].
have Q0 w : pmf bits (coin_q w) by rewrite /coin_q; case: ifP => _; [exact: fair_pmf | exact: sure_pmf bits_vocabulary].
move/(_ _ bits coin_p coin_q 1%N 3%N _ luck bits_vocabulary (texts_proper _ _ P0 Q0)).
have law0 h o : 0 <= luck h o.
  case: o => -[y i] z; rewrite /luck /=; case: ifP => // _; rewrite !mulr_ge0 //.
  - by apply: prob_ge0 => v u; have [] := Q0 v.
  - by case: ifP.
  - by have [] := sure_pmf (fun _ : seq bool => false) [::] bits_vocabulary.
have size0 h o : luck h o != 0 -> size (chain o) = 1%N /\ (accepted o <= 1)%N.
  by move/(algorithm_supported (P := coin) (voc := bits) (most := 1)).
have draft0 h y : size y = 1%N -> sum (results (plain_calls bits 1)) (fun o => if chain o == y then luck h o else 0) =
  prob coin_q (so_far h) y.
  apply: (algorithm_draft bits_vocabulary (P := coin)) => // u su.
  by rewrite /lucky; case: (so_far h) => [|a v]; [case: ifP => _|]; apply/eqP; vm_compute.
have whole v : v \in chains bits 3 -> finally coin 3 luck [::] v = prob coin_p [::] v.
  have all_v : all (fun v => finally coin 3 luck [::] v == prob coin_p [::] v) (chains bits 3) by vm_compute.
  by move/(allP all_v)/eqP.
by move/(_ law0 size0 draft0 whole); vm_compute.
Qed.

(* The path theorem with one survival for both rules: block verification accepts more than token verification at 0,
  1. *)
Theorem not_one_survival : ~ (forall (A : eqType) (voc : seq A) (P : problem Q A) (w x : seq A),
  vocabulary voc -> proper voc P -> (size x <= drafts P w)%N -> block P w x = token P w x).
Proof.
have P0 w : pmf bits (third w) by split=> [[]|]; rewrite //; apply/eqP; vm_compute.
have Q0 w : pmf bits (two_thirds w) by split=> [[]|]; rewrite //; apply/eqP; vm_compute.
move/(_ _ _ toy [::] [:: false; true] bits_vocabulary (texts_proper _ _ P0 Q0) isT)/eqP.
by vm_compute.
Qed.

(* B10 at a price below 0: one token, p = q, one draft a call, texts of three tokens, c = -2. Drafting pays, so a call
   that accepts its draft costs a later one. *)
Definition paid := texts one_token one_token (fun=> 1%N) 3.
Definition drafting (w x : seq unit) : Q := if x is [::] then 1 else 0.
Definition always_refuses : policy Q (plain_calls [:: tt] 1) := fun _ o => if o == ([:: tt], 0%N, tt) then 1 else 0.

Lemma paid_proper : proper [:: tt] paid.
Proof. by apply: texts_proper => w; apply: sure_pmf unit_vocabulary. Qed.

Lemma one_token1 w z : one_token w z = 1. Proof. by case: z. Qed.

Lemma one_text w v : prob one_token w v = 1.
Proof. by elim: v w => //= z v IH w; rewrite IH one_token1 mulr1. Qed.

Lemma drafting_best : best_stops [:: tt] paid (frac (-2) 1) drafting.
Proof.
split=> [w|w g]; first by split=> [[]|//|[|a x] z|[]] //=; rewrite ?mulr1 ?mulr0.
move=> go [g0 g1 _ gl]; have gz z : g [:: z] = 0 by apply: gl.
have E h : gain [:: tt] paid (frac (-2) 1) drafting w h = stopped_saving [:: tt] paid (frac (-2) 1) drafting w +
    Num.min 1 (h [::]) * stopped_saving [:: tt] paid (frac (-2) 1) drafting (rcons w tt) +
    frac 2 1 * (h [::] + h [:: tt]).
  rewrite /gain /= /stopped /= !one_token1 !mul1r !addr0 cats0 cats1.
  by have -> : frac (-2) 1 = - frac 2 1 by []; rewrite mulNr opprK.
have D : 0 <= stopped_saving [:: tt] paid (frac (-2) 1) drafting (rcons w tt) + frac 2 1.
  by case: w go {E gl gz g0 g1} => [|[] [|[] [|[] w]]] //= _; vm_compute.
rewrite !E gz /= minxx (min_idPr g1) !addr0 mul1r mulr1; move: D.
move: (stopped_saving _ _ _ _ w) (stopped_saving _ _ _ _ (rcons w tt)) => d e D.
by rewrite -!addrA ler_add2l [frac 2 1 * _]mulrC -mulrDr; apply: ler_pimull.
Qed.

Lemma refuses_lossless : lossless_stopping_policy paid always_refuses.
Proof.
move=> h _; split=> [o|o|x z|v].
- by rewrite /always_refuses; case: ifP.
- by rewrite /always_refuses; case: (o =P _) => [->|].
- by case: z; case: x => [|[] [|[] x]]; apply/eqP; vm_compute.
- rewrite one_text; case: v => [|[] v]; first by apply/eqP; vm_compute.
  by rewrite /always_refuses /= !mul0r !add0r mul1r !addr0 begins_nil one_text.
Qed.

Theorem not_at_a_price_below_0 : ~ (forall (A : eqType) (voc : seq A) (P : problem Q A) (c : Q)
  (u : seq A -> seq A -> Q) (C : calls A) (pi : policy Q C), vocabulary voc -> proper voc P -> steady voc P ->
  best_stops voc P c u -> lossless_stopping_policy P pi -> stopped_value voc P c u [::] <= expected_price P c pi).
Proof.
have even : steady [:: tt] paid.
  split=> // w _; rewrite /= one_token1 mul1r addr0; by case: ifP.
move/(_ _ _ _ _ _ _ always_refuses unit_vocabulary paid_proper even drafting_best refuses_lossless).
by vm_compute.
Qed.

(* S2 where siblings must have ranks 1..m: with pi = (2/5, 3/50, 27/50) the heaviest nodes that may come next are [1],
   [1; 1], [1; 1; 1], and the tree of [1], [2], [3] gives more. The ranks are None, Some true and Some false. *)
Definition three : seq (option bool) := [:: None; Some true; Some false].
Definition unordered : model Q _ := fun _ (r : option bool) =>
  if r is Some b then (if b then frac 3 50 else frac 27 50) else frac 2 5.
Definition siblings_in_order (A : eqType) (voc : seq A) (T : seq (seq A)) : bool :=
  all (fun v => if v is z :: u then
    all (fun r => rcons (parent v) r \in T) (take (index (last z u) voc) voc) else true) T.

Lemma three_vocabulary : vocabulary three. Proof. by split=> // -[[]|]. Qed.
Lemma unordered_pmf v : pmf three (unordered v).
Proof. by split=> [[[]|]|]; rewrite //; apply/eqP; vm_compute. Qed.

Theorem not_with_siblings_in_order : ~ (forall (A : eqType) (voc : seq A) (m : model Q A) (T T' : seq (seq A)),
  vocabulary voc -> (forall v, pmf voc (m v)) -> tree T -> siblings_in_order voc T ->
  (forall v t, v \notin T -> tree (v :: T) -> siblings_in_order voc (v :: T) -> t \in T -> weight m v <= weight m t) ->
  tree T' -> siblings_in_order voc T' -> (size T' <= size T)%N -> tree_tokens voc m T' <= tree_tokens voc m T).
Proof.
pose deep := [:: [:: None]; [:: None; None]; [:: None; None; None]] : seq (seq (option bool)).
pose wide := [seq [:: r] | r <- three].
move/(_ _ three unordered deep wide three_vocabulary unordered_pmf isT isT).
have next v t : v \notin deep -> tree (v :: deep) -> siblings_in_order three (v :: deep) -> t \in deep ->
    weight unordered v <= weight unordered t.
  move=> out /and3P[_]; rewrite inE negb_or => /andP[v0 _] /andP[up _] order tT.
  have least : all (fun u => frac 8 125 <= weight unordered u) deep by vm_compute.
  apply: le_trans (allP least _ tT).
  have most : all (fun u => all (fun r => siblings_in_order three (rcons u r :: deep) ==>
      ((rcons u r \in deep) || (weight unordered (rcons u r) <= frac 8 125))) three) ([::] :: deep) by vm_compute.
  case/lastP: v v0 out up order => // u r _ out up order.
  have uT : u \in [::] :: deep.
    move: up; rewrite /in_tree parent_rcons !in_cons; case/or3P=> [->|/eqP/(congr1 size)/eqP|->]; rewrite ?orbT //.
    by rewrite size_rcons -[X in X == _]addn0 -addn1 eqn_add2l.
  have := allP (allP most u uT) r (three_vocabulary.2 r).
  by rewrite order (negbTE out).
by move/(_ next isT isT isT); vm_compute.
Qed.
