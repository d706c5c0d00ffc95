(* B10: the least cost if a drafted token costs c and drafting may end after any token. *)
From mathcomp Require Import all_ssreflect all_algebra.
From Spectheory Require Import Definitions Algebra Sums Values Calls Optimality.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import GRing.Theory Num.Theory Order.TTheory.
Local Open Scope ring_scope.

Section Masses.
Variables (R : realFieldType) (A : eqType) (voc : seq A) (P : problem R A).
Add Ring R_ring : (ring_of R).
Hypotheses (ok : proper voc P).
Local Notation p := (target P).
Local Notation q := (draft P).
Local Notation k := (drafts P).
Implicit Types (w x y : seq A) (z : A) (u g : seq A -> R).

Let p0 w z : 0 <= p w z. Proof. by have [] := target_pmf ok w. Qed.
Let q0 w z : 0 <= q w z. Proof. by have [] := draft_pmf ok w. Qed.

Lemma stopped_from_rcons m u w x z : stopped_from P m u w (rcons x z) =
  Num.min (p (w ++ x) z * stopped_from P m u w x) (q (w ++ x) z * u x).
Proof.
elim: x m u w => [|t x IH] m u w /=; first by rewrite cats0.
by rewrite IH cat_rcons.
Qed.

Lemma stopped_rcons u w x z : stopped P u w (rcons x z) =
  Num.min (p (w ++ x) z * stopped P u w x) (q (w ++ x) z * u x).
Proof. exact: stopped_from_rcons. Qed.

Lemma stopped_ge0 u w x : (forall y, 0 <= u y) -> 0 <= stopped P u w x.
Proof.
move=> u0; elim/last_ind: x => [|x z IH]; first exact: ler01.
by rewrite stopped_rcons le_minr !mulr_ge0.
Qed.

(* The rest of a call after its first draft, drawn with probability a *)
Section Shift.
Variables (w : seq A) (z : A) (u : seq A -> R).
Hypothesis go : may_go P w u.
Local Notation a := (q w z * u [::]).
Definition rest_of_call (x : seq A) : R := u (z :: x) / a.

Lemma share_ge0_of : 0 <= a. Proof. by rewrite mulr_ge0 ?(go_ge0 go). Qed.

Lemma rest_scaled x : u (z :: x) = a * rest_of_call x.
Proof.
rewrite /rest_of_call; have [a0|an] := eqVneq a 0; last by rewrite mulrCA divff ?mulr1.
rewrite a0 mul0r; apply/eqP; rewrite eq_le (go_ge0 go) andbT.
elim/last_ind: x => [|x t IH].
  by apply: le_trans (go_falls go [::] z) _; rewrite cats0 a0.
apply: le_trans (go_falls go (z :: x) t) _.
have -> : u (z :: x) = 0 by apply/eqP; rewrite eq_le IH (go_ge0 go).
by rewrite mulr0.
Qed.

Lemma rest_may_go : ((k w).-1 <= k (rcons w z))%N -> may_go P (rcons w z) rest_of_call.
Proof.
move=> le; split=> [x||x t|x kx]; rewrite /rest_of_call.
- by rewrite divr_ge0 ?share_ge0_of ?(go_ge0 go).
- have [->|an] := eqVneq a 0; first by rewrite invr0 mulr0 ler01.
  rewrite ler_pdivr_mulr ?lt_def ?an ?share_ge0_of // mul1r.
  by have := go_falls go [::] z; rewrite cats0.
- rewrite mulrA ler_wpmul2r ?invr_ge0 ?share_ge0_of //.
  by have := go_falls go (z :: x) t; rewrite cat_rcons.
- rewrite (go_last go) ?mul0r //= .
  by move: (leq_trans le kx); case: (k w).
Qed.

