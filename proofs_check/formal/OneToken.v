(* A1: token verification of one draft is lossless, accepts sum min(p, q), and no lossless rule accepts more. *)
From mathcomp Require Import all_ssreflect all_algebra.
From Spectheory Require Import Definitions Algebra Sums.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import GRing.Theory Num.Theory Order.TTheory.
Local Open Scope ring_scope.

Section OneToken.
Variables (R : realFieldType) (A : eqType) (voc : seq A) (p q : A -> R).
Add Ring R_ring : (ring_of R).
Hypotheses (all_tokens : vocabulary voc) (p_pmf : pmf voc p) (q_pmf : pmf voc q).

Lemma draft_accepted x : q x * accept p q x = Num.min (p x) (q x).
Proof.
have [[p0 _] [q0 _]] := (p_pmf, q_pmf); rewrite /accept; case: eqP => [->|/eqP ne].
  by rewrite mul0r; apply/esym/min_idPr.
by rewrite minr_pmulr ?q0 // mulr1 mulrC divfK // minC.
Qed.

Lemma draft_refused x : q x * (1 - accept p q x) = q x - Num.min (p x) (q x).
Proof. by rewrite mulrBr mulr1 draft_accepted. Qed.

Lemma residualE z : residual p q z = p z - Num.min (p z) (q z).
Proof.
rewrite /residual; case: (lerP (p z) (q z)) => le; first by rewrite max_r ?subr_le0 // subrr.
by rewrite max_l // subr_ge0 ltW.
Qed.

Lemma residual_sum : sum voc (residual p q) = sum voc (fun x => q x * (1 - accept p q x)).
Proof.
under eq_sum do rewrite residualE; under [RHS]eq_sum do rewrite draft_refused.
by rewrite !sumB p_pmf.2 q_pmf.2.
Qed.

Lemma residual_ge0 z : 0 <= residual p q z.
Proof. by rewrite /residual le_maxr lexx orbT. Qed.

(* The output has the target's law. *)
Theorem token_lossless z : sum voc (fun x => token_call voc p q x z true + token_call voc p q x z false) = p z.
Proof.
case: all_tokens => un all; rewrite /token_call sumD sumMr (sum_at _ un (all z)) -residual_sum draft_accepted.
have [E|ne] := eqVneq (sum voc (residual p q)) 0.
  have := eq0_term residual_ge0 E (all z).
  by rewrite residualE E mul0r addr0 => /eqP; rewrite subr_eq0 => /eqP <-.
by rewrite /recovered mulrC divfK // residualE addrC subrK.
Qed.

Theorem token_acceptance : token_accepts voc p q = overlap voc p q.
Proof. by apply: eq_sum => x; rewrite /token_call eqxx draft_accepted. Qed.

Theorem no_rule_accepts_more law :
  lossless_once voc p q law -> sum voc (fun x => law x x true) <= overlap voc p q.
Proof.
case: all_tokens => _ all [pos margin_q margin_p _]; apply: le_sum => x; rewrite le_minr -margin_p -margin_q.
have both z y : 0 <= law z y true + law z y false by rewrite addr_ge0.
have at_x : law x x true <= law x x true + law x x false by rewrite ler_addl.
apply/andP; split; apply: (le_trans at_x).
  exact: (le_term (f := fun y => law y x true + law y x false)).
exact: (le_term (f := fun z => law x z true + law x z false)).
Qed.

(* Token verification is such a rule, so that the bound is attained. *)
Theorem token_is_lossless : lossless_once voc p q (token_call voc p q).
Proof.
have [[p0 p1] [q0 q1]] := (p_pmf, q_pmf); case: all_tokens => un all.
have some : 0 <= sum voc (residual p q) by apply: sum_ge0 => ?; apply: residual_ge0.
split=> [x z [] | x | z | x z /negbTE ne] /=.
- by case: eqP => // _; rewrite draft_accepted le_minr p0 q0.
- by rewrite draft_refused mulr_ge0 ?subr_ge0 ?le_minl ?lexx ?orbT // divr_ge0 ?residual_ge0.
- rewrite sumD sumM (_ : sum voc (recovered voc p q) = sum voc (residual p q) / sum voc (residual p q)); last first.
    exact: (sumMr voc _ (residual p q)).
  have -> : sum voc (fun z => if x == z then q x * accept p q x else 0) = q x * accept p q x.
    by rewrite -[RHS](sum_at (fun=> q x * accept p q x) un (all x)); apply: eq_sum => z; rewrite eq_sym.
  have [E|ne] := eqVneq (sum voc (residual p q)) 0; last by rewrite divff // mulr1; by_ring R.
  have refused0 : q x * (1 - accept p q x) = 0.
    apply: (eq0_term (f := fun x => q x * (1 - accept p q x)) _ _ (all x)); last by rewrite -residual_sum.
    by move=> y; rewrite draft_refused subr_ge0 le_minl lexx orbT.
  by rewrite -[RHS]subr0 -[in RHS]refused0 E mul0r mulr0; by_ring R.
- exact: token_lossless.
- by rewrite ne.
Qed.
End OneToken.
