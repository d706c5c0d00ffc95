(* B7, steps (ii) to (iv): the cost of a call, the renewal identity, the shift, 0 <= D <= 1. *)
From mathcomp Require Import all_ssreflect all_algebra.
From Spectheory Require Import Definitions Algebra Sums.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import GRing.Theory Num.Theory Order.TTheory.
Local Open Scope ring_scope.

Section Values.
Variables (R : realFieldType) (A : eqType) (voc : seq A) (P : problem R A).
Add Ring R_ring : (ring_of R).
Hypotheses (ok : proper voc P) (even : steady voc P).
Local Notation p := (target P).
Local Notation q := (draft P).
Local Notation k := (drafts P).
Local Notation runs := (runs voc).
Local Notation value := (value voc P).
Local Notation saving := (saving voc P).
Implicit Types (w x : seq A) (z : A) (s : masses R A).

Lemma ended_cat w x : ended P w -> ended P (w ++ x).
Proof.
elim: x w => [|z x IH] w; rewrite ?cats0 // -cat_rcons => e.
by apply: IH; apply: (ended_stays ok).
Qed.

Lemma value_ended s w : ended P w -> value s w = 0.
Proof. by rewrite /Definitions.value; case: (longest P - size w)%N => //= n ->. Qed.

(* More fuel than tokens that may come changes nothing. *)
Lemma value_fuel s n m w : (longest P - size w <= n)%N -> (longest P - size w <= m)%N ->
  value_in voc P n s w = value_in voc P m s w.
