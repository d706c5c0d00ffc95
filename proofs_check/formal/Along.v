(* The recursion of calls along a text: the mean over the target's texts is V. *)
From mathcomp Require Import all_ssreflect all_algebra.
From Spectheory Require Import Definitions Algebra Sums Values Calls.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import GRing.Theory Num.Theory Order.TTheory.
Local Open Scope ring_scope.

Section Along.
Variables (R : realFieldType) (A : eqType) (voc : seq A) (P : problem R A).
Add Ring R_ring : (ring_of R).
Hypothesis ok : proper voc P.
Local Notation p := (target P).
Local Notation k := (drafts P).
Local Notation chains := (chains voc).
Variables (s : masses R A) (most : nat).
Hypotheses (s1 : forall w, s w [::] = 1) (s0 : forall w x, 0 <= s w x) (s_text : forall w x, s w x <= prob p w x)
  (k_most : forall w, (k w <= most)%N).

Lemma sum_chains_split i d (g : seq A -> R) :
  sum (chains (i + d.+1)) g =
  sum (chains i) (fun x => sum voc (fun z => sum (chains d) (fun u => g (x ++ z :: u)))).
Proof.
elim: i g => [|i IH] g; first by rewrite sum_chains /= addr0.
by rewrite addSn !sum_chains; apply: eq_sum => t; rewrite IH.
Qed.

Lemma sum_runs_by_size d (g : seq A -> R) :
  sum (runs voc d) g = sum (iota 0 d.+1) (fun i => sum (chains i) g).
Proof.
elim: d g => [|d IH] g; first by rewrite /= !addr0.
rewrite sum_runs [sum (iota 0 d.+2) _]/(_ + sum (iota 1 d.+1) _) (iotaDl 1 0) sum_map /= addr0; congr (_ + _).
under eq_sum do rewrite IH.
by rewrite exchange; apply: eq_sum => i; rewrite /= -sum_chains.
Qed.

Lemma sum_chains_one d w : sum (chains d) (prob p w) = 1.
Proof.
elim: d w => [|d IH] w; first by rewrite /= addr0.
have [_ one] := target_pmf ok w; rewrite sum_chains -[RHS]one; apply: eq_sum => z.
by rewrite /= sumM IH mulr1.
Qed.

Lemma kept_mass w x : prob p w x * (s w x / prob p w x) = s w x.
Proof.
have [E|ne] := eqVneq (prob p w x) 0; last by rewrite mulrC divfK.
by rewrite E mul0r; apply/eqP; rewrite eq_le s0 -E s_text.
Qed.

Lemma stop_along w x z u : prob p w (x ++ z :: u) *
    (kept P s w (x ++ z :: u) (size x) - (if (size x < k w)%N then kept P s w (x ++ z :: u) (size x).+1 else 0)) =
  stop P (s w) w x z * prob p (w ++ rcons x z) u.
Proof.
have take_x : take (size x) (x ++ z :: u) = x by rewrite take_size_cat.
have take_xz : take (size x).+1 (x ++ z :: u) = rcons x z by rewrite -cat_rcons take_size_cat ?size_rcons.
rewrite /kept /stop take_x take_xz -cat_rcons.
rewrite prob_cat mulrAC; congr (_ * _); rewrite mulrBr; congr (_ - _); last by case: ifP; rewrite ?mulr0 ?kept_mass.
by rewrite prob_rcons mulrAC kept_mass mulrC.
Qed.

Lemma along_inS n w v : along_in P n.+1 s w v = if ended P w then 0 else cost P w + sum (iota 0 (k w).+1) (fun i =>
  (kept P s w v i - (if (i < k w)%N then kept P s w v i.+1 else 0)) * along_in P n s (w ++ take i.+1 v) (drop i.+1 v)).
Proof. by []. Qed.

Lemma along_from n w m : (longest P - size w <= n)%N -> ended P w || (longest P - size w + most < m)%N ->
  value voc P s w = sum (chains m) (fun v => prob p w v * along_in P n s w v).
Proof.
elim: n w m => [|n IH] w m fuel long.
  rewrite value_ended; last by apply: (ended_at_last ok); rewrite -subn_eq0 -leqn0.
  by rewrite -[LHS](sum0 R (chains m)); apply: eq_sum => v; rewrite mulr0.
rewrite (valueE ok); under [RHS]eq_sum do rewrite along_inS; move: long; case e: (ended P w) => long.
  by rewrite -[LHS](sum0 R (chains m)); apply: eq_sum => v; rewrite mulr0.
rewrite orFb in long; under [RHS]eq_sum do rewrite mulrDr -sumM.
rewrite sumD sumMr sum_chains_one mul1r exchange /one_call sum_runs_by_size; congr (_ + _).
apply: eq_sum_in => i; rewrite mem_iota add0n ltnS => /= ik.
have im : (i < m)%N by apply: leq_ltn_trans (leq_trans ik (k_most w)) (leq_ltn_trans (leq_addl _ _) long).
rewrite -[m in RHS](subnKC im) addSnnS sum_chains_split; apply: eq_sum_in => x xi; apply: eq_sum => z.
have sx : size x = i.
  by elim: i x xi {ik im} => [|i IHi] x /=; [rewrite inE => /eqP-> | case/allpairsP => -[a y] /= [_ /IHi <- ->]].
rewrite (IH _ (m - i.+1)%N).
- rewrite -sumM; apply: eq_sum => u; rewrite -sx mulrA -stop_along -mulrA; congr (_ * _).
  by rewrite -cat_rcons take_size_cat ?drop_size_cat ?size_rcons.
- by move: fuel; rewrite !leq_subLR size_cat size_rcons => /leq_trans -> //; rewrite -addnA leq_add2l addSn ltnS
  leq_addl.
case: (leqP (longest P) (size (w ++ rcons x z))) => le; first by rewrite (ended_at_last ok).
apply/orP; right; rewrite size_cat size_rcons sx in le *.
rewrite ltn_subRL addnA; apply: leq_ltn_trans long; rewrite leq_add2r.
by rewrite subnDA subnKC // ltnW // ltn_subRL.
Qed.

Theorem along_texts w : value voc P s w =
  sum (chains (longest P + most).+1) (fun v => prob p w v * along P s w v).
Proof. by apply: along_from => //; rewrite ltnS leq_add2r leq_subr orbT. Qed.
End Along.

(* Masses that (i) allows are at most the target's. *)
Section Allowed.
Variables (R : realFieldType) (A : eqType) (voc : seq A) (P : problem R A).
Hypothesis ok : proper voc P.
Local Notation p := (target P).

Lemma grows_text (s : masses R A) w x : s w [::] = 1 -> (forall x z, s w (rcons x z) <= p (w ++ x) z * s w x) ->
  s w x <= prob p w x.
Proof.
move=> s1 grows; elim/last_ind: x => [|x z IH]; first by rewrite s1.
rewrite prob_rcons mulrC; apply: le_trans (grows x z) _; rewrite ler_wpmul2l //.
by have [] := target_pmf ok (w ++ x).
Qed.
End Allowed.
