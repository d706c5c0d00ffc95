(* B7, step (v): block verification has the fewest expected calls of all policies; the regret; longer chains. *)
From mathcomp Require Import all_ssreflect all_algebra.
From Spectheory Require Import Definitions Algebra Sums Values Calls.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import GRing.Theory Num.Theory Order.TTheory.
Local Open Scope ring_scope.

Section Policies.
Variables (R : realFieldType) (A : eqType) (voc : seq A) (P : problem R A) (C : calls A).
Add Ring R_ring : (ring_of R).
Hypotheses (all_tokens : vocabulary voc) (ok : proper voc P) (even : steady voc P).
Implicit Types (h : history C) (o : result C).

Lemma so_far_rcons h o : so_far (rcons h o) = so_far h ++ output o.
Proof. by rewrite /so_far map_rcons flatten_rcons. Qed.

Variable pi : policy R C.
Hypothesis lossless_pi : lossless_policy P pi.

Theorem loss_ge0 h : ~~ ended P (so_far h) -> 0 <= loss voc P (pi h) (so_far h).
Proof.
move=> go; apply: sum_ge0 => x; apply: mulr_ge0.
  by rewrite subr_ge0 (survives_block all_tokens ok (lossless_pi go)).
by have /andP[] := saving_between ok even (so_far h ++ x) (block_shifts ok even).
Qed.

Lemma over_calls_ge0 n (g : history C -> R) h :
  (forall h, ~~ ended P (so_far h) -> 0 <= g h) -> 0 <= over_calls P n pi g h.
Proof.
move=> g0; elim: n h => //= n IH h; case: ifP => // /negbT go.
by rewrite addr_ge0 ?g0 //; apply: sum_ge0 => o; rewrite mulr_ge0 ?(law_ge0 (lossless_pi go)).
Qed.

Lemma regret_from n h : (longest P - size (so_far h) <= n)%N ->
  over_calls P n pi (fun h => cost P (so_far h)) h =
  value voc P (block P) (so_far h) + over_calls P n pi (fun h => loss voc P (pi h) (so_far h)) h.
Proof.
elim: n h => [|n IH] h fuel.
  by rewrite value_ended ?addr0 //; apply: (ended_at_last ok); rewrite -subn_eq0 -leqn0.
rewrite /=; case: ifP => [e|/negbT go]; first by rewrite value_ended ?addr0.
pose V o := value voc P (block P) (so_far h ++ output o).
pose rest o := over_calls P n pi (fun h => loss voc P (pi h) (so_far h)) (rcons h o).
rewrite (@eq_sum _ _ _ _ (fun o => pi h o * V o + pi h o * rest o)); last first.
  move=> o; rewrite IH ?so_far_rcons ?mulrDr // size_cat size_rcons.
  by move: fuel; rewrite !leq_subLR => /leq_trans -> //; rewrite -addnA leq_add2l addSn ltnS leq_addl.
rewrite sumD addrA (after_call all_tokens (lossless_fresh (lossless_pi go)) (value voc P (block P))).
by rewrite (call_loss ok (survives_start (lossless_fresh (lossless_pi go))) _ go) // addrA.
Qed.

(* B7/regret *)
Theorem regret : expected_cost P pi =
  value voc P (block P) [::] + expected P pi (fun h => loss voc P (pi h) (so_far h)).
Proof. by apply: regret_from; rewrite leq_subr. Qed.

(* B7 *)
Theorem block_is_optimal : value voc P (block P) [::] <= expected_cost P pi.
Proof. by rewrite regret ler_addl over_calls_ge0 //; apply: loss_ge0. Qed.
End Policies.

(* B7/longer: longer chains never need more calls, under block verification or another rule whose masses do not depend
   on the number of drafts. *)
Section Longer.
Variables (R : realFieldType) (A : eqType) (voc : seq A) (P : problem R A) (more : seq A -> nat).
Add Ring R_ring : (ring_of R).
Let L := Problem (target P) (draft P) more (cost P) (ended P) (longest P).
Hypotheses (ok : proper voc P) (ok_more : proper voc L) (even : steady voc L) (longer : forall w, (drafts P w <= more
  w)%N).
Variables (s : masses R A) (c : seq A -> A -> R).
Hypotheses (s_shifts : shifts voc L s c) (s_grows : forall w x z, s w (rcons x z) <= target P (w ++ x) z * s w x).

Theorem longer_chains w : value voc L s w <= value voc P s w.
Proof.
have s0 := shift_ge0 s_shifts.
have [n] := ubnP (longest P - size w)%N; elim: n w => // n IH w wn.
case e: (ended P w); first by rewrite !value_ended.
rewrite [X in _ <= X](valueE ok) e.
pose t x := if (size x <= drafts P w)%N then s w x else 0.
have t1 : t [::] = 1 by rewrite /t /= (shift_start s_shifts).
apply: (@le_trans _ _ (one_call voc L t (value voc L s) w)).
  rewrite (call_loss ok_more t1 (shift_start s_shifts w) (negbT e)) ler_addl; apply: sum_ge0 => x.
  apply: mulr_ge0; last by have /andP[] := saving_between ok_more even (w ++ x) s_shifts.
  by rewrite /t subr_ge0; case: ifP.
have far x : (drafts P w < size x)%N ->
    sum voc (fun z => stop L t w x z * value voc L s (w ++ rcons x z)) = 0.
  move=> deep; rewrite -[RHS](sum0 R voc); apply: eq_sum => z.
  have [no nor] : (size x <= drafts P w)%N = false /\ (size x < drafts P w)%N = false.
    by split; apply/negbTE; rewrite -ltnNge // ltnS ltnW.
  by rewrite /stop /t size_rcons no nor mulr0 if_same subrr mul0r.
rewrite /one_call ler_add2l -(sum_runs_short voc (longer w) far); apply: le_sum_runs => x short.
have lt z : (longest P - size (w ++ rcons x z) < n)%N.
  have lt : (size w < longest P)%N by rewrite ltnNge; apply: contraFN e; apply: (ended_at_last ok).
  rewrite ltnS in wn; apply: leq_trans wn; have le : (size w < size (w ++ rcons x z))%N.
    by rewrite size_cat size_rcons addnS ltnS leq_addr.
  by rewrite ltn_sub2l.
apply: le_sum => z.
have -> : stop L t w x z = stop P (s w) w x z.
  rewrite /stop /t short size_rcons /=; case: (ltnP (size x) (drafts P w)) => lt2; last by rewrite if_same.
  by rewrite (leq_trans lt2).
rewrite ler_wpmul2l ?IH // /stop subr_ge0; case: ifP => // _; rewrite mulr_ge0 //.
by have [] := target_pmf ok (w ++ x).
Qed.
End Longer.