Proof.
have out n' w' : (longest P - size w' <= 0)%N -> value_in voc P n' s w' = 0.
  rewrite leqn0 subn_eq0 => le; have e := ended_at_last ok le.
  by case: n' => //= n'; rewrite e.
elim: n m w => [|n IH] m w wn wm; first by rewrite !(out _ _ wn).
case: m wm => [|m] wm; first by rewrite !(out _ _ wm).
rewrite /=; case: ifP => // _; rewrite /one_call; congr (_ + _); apply: eq_sum => x; apply: eq_sum => z; congr (_ * _).
have le l : (longest P - size w <= l.+1)%N -> (longest P - size (w ++ rcons x z) <= l)%N.
  by rewrite !leq_subLR size_cat size_rcons => /leq_trans -> //; rewrite -addnA leq_add2l addSn ltnS leq_addl.
by apply: IH; apply: le.
Qed.

Lemma valueE s w : value s w = if ended P w then 0 else one_call voc P (s w) (value s) w.
Proof.
rewrite {1}/Definitions.value -(@value_fuel s _.+1 _ _ (leqnSn _) (leqnn _)) /=; case: ifP => // /negbT go.
have pos : (0 < longest P - size w)%N by rewrite subn_gt0 ltnNge; apply: contra go; apply: (ended_at_last ok).
rewrite /one_call; congr (_ + _); apply: eq_sum => x; apply: eq_sum => z; congr (_ * _); apply: value_fuel => //.
by rewrite leq_sub2l // size_cat leq_addr.
Qed.

Lemma saving_ended s w : ended P w -> saving s w = 0.
Proof.
move=> e; rewrite /Definitions.saving value_ended // sub0r -sumN -[RHS](sum0 R voc); apply: eq_sum => z.
by rewrite value_ended ?mulr0 ?oppr0 //; apply: (ended_stays ok).
Qed.

(* (ii) *)
Lemma one_callE (t f : seq A -> R) w : t [::] = 1 ->
  one_call voc P t f w =
    cost P w + f w - sum (runs (k w)) (fun x => t x * (f (w ++ x) - sum voc (fun z => p (w ++ x) z * f (rcons (w ++
      x) z)))).
Proof.
move=> t1; rewrite /one_call.
have -> : sum (runs (k w)) (fun x => sum voc (fun z => stop P t w x z * f (w ++ rcons x z))) =
  sum (runs (k w)) (fun x => t x * sum voc (fun z => p (w ++ x) z * f (rcons (w ++ x) z))) -
  sum (runs (k w)) (fun x => if (size x < k w)%N then sum voc (fun z => t (rcons x z) * f (w ++ rcons x z)) else 0).
  rewrite -sumB; apply: eq_sum => x.
  rewrite -sumM [X in _ - X](_ : _ = sum voc (fun z => (if (size x < k w)%N then t (rcons x z) else 0) * f (w ++
    rcons x z))).
    by rewrite -sumB; apply: eq_sum => z; rewrite /stop rcons_cat; by_ring R.
  by case: ifP => // _; rewrite -[LHS](sum0 R voc); apply: eq_sum => z; rewrite mul0r.
rewrite (sum_longer voc (k w) (fun x => t x * f (w ++ x))) t1 cats0 mul1r.
under [in RHS]eq_sum do rewrite mulrBr.
by rewrite sumB; by_ring R.
Qed.

Lemma call_then_value (t : seq A -> R) s w : t [::] = 1 ->
  one_call voc P t (value s) w = cost P w + value s w - sum (runs (k w)) (fun x => t x * saving s (w ++ x)).
Proof. by move=> t1; rewrite one_callE. Qed.

Theorem renewal s w : s w [::] = 1 -> ~~ ended P w ->
  sum (runs (k w)) (fun x => s w x * saving s (w ++ x)) = cost P w.
Proof.
move=> s1 /negbTE go; have := @call_then_value (s w) s w s1; rewrite -[LHS]/(one_call voc P (s w) (value s) w).
have := valueE s w; rewrite go => <- E; apply/eqP; rewrite -subr_eq0; apply/eqP.
have {}E := congr1 (fun v => value s w - v) E; move: E; rewrite subrr => ->.
by_ring R.
Qed.

(* What a call with other masses loses *)
Theorem call_loss (t : seq A -> R) s w : t [::] = 1 -> s w [::] = 1 -> ~~ ended P w ->
  one_call voc P t (value s) w = value s w + sum (runs (k w)) (fun x => (s w x - t x) * saving s (w ++ x)).
Proof.
move=> t1 s1 go; rewrite call_then_value // -(renewal s1 go) -[RHS]addrC.
under [X in _ = X + _]eq_sum do rewrite mulrBl.
by rewrite sumB; by_ring R.
Qed.

(* Masses that a free token does not raise: s(w, zx) <= c(z) s(wz, x) *)
Record shifts s (c : seq A -> A -> R) : Prop := Shifts {
  shift_start : forall w, s w [::] = 1;
  shift_ge0 : forall w x, 0 <= s w x;
  share_ge0 : forall w z, 0 <= c w z;
  shift_le : forall w z x, s w (z :: x) <= c w z * s (rcons w z) x;
  share_cost : forall w, ~~ ended P w ->
    sum voc (fun z => c w z * (if ended P (rcons w z) then 0 else cost P (rcons w z))) <= cost P w }.

(* (iv) *)
Theorem saving_between s c w : shifts s c -> 0 <= saving s w <= cost P w.
Proof.
case=> s1 s0 c0 sh shc; have [n] := ubnP (longest P - size w)%N.
elim: n w => // n IH w wn; case e: (ended P w); first by rewrite saving_ended // lexx (cost_ge0 ok).
have {}IH x : x != [::] -> 0 <= saving s (w ++ x).
  case: x => // z x _; case e2 : (ended P (w ++ z :: x)); first by rewrite saving_ended.
  have lt : (size (w ++ z :: x) < longest P)%N by rewrite ltnNge; apply: contraFN e2; apply: (ended_at_last ok).
  have [] // := andP (IH (w ++ z :: x) _); rewrite ltnS in wn; apply: leq_trans wn.
  have le : (size w < size (w ++ z :: x))%N by rewrite size_cat /= addnS ltnS leq_addr.
  by rewrite ltn_sub2l // (ltn_trans le lt).
have := renewal (s1 w) (negbT e); case kw: (k w) => [|d]; rewrite ?sum_runs /= s1 mul1r cats0 => E.
  by move: E; rewrite addr0 => ->; rewrite (cost_ge0 ok) lexx.
have tail0 : 0 <= sum voc (fun z => sum (runs d) (fun x => s w (z :: x) * saving s (w ++ z :: x))).
  by apply: sum_ge0 => z; apply: sum_ge0 => x; rewrite mulr_ge0 ?IH.
have {}E : saving s w = cost P w - sum voc (fun z => sum (runs d) (fun x => s w (z :: x) * saving s (w ++ z :: x))).
  by rewrite -E addrK.
rewrite E subr_ge0 ler_subl_addr ler_addl tail0 andbT; apply: le_trans (shc w (negbT e)).
apply: le_sum => z; case: ifP => [wz|/negbT wz].
  rewrite mulr0 -[X in _ <= X](sum0 R (runs d)); apply: le_sum => x.
  by rewrite saving_ended ?mulr0 // -cat_rcons; apply: ended_cat.
rewrite -(renewal (s1 _) wz) -sumM.
apply: (@le_trans _ _ (sum (runs d) (fun x => c w z * (s (rcons w z) x * saving s (rcons w z ++ x))))).
  by apply: le_sum => x; rewrite mulrA cat_rcons ler_wpmul2r ?IH.
apply: runs_more => [x|]; first by rewrite mulr_ge0 // mulr_ge0 // cat_rcons IH.
by move: (drafts_fall_by_one even wz); rewrite kw.
Qed.

(* Block verification's masses *)
Local Notation block := (block P).
Local Notation block_from := (block_from P).

Let p0 w z : 0 <= p w z. Proof. by have [] := target_pmf ok w. Qed.
Let q0 w z : 0 <= q w z. Proof. by have [] := draft_pmf ok w. Qed.

Lemma block_from_le m n d w x : m <= n -> block_from m d w x <= block_from n d w x.
Proof.
elim: x m n d w => //= z x IH m n d w mn; apply: IH.
by rewrite le_minr !le_minl lexx orbT andbT ler_wpmul2l.
Qed.

Lemma block_from_scaled c m d w x : 0 <= c -> block_from (c * m) (c * d) w x = c * block_from m d w x.
Proof.
move=> c0; elim: x m d w => //= z x IH m d w.
by rewrite -IH -mulrA minr_pmulr // mulrCA.
Qed.

Lemma block_from_ge0 m d w x : 0 <= m -> 0 <= d -> 0 <= block_from m d w x.
Proof.
elim: x m d w => //= z x IH m d w m0 d0; apply: IH; last by rewrite mulr_ge0.
by rewrite le_minr !mulr_ge0.
Qed.

(* (iii) *)
Theorem block_shift w z x : block w (z :: x) <= q w z * block (rcons w z) x.
Proof.
rewrite /Definitions.block /= mul1r -[X in _ <= X]block_from_scaled // !mulr1.
by apply: block_from_le; rewrite le_minl lexx orbT.
Qed.

Theorem block_shifts : shifts block q.
Proof.
split=> // [w x|w z x|w]; [exact: block_from_ge0 ler01 ler01 | exact: block_shift | exact: cost_falls even w].
Qed.

(* The recursion of the page: mu(xz) = min(p(z|wx) mu(x), Q(xz|w)) *)
Lemma block_from_rcons m d w x z : block_from m d w (rcons x z) =
  Num.min (p (w ++ x) z * block_from m d w x) (d * prob q w (rcons x z)).
Proof.
elim: x m d w => [|t x IH] m d w /=; first by rewrite cats0 mulr1.
by rewrite IH cat_rcons mulrA.
Qed.

Theorem block_rcons w x z :
  block w (rcons x z) = Num.min (p (w ++ x) z * block w x) (prob q w (rcons x z)).
Proof. by rewrite /Definitions.block block_from_rcons mul1r. Qed.
End Values.
