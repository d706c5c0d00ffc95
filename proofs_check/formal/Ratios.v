(* The survival of token and block verification along a text, in the ratios rho = q/p of its tokens. *)
From mathcomp Require Import all_ssreflect all_algebra.
From Spectheory Require Import Definitions Algebra Sums Values Calls.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import GRing.Theory Num.Theory Order.TTheory.
Local Open Scope ring_scope.

Section Ratios.
Variables (R : realFieldType) (A : eqType) (voc : seq A) (P : problem R A).
Add Ring R_ring : (ring_of R).
Hypothesis ok : proper voc P.
Local Notation p := (target P).
Local Notation q := (draft P).

Let p0 w z : 0 <= p w z. Proof. by have [] := target_pmf ok w. Qed.
Let q0 w z : 0 <= q w z. Proof. by have [] := draft_pmf ok w. Qed.

Lemma prob_ne0 w z x : prob p w (z :: x) != 0 -> p w z != 0 /\ prob p (rcons w z) x != 0.
Proof. by rewrite /= mulf_eq0 negb_or => /andP. Qed.

Theorem token_ratios w x : prob p w x != 0 -> token P w x / prob p w x = product_of_ratios P w x.
Proof.
elim: x w => [|z x IH] w; first by rewrite divr1.
move=> /prob_ne0 [pz px]; rewrite /= -IH // invfM mulrACA; congr (_ * _).
have pos : 0 < p w z by rewrite lt_neqAle eq_sym pz p0.
by rewrite minr_pmull ?invr_ge0 // divff.
Qed.

(* From a run of probability g with mass g a and draft probability g r *)
Lemma block_running (g a r : R) w x : 0 <= g -> prob p w x != 0 ->
  block_from P (g * a) (g * r) w x = g * prob p w x * running_least P a r w x.
Proof.
elim: x g a r w => [|z x IH] g a r w g0; first by rewrite /= mulr1.
move=> /prob_ne0 [pz px] /=.
have -> : g * r * q w z = g * p w z * (r * ratio P w z).
  by rewrite -{1}[q w z](divfK pz) -/(ratio P w z); by_ring R.
have -> : p w z * (g * a) = g * p w z * a by by_ring R.
by rewrite -minr_pmulr ?mulr_ge0 // IH ?mulr_ge0 // mulrA.
Qed.

Theorem block_ratios w x : prob p w x != 0 -> block P w x / prob p w x = running_least P 1 1 w x.
Proof.
move=> px; have := @block_running 1 1 1 w x ler01 px; rewrite !mul1r /block => ->.
by rewrite mulrC mulKf.
Qed.
End Ratios.