(* (iii) mu(zx) <= a mu'(x) *)
Lemma stopped_shift x : stopped P u w (z :: x) <= a * stopped P rest_of_call (rcons w z) x.
Proof.
elim/last_ind: x => [|x t IH].
  by rewrite /stopped /= !mulr1 le_minl lexx orbT.
rewrite -rcons_cons !stopped_rcons cat_rcons minr_pmulr ?share_ge0_of // le_minr !le_minl.
apply/andP; split; apply/orP; [left|right].
  by rewrite mulrCA ler_wpmul2l.
by rewrite rest_scaled mulrCA.
Qed.
End Shift.

(* No drafts *)
Lemma none_may_go w : may_go P w (fun=> 0).
Proof. by split=> // [|x z]; rewrite ?ler01 ?mulr0. Qed.

Lemma stopped_none w z x : stopped P (fun=> 0) w (z :: x) = 0.
Proof.
elim/last_ind: x => [|x t IH]; rewrite -?rcons_cons.
  by rewrite /stopped /= mulr1 mulr0; apply/min_idPr.
by rewrite stopped_rcons IH !mulr0 minxx.
Qed.
End Masses.

Section Best.
Variables (R : realFieldType) (A : eqType) (voc : seq A) (P : problem R A) (c : R) (u : seq A -> seq A -> R).
Add Ring R_ring : (ring_of R).
Hypotheses (ok : proper voc P) (even : steady voc P) (c0 : 0 <= c) (best : best_stops voc P c u).
Local Notation p := (target P).
Local Notation q := (draft P).
Local Notation k := (drafts P).
Local Notation runs := (runs voc).
Local Notation S := (priced voc P c u).
Local Notation saving := (stopped_saving voc P c u).
Local Notation gain := (gain voc P c u).
Implicit Types (w x y : seq A) (z : A) (g : seq A -> R).

Lemma priced_proper : proper voc S.
Proof.
case: (ok) => P1 Q1 es el cw; split=> //= w.
rewrite addr_ge0 // mulr_ge0 //; apply: sum_ge0 => x; exact: go_ge0 (best_may_go best w) x.
Qed.

(* The renewal identity *)
Lemma gain_best w : ~~ ended P w -> gain w (u w) = cost P w.
Proof.
move=> go; rewrite /Definitions.gain.
have := @renewal _ _ _ _ priced_proper (fun v => stopped P (u v) v) w (erefl _) go.
by rewrite /= => ->; rewrite addrK.
Qed.

(* The recursion of the page *)
Lemma value_of_stops w g : ~~ ended P w -> may_go P w g -> stopped_value voc P c u w <=
  cost P w + sum voc (fun z => p w z * stopped_value voc P c u (rcons w z)) - (gain w g - saving w)
  ?= iff (gain w g == gain w (u w)).
Proof.
move=> go fg; have E : cost P w + sum voc (fun z => p w z * stopped_value voc P c u (rcons w z)) -
    (gain w g - saving w) = stopped_value voc P c u w + (gain w (u w) - gain w g).
  rewrite (gain_best go); have -> : saving w =
    stopped_value voc P c u w - sum voc (fun z => p w z * stopped_value voc P c u (rcons w z)) by [].
  by by_ring R.
rewrite E; split; first by rewrite ler_addl subr_ge0 (best_gain best).
by rewrite -subr_eq0 opprD addNKr oppr_eq0 subr_eq0 eq_sym.
Qed.

Lemma gain_cost w g : ~~ ended P w -> may_go P w g -> gain w g <= cost P w.
Proof. by move=> go fg; rewrite -(gain_best go); apply: (best_gain best). Qed.

Lemma saving_priced_ended w : ended P w -> saving w = 0.
Proof. by move=> e; apply: (saving_ended priced_proper). Qed.

Lemma saving_most w : ~~ ended P w -> saving w <= cost P w.
Proof.
move=> go; apply: le_trans (gain_cost go (none_may_go P w)).
rewrite /Definitions.gain sum0 mulr0 subr0.
have -> : sum (runs (k w)) (fun x => stopped P (fun=> 0) w x * saving (w ++ x)) = saving w; last exact: lexx.
case: (k w) => [|d]; rewrite ?sum_runs /= mul1r cats0 ?addr0 //.
rewrite -[RHS]addr0 -[in RHS](sum0 R voc); congr (_ + _); apply: eq_sum => z.
by rewrite -[RHS](sum0 R (runs d)); apply: eq_sum => x; rewrite (stopped_none ok) mul0r.
Qed.

(* D(w) >= (1 - R) c(w) + R c, R the probability of drafting at all, where D >= 0 after longer texts *)
Lemma saving_step w : ~~ ended P w -> (forall z x, 0 <= saving (w ++ z :: x)) ->
  cost P w - u w [::] * cost P w + c * u w [::] <= saving w.
Proof.
move=> go IH; have fu := best_may_go best w; have u0 := go_ge0 fu.
have := gain_best go; rewrite /Definitions.gain; case kw: (k w) => [|d].
  rewrite /= mul1r cats0 !addr0 => <-; rewrite (go_last fu) ?kw //.
  by rewrite mul0r mulr0 !subr0 addr0.
rewrite !sum_runs /= mul1r cats0 => E.
have {E} -> : saving w = cost P w + c * u w [::] - sum voc (fun z =>
    sum (runs d) (fun x => stopped P (u w) w (z :: x) * saving (w ++ z :: x)) -
    c * sum (runs d) (fun x => u w (z :: x))).
  by rewrite -E sumB sumM; by_ring R.
suff le : sum voc (fun z => sum (runs d) (fun x => stopped P (u w) w (z :: x) * saving (w ++ z :: x)) -
    c * sum (runs d) (fun x => u w (z :: x))) <= u w [::] * cost P w.
  by rewrite -addrA [- _ + _]addrC addrA ler_add2l ler_opp2.
apply: le_trans (ler_wpmul2l (u0 [::]) (cost_falls even go)).
rewrite -sumM; apply: le_sum => z; case: ifP => [wz|/negbT wz].
  rewrite !mulr0 subr_le0 (@eq_sum _ _ _ _ (fun=> 0)) ?sum0 ?mulr_ge0 // => [|x].
    by apply: sum_ge0 => x; apply: u0.
  by rewrite saving_priced_ended ?mulr0 // -cat_rcons; apply: (ended_cat ok).
have le := drafts_fall_by_one even wz; rewrite kw /= in le.
have fr : may_go P (rcons w z) (rest_of_call P w z (u w)) by apply: (rest_may_go ok fu); rewrite kw.
have a0 := share_ge0_of ok z fu.
rewrite mulrCA mulrA; apply: le_trans (ler_wpmul2l a0 (gain_cost wz fr)).
rewrite /Definitions.gain mulrBr; apply: ler_sub.
  rewrite -sumM; apply: (@le_trans _ _ (sum (runs d) (fun x => q w z * u w [::] *
      (stopped P (rest_of_call P w z (u w)) (rcons w z) x * saving (rcons w z ++ x))))).
    by apply: le_sum => x; rewrite mulrA cat_rcons ler_wpmul2r ?IH // (stopped_shift ok).
  apply: runs_more => // x; rewrite !mulr_ge0 ?cat_rcons ?IH //; last by rewrite (stopped_ge0 ok) //; apply: go_ge0 fr.
  by have [] := draft_pmf ok w.
have short x : (d < size x)%N -> rest_of_call P w z (u w) x = 0.
  by move=> dx; rewrite /rest_of_call [u w (z :: x)](go_last fu) ?mul0r //= kw ltnS ltnW.
rewrite -(sum_runs_short voc le short) mulrCA ler_wpmul2l // -sumM le_eqVlt; apply/orP; left; apply/eqP.
by apply: eq_sum => x; rewrite -(rest_scaled z fu).
Qed.

(* (iv) min(c, c(w)) <= D(w) <= c(w) *)
Theorem stopped_saving_between w : ~~ ended P w -> Num.min c (cost P w) <= saving w <= cost P w.
Proof.
move=> go; rewrite saving_most // andbT.
have [n] := ubnP (longest P - size w)%N; elim: n w go => // n IH w go wn.
have {}IH z x : 0 <= saving (w ++ z :: x).
  case e2 : (ended P (w ++ z :: x)); first by rewrite saving_priced_ended.
  have lt : (size (w ++ z :: x) < longest P)%N by rewrite ltnNge; apply: contraFN e2; apply: (ended_at_last ok).
  apply: le_trans (IH (w ++ z :: x) (negbT e2) _); first by rewrite le_minr c0 (cost_ge0 ok).
  rewrite ltnS in wn; apply: leq_trans wn.
  have le : (size w < size (w ++ z :: x))%N by rewrite size_cat /= addnS ltnS leq_addr.
  by rewrite ltn_sub2l // (ltn_trans le lt).
apply: le_trans (saving_step go IH).
have u0 := go_ge0 (best_may_go best w) [::]; have u1 := go_start (best_may_go best w).
set r := u w [::] in u0 u1 *; set m := Num.min _ _.
have mc : m <= c by rewrite le_minl lexx.
have mw : m <= cost P w by rewrite le_minl lexx orbT.
apply: (@le_gap _ ((1 - r) * (cost P w - m) + r * (c - m))); first by by_ring R.
by rewrite addr_ge0 // mulr_ge0 ?subr_ge0.
Qed.

Lemma stopped_saving_ge0 w : 0 <= saving w.
Proof.
case e: (ended P w); first by rewrite saving_priced_ended.
have /andP[le _] := stopped_saving_between (negbT e); apply: le_trans le.
by rewrite le_minr c0 (cost_ge0 ok).
Qed.

(* Policies *)
Hypothesis all_tokens : vocabulary voc.
Variable C : calls A.

Section OneCall.
Variables (w : seq A) (law : result C -> R).
Hypothesis stopping : lossless_stopping P w law.

Lemma stopping_fresh_call : fresh_call P w law.
Proof.
case: stopping => ge0 few _ fresh; split=> // o /few [le le2]; split=> //.
exact: leq_trans le2 le.
Qed.

Lemma begun_le x : goes_on law x <= begun law x.
Proof.
apply: le_sum => o; case: (prefix x _) => //=; case: ifP => // _; exact: stopping_ge0 stopping o.
Qed.

Lemma goes_on_may_go : may_go P w (goes_on law).
Proof.
have law0 := stopping_ge0 stopping; split=> [x||x z|x kx].
- by apply: sum_ge0 => o; case: ifP.
- apply: le_trans (begun_le _) _; rewrite -[X in _ <= X](stopping_fresh stopping [::]).
  by apply: le_sum => o; rewrite prefix0s /= mulr1.
- by rewrite -(stopping_draft stopping); apply: begun_le.
- rewrite -[RHS](sum0 R (results C)); apply: eq_sum => o; case: ifP => // /andP[_ lt].
  apply/eqP; apply: contraT => /(stopping_size stopping) [few _].
  by move: (leq_trans lt (leq_trans few kx)); rewrite ltnn.
Qed.

(* (i) *)
Theorem survives_stopped x : survives law x <= stopped P (goes_on law) w x.
Proof.
have fresh := stopping_fresh_call.
elim/last_ind: x => [|x z IH]; first by rewrite (survives_start fresh).
rewrite stopped_rcons le_minr; apply/andP; split.
  apply: (@le_trans _ _ (p (w ++ x) z * survives law x)).
    by rewrite -subr_ge0 -(stops_where fresh) (stops_ge0 fresh).
  by rewrite ler_wpmul2l //; have [] := target_pmf ok (w ++ x).
rewrite -(stopping_draft stopping); apply: le_sum => o.
case: (prefix _ _); rewrite ?andbF ?andbT //=.
by case: ifP => // _; apply: stopping_ge0 stopping o.
Qed.

(* The drafted tokens *)
Lemma count_prefixes d (y : seq A) (b : R) : (size y <= d)%N ->
  sum (runs d) (fun x => if prefix x y && (size x < size y)%N then b else 0) = b * (size y)%:R.
Proof.
case: all_tokens => un all; elim: d y => [|d IH] [|t y] // sy.
- by rewrite /= mulr0 addr0.
- rewrite mulr0 -[RHS](sum0 R (runs d.+1)); apply: eq_sum => x; by rewrite andbF.
rewrite sum_runs prefix0s /= -[(size y).+1]add1n natrD mulrDr mulr1; congr (_ + _).
rewrite -(IH y sy) -[RHS](sum_at (fun=> sum (runs d) (fun x => if prefix x y && (size x < size y)%N then b else 0)) un
  (all t)).
apply: eq_sum => z; case: eqP => _ /=; first exact: eq_sum.
exact: sum0.
Qed.

Lemma drafted_tokens : sum (results C) (fun o => law o * (size (chain o))%:R) = sum (runs (k w)) (goes_on law).
Proof.
rewrite /goes_on -exchange; apply: eq_sum => o.
have [->|/(stopping_size stopping) [few _]] := eqVneq (law o) 0.
  by rewrite mul0r -[LHS](sum0 R (runs (k w))); apply: eq_sum => x; rewrite if_same.
by rewrite count_prefixes.
Qed.

(* (ii) A call costs V(w) or more, with V afterwards. *)
Theorem call_price : ~~ ended P w -> stopped_value voc P c u w <=
  cost P w + c * sum (results C) (fun o => law o * (size (chain o))%:R) +
  sum (results C) (fun o => law o * stopped_value voc P c u (w ++ output o)).
Proof.
move=> go; have fresh : fresh_call S w law by case: stopping_fresh_call.
have := after_call all_tokens fresh (stopped_value voc P c u).
rewrite (one_callE voc S _ w (survives_start fresh)) => E.
have -> : sum (results C) (fun o => law o * stopped_value voc P c u (w ++ output o)) = stopped_value voc P c u w -
    sum (runs (k w)) (fun x => survives law x * saving (w ++ x)).
  by apply: (@addrI _ (cost S w)); rewrite E addrA.
have le := gain_cost go goes_on_may_go; rewrite drafted_tokens.
have le2 : sum (runs (k w)) (fun x => survives law x * saving (w ++ x)) <=
    sum (runs (k w)) (fun x => stopped P (goes_on law) w x * saving (w ++ x)).
  by apply: le_sum => x; rewrite ler_wpmul2r ?stopped_saving_ge0 ?survives_stopped.
rewrite addrCA ler_addl subr_ge0; apply: le_trans le2 _.
by rewrite -ler_subl_addr.
Qed.
End OneCall.

(* (v) *)
Variable pi : policy R C.
Hypothesis lossless_pi : lossless_stopping_policy P pi.

Lemma price_from n h : (longest P - size (so_far h) <= n)%N -> stopped_value voc P c u (so_far h) <=
  over_calls P n pi (fun h => cost P (so_far h) + c * sum (results C) (fun o => pi h o * (size (chain o))%:R)) h.
Proof.
elim: n h => [|n IH] h fuel.
  rewrite /stopped_value value_ended //=; apply: (ended_at_last ok).
  by rewrite -subn_eq0 -leqn0.
rewrite /=; case: ifP => [e|/negbT go]; first by rewrite /stopped_value value_ended.
apply: le_trans (call_price (lossless_pi go) go) _; rewrite ler_add2l; apply: le_sum => o.
rewrite ler_wpmul2l ?(stopping_ge0 (lossless_pi go)) // -so_far_rcons; apply: IH.
rewrite so_far_rcons size_cat size_rcons; move: fuel.
by rewrite !leq_subLR => /leq_trans -> //; rewrite -addnA leq_add2l addSn ltnS leq_addl.
Qed.

Theorem stopped_is_least : stopped_value voc P c u [::] <= expected_price P c pi.
Proof. by apply: (price_from (h := [::])); rewrite leq_subr. Qed.
End Best.
