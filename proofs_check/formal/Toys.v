(* The definitions at small models, in fractions: the numbers of docs/block_optimality.md and docs/theory.md. *)
From mathcomp Require Import all_ssreflect all_algebra.
From Coq Require Import ZArith QArith Qcanon.
From Spectheory Require Import Definitions Fractions Sums OneToken MeanAcceptance Values Calls Optimality Algorithms
  Stops Trees.
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

(* B10 at p = (1/2, 1/2), q = (1, 0): texts of two tokens, one draft a call at a price of 1/10. Drafting half of the
   time is best. *)
Definition fair : bool -> Qc := fun=> frac 1 2.
Definition drafts_0 (_ : seq bool) (z : bool) : Qc := if z then 0 else 1.
Definition coin_toy := texts (fun=> fair) drafts_0 (fun=> 1%N) 2.
Definition at_first (r : Qc) (w x : seq bool) : Qc := if (w, x) is ([::], [::]) then r else 0.
Definition cost_at (r : Qc) : Qc := stopped_value bits coin_toy (frac 1 10) (at_first r) [::].

Lemma costs_of_stops : map cost_at [:: 0; frac 1 2; 1] = [:: frac 2 1; frac 31 20; frac 8 5].
Proof. by apply/eqP; vm_compute. Qed.

Lemma half_is_best : best_stops bits coin_toy (frac 1 10) (at_first (frac 1 2)).
Proof.
split=> [w|w g].
  by split=> [x||x z|x]; rewrite /at_first; case: w => [|a w] //; case: x => [|b x] //= *; rewrite ?mulr0 //;
    case: z; vm_compute.
move=> go [g0 _ gf gl]; have gz z : g [:: z] = 0 by apply: gl.
pose D := stopped_saving bits coin_toy (frac 1 10) (at_first (frac 1 2)).
have E h : gain bits coin_toy (frac 1 10) (at_first (frac 1 2)) w h = D w +
    (Num.min (frac 1 2) (h [::]) * D (rcons w false) + Num.min (frac 1 2) 0 * D (rcons w true)) -
    frac 1 10 * (h [::] + (h [:: false] + h [:: true])).
  by rewrite /gain /= /stopped /= !mul1r !mul0r !mulr1 !addr0 cats0 !cats1.
rewrite !E !gz -!addrA !ler_add2l {E}; case: w go g0 {gf gl gz} => [|a [|b w]] //= _ g0.
  have -> : D [:: false] = 1 by apply/eqP; vm_compute.
  have -> : Num.min (frac 1 2) 0 = 0 by apply/eqP; vm_compute.
  rewrite !mul0r !mulr1 !add0r !addr0 minxx.
  case: (leP (g [::]) (frac 1 2)) => [le|lt]; last by rewrite ler_add2l ler_opp2 ler_wpmul2l // ltW.
  have F x : x - frac 1 10 * x = frac 9 10 * x.
    by rewrite -[X in X - _]mul1r -mulrBl; congr (_ * _); apply/eqP; vm_compute.
  by rewrite !F ler_wpmul2l.
have F z : D [:: a; z] = 0 by case: a z => -[]; apply/eqP; vm_compute.
by rewrite !F !mulr0 !addr0 !add0r oppr_le0 mulr_ge0.
Qed.

(* S2 at pi = (1/3, 2/3): the greedy tree of two nodes is a chain. *)
Definition chain_of_two := [:: [:: true]; [:: true; true]].
Lemma tree_of_two : tree chain_of_two && (tree_tokens bits third chain_of_two == frac 19 9). Proof. by vm_compute. Qed.
Lemma tree_of_both : tree_tokens bits third [:: [:: true]; [:: false]] = frac 2 1. Proof. by apply/eqP; vm_compute. Qed.
Lemma two_are_greedy : greedy third chain_of_two.
Proof.
move=> v t v0 out up tT; have least : all (fun u => frac 4 9 <= weight third u) chain_of_two by vm_compute.
apply: le_trans (allP least _ tT); case/lastP: v v0 out up => // u r _ out.
rewrite /in_tree parent_rcons => uT.
have most : all (fun u => all (fun r => (rcons u r \in chain_of_two) || (weight third (rcons u r) <= frac 4 9)) bits)
  ([::] :: chain_of_two) by vm_compute.
have rb : r \in bits by case: (r).
by have := allP (allP most u uT) r rb; rewrite (negbTE out).
Qed.
