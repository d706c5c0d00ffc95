(* Fractions that compute: Coq's Qc (binary numerators and denominators, lowest terms) as an ordered field of MathComp,
   so that every definition and theorem of this folder can be evaluated at fractions by vm_compute. MathComp's own rat
   counts in unary. *)
From mathcomp Require Import all_ssreflect all_algebra.
From Coq Require Import ZArith QArith Qcanon.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import GRing.Theory Num.Theory Order.TTheory.

Definition eq_frac (x y : Qc) : bool := Qeq_bool x y.
Definition le_frac (x y : Qc) : bool := Qle_bool x y.
Definition lt_frac (x y : Qc) : bool := ~~ eq_frac y x && le_frac x y.
Definition norm_frac (x : Qc) : Qc := if le_frac (Q2Qc 0) x then x else Qcopp x.

Lemma eq_fracP : Equality.axiom eq_frac.
Proof.
move=> x y; apply: (iffP idP) => [/Qeq_bool_iff|->]; first exact: Qc_is_canon.
by apply/Qeq_bool_iff; apply: Qeq_refl.
Qed.
Canonical frac_eqType := EqType Qc (EqMixin eq_fracP).

Definition encode (x : Qc) : bool * nat * nat :=
  (Z.ltb (Qnum x) 0, Z.abs_nat (Qnum x), Pos.to_nat (Qden x)).
Definition decode (c : bool * nat * nat) : option Qc :=
  let: (b, n, m) := c in
  Some (Q2Qc (Qmake (if b then Z.opp (Z.of_nat n) else Z.of_nat n) (Pos.of_nat m))).
Lemma encodeK : pcancel encode decode.
Proof.
case=> -[n d] c; congr Some; apply: Qc_is_canon; apply: Qeq_trans (Qred_correct _) _.
rewrite [this _]/= Pos2Nat.id Zabs2Nat.id_abs /Qeq /=; case: (Z.ltb_spec n 0) => s.
  by rewrite Z.abs_neq ?Z.opp_involutive //; apply: Z.lt_le_incl.
by rewrite Z.abs_eq.
Qed.
Definition frac_choiceMixin := PcanChoiceMixin encodeK.
Canonical frac_choiceType := ChoiceType Qc frac_choiceMixin.

Lemma frac_addNx : left_inverse (Q2Qc 0) Qcopp Qcplus.
Proof. by move=> x; rewrite Qcplus_comm Qcplus_opp_r. Qed.
Definition frac_zmodMixin := ZmodMixin Qcplus_assoc Qcplus_comm Qcplus_0_l frac_addNx.
Canonical frac_zmodType := ZmodType Qc frac_zmodMixin.

Lemma frac_mulDx : left_distributive Qcmult Qcplus. Proof. by move=> x y z; apply: Qcmult_plus_distr_l. Qed.
Lemma frac_nonzero1 : Q2Qc 1 != Q2Qc 0. Proof. by []. Qed.
Definition frac_ringMixin := ComRingMixin Qcmult_assoc Qcmult_comm Qcmult_1_l frac_mulDx frac_nonzero1.
Canonical frac_ringType := Eval hnf in RingType Qc frac_ringMixin.
Canonical frac_comRingType := Eval hnf in ComRingType Qc Qcmult_comm.

Lemma frac_mulVx : GRing.Field.axiom Qcinv.
Proof. by move=> x /eqP ne; apply: Qcmult_inv_l. Qed.
Lemma frac_inv0 : Qcinv (Q2Qc 0) = Q2Qc 0. Proof. exact: Qc_is_canon. Qed.
Definition frac_unitMixin := FieldUnitMixin frac_mulVx frac_inv0.
Canonical frac_unitRingType := Eval hnf in UnitRingType Qc frac_unitMixin.
Canonical frac_comUnitRingType := Eval hnf in [comUnitRingType of Qc].
Lemma frac_field : GRing.Field.mixin_of frac_unitRingType. Proof. by []. Qed.
Canonical frac_idomainType := Eval hnf in IdomainType Qc (FieldIdomainMixin frac_field).
Canonical frac_fieldType := FieldType Qc frac_field.

Lemma le_fracP x y : reflect (Qcle x y) (le_frac x y).
Proof. by apply: (iffP idP); rewrite /le_frac => /Qle_bool_iff. Qed.

Local Open Scope ring_scope.
Local Notation "0q" := (0 : Qc).
Arguments le_frac (_ _)%R.
Arguments norm_frac _%R.
Lemma le0_add x y : le_frac 0q x -> le_frac 0q y -> le_frac 0q (x + y).
Proof. by move=> /le_fracP a /le_fracP b; apply/le_fracP; rewrite -[0q](Qcplus_0_l); apply: Qcplus_le_compat. Qed.
Lemma le0_mul x y : le_frac 0q x -> le_frac 0q y -> le_frac 0q (x * y).
Proof.
move=> /le_fracP a /le_fracP b; apply/le_fracP; rewrite -[0q](Qcmult_0_l y).
exact: Qcmult_le_compat_r.
Qed.
Lemma le0_anti x : le_frac 0q x -> le_frac x 0q -> x = 0.
Proof. by move=> /le_fracP a /le_fracP b; apply: Qcle_antisym. Qed.
Lemma sub_ge0 x y : le_frac 0q (y - x) = le_frac x y.
Proof.
by apply/le_fracP/le_fracP => a; [exact: (proj2 (Qcle_minus_iff _ _) a) | exact: (proj1 (Qcle_minus_iff _ _) a)].
Qed.
Lemma le0_total x : le_frac 0q x || le_frac x 0q.
Proof. by case: (Qclt_le_dec x 0q) => [/Qclt_le_weak|] /le_fracP ->; rewrite ?orbT. Qed.
Lemma frac_normN x : norm_frac (- x) = norm_frac x.
Proof.
have N y : le_frac 0q (- y) = le_frac y 0q by rewrite -[RHS]sub_ge0 add0r.
rewrite /norm_frac N; case: ifP => a; case: ifP => b //.
- by rewrite (le0_anti b) ?oppr0 // -N.
- exact: opprK.
- by have := le0_total x; rewrite a b.
Qed.
Lemma frac_ge0_norm x : le_frac 0q x -> norm_frac x = x.
Proof. by rewrite /norm_frac => ->. Qed.
Definition frac_leMixin : realLeMixin frac_idomainType :=
  RealLeMixin le0_add le0_mul le0_anti sub_ge0 le0_total frac_normN frac_ge0_norm (fun x y => erefl (lt_frac x y)).

Lemma le_total x y : le_frac x y || le_frac y x.
Proof. by have := le0_total (y - x)%R; rewrite sub_ge0 -[le_frac (y - x) 0]sub_ge0 sub0r opprB sub_ge0. Qed.
Canonical frac_porderType := POrderType ring_display Qc frac_leMixin.
Canonical frac_latticeType := LatticeType Qc frac_leMixin.
Canonical frac_distrLatticeType := DistrLatticeType Qc frac_leMixin.
Canonical frac_orderType := OrderType Qc frac_leMixin.
Canonical frac_numDomainType := NumDomainType Qc frac_leMixin.
Canonical frac_normedZmodType := NormedZmodType Qc Qc frac_leMixin.
Canonical frac_numFieldType := [numFieldType of Qc].
Canonical frac_realDomainType := [realDomainType of Qc].
Canonical frac_realFieldType := [realFieldType of Qc].

(* n/d *)
Definition frac (n : Z) (d : positive) : Qc := Q2Qc (Qmake n d).
