(* The definitions at small models, in fractions: the numbers of docs/block_optimality.md and docs/theory.md. *)
From mathcomp Require Import all_ssreflect all_algebra.
From Coq Require Import ZArith QArith Qcanon.
From Spectheory Require Import Definitions Fractions Sums OneToken MeanAcceptance Values Calls Optimality Algorithms.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import GRing.Theory Num.Theory Order.TTheory.
Delimit Scope nat_scope with N.
Local Open Scope ring_scope.

Definition bits : seq bool := [:: false; true].

(* Texts of n tokens, k drafts a call, cost 1 *)
Definition texts (A : eqType) (p q : model frac_realFieldType A) (k : seq A -> nat) (n : nat) : problem
  frac_realFieldType A :=
  Problem p q k (fun=> 1) (fun w => n <= size w)%N n.

(* p = (1/3, 2/3), q = (2/3, 1/3), two drafts a call, texts of four tokens *)
Definition third (_ : seq bool) (z : bool) : Qc := if z then frac 2 3 else frac 1 3.
Definition two_thirds (_ : seq bool) (z : bool) : Qc := if z then frac 1 3 else frac 2 3.
Definition toy := texts third two_thirds (fun=> 2%N) 4.

Lemma block_calls : value bits toy (block toy) [::] = frac 20 9. Proof. by apply/eqP; vm_compute. Qed.
Lemma token_calls : value bits toy (token toy) [::] = frac 62 27. Proof. by apply/eqP; vm_compute. Qed.
Lemma free_tokens : map (saving bits toy (block toy)) [:: [::]; [:: false]; [:: false; true]] =
  [:: frac 2 3; frac 2 9; frac 1 3].
Proof. by apply/eqP; vm_compute. Qed.

(* Accepted drafts of one call: the sum of its masses but that of no draft *)
Definition mean_accepted (s : masses frac_realFieldType _) : Qc := sum (runs bits 2) (s [::]) - 1.
Lemma block_accepted : mean_accepted (block toy) = frac 11 9. Proof. by apply/eqP; vm_compute. Qed.
Lemma token_accepted : mean_accepted (token toy) = frac 10 9. Proof. by apply/eqP; vm_compute. Qed.

(* The algorithm of block verification, run as a policy on texts of two tokens *)
Definition short_toy := texts third two_thirds (fun=> 2%N) 2.
Lemma block_run : expected_cost short_toy (@block_policy _ _ bits short_toy 2) = value bits short_toy (block
  short_toy) [::].
Proof. by apply/eqP; vm_compute. Qed.

Lemma short_calls : value bits short_toy (block short_toy) [::] = frac 4 3. Proof. by apply/eqP; vm_compute. Qed.
