(* Coq's tactic `ring` for an ordered field R of MathComp: in a section with the line `Add Ring R_ring : (ring_of R).`,
   `by_ring R` proves an equation, and `by_gap R c` proves a <= b from b - a = c and 0 <= c. *)
From mathcomp Require Import all_ssreflect all_algebra.
Require Export Ring.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import GRing.Theory Num.Theory Order.TTheory.
Local Open Scope ring_scope.

Section RingOf.
Variable R : realFieldType.
Definition radd (a b : R) : R := a + b.
Definition rmul (a b : R) : R := a * b.
Definition ropp (a : R) : R := - a.
Definition rsub (a b : R) : R := a - b.
Definition rzero : R := 0.
Definition rone : R := 1.

Lemma ring_of : ring_theory rzero rone radd rmul rsub ropp eq.
Proof.
split=> *; rewrite /radd /rmul /rsub /ropp ?add0r ?mul1r ?subrr //;
  [exact: addrC | exact: addrA | exact: mulrC | exact: mulrA | exact: mulrDl].
Qed.

Lemma le_gap (c a b : R) : b - a = c -> 0 <= c -> a <= b.
Proof. by move=> E c0; rewrite -subr_ge0 E. Qed.
End RingOf.

Ltac by_ring R := intros; rewrite ?(mulr1n, mulr0n);
  match goal with |- @eq _ ?a ?b => change (@eq (Num.RealField.sort R) a b) end;
  repeat match goal with
  | |- context [@GRing.add ?V ?a ?b] => change (@GRing.add V a b) with (@radd R a b)
  | |- context [@GRing.mul ?V ?a ?b] => change (@GRing.mul V a b) with (@rmul R a b)
  | |- context [@GRing.opp ?V ?a] => change (@GRing.opp V a) with (@ropp R a)
  | |- context [GRing.zero ?V] => change (GRing.zero V) with (rzero R)
  | |- context [GRing.one ?V] => change (GRing.one V) with (rone R)
  end; ring.

Ltac by_gap R c := apply: (@le_gap R c); first by_ring R.
