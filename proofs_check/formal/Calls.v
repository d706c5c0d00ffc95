(* B7, step (i): where a lossless fresh call stops, and that no mass is above block verification's. The path theorem:
   survival given the text. *)
From mathcomp Require Import all_ssreflect all_algebra.
From Spectheory Require Import Definitions Algebra Sums Values.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import GRing.Theory Num.Theory Order.TTheory.
Local Open Scope ring_scope.

Section Models.
Variables (R : realFieldType) (A : eqType) (m : model R A).

Lemma prob_cat w x y : prob m w (x ++ y) = prob m w x * prob m (w ++ x) y.
Proof. by elim: x w => [|z x IH] w /=; rewrite ?cats0 ?mul1r // IH cat_rcons mulrA. Qed.

Lemma prob_rcons w x z : prob m w (rcons x z) = prob m w x * m (w ++ x) z.
Proof. by rewrite -cats1 prob_cat /= mulr1. Qed.
End Models.

Section Calls.
Variables (R : realFieldType) (A : eqType) (voc : seq A) (P : problem R A).
Add Ring R_ring : (ring_of R).
Hypotheses (all_tokens : vocabulary voc) (ok : proper voc P).
Local Notation p := (target P).
Local Notation q := (draft P).
Local Notation k := (drafts P).
Local Notation runs := (runs voc).
Local Notation begins := (begins P).
Implicit Types (w x v u : seq A) (z : A).

(* Texts that begin with a run *)

Lemma begins_nil w v : begins w [::] v = prob p w v.
Proof. by elim: v w => //= z v IH w; rewrite IH. Qed.

Lemma begins_short w u v : (size v <= size u)%N -> begins w u v = (take (size v) u == v)%:R.
Proof.
elim: v u w => [|z v IH] [|t u] w //= le; rewrite ?take0 // eqseq_cons IH //.
by case: (t =P z).
Qed.

Lemma begins_cat w u x y : (size u <= size x)%N -> begins w u (x ++ y) = begins w u x * prob p (w ++ x) y.
Proof.
elim: x u w => [|z x IH] [|t u] w //= le; rewrite ?cats0 ?mul1r ?begins_nil //.
  by rewrite prob_cat cat_rcons mulrA.
by case: eqP => _; rewrite ?mul0r // IH ?cat_rcons.
Qed.

Variable C : calls A.
Implicit Types (o : result C).

Lemma output_size o : (accepted o <= size (chain o))%N -> size (output o) = (accepted o).+1.
Proof. by move=> le; rewrite size_rcons size_takel. Qed.

Lemma output_take o n : (n <= accepted o)%N -> (accepted o <= size (chain o))%N ->
  take n (output o) = take n (chain o).
Proof.
move=> no le; rewrite /output -cats1 take_cat size_takel //; case: ltnP => [_|on]; first by rewrite take_take.
have -> : n = accepted o by apply/eqP; rewrite eqn_leq no.
by rewrite subnn cats0 //= take0 cats0.
Qed.

(* The law of a call after w, which accepts some of its drafts, at most k. *)
Section Support.
Variables (w : seq A) (law : result C -> R).
Hypothesis supported : forall o, law o != 0 -> (accepted o <= size (chain o))%N /\ (accepted o <= k w)%N.
Local Notation survives := (survives law).

(* P(tau = |x|, the drafts begin with x, the token added is z) *)
Definition stops x z : R :=
  sum (results C) (fun o => if [&& accepted o == size x, take (size x) (chain o) == x & added o == z] then law o else
    0).


Lemma survives_deep x : (k w < size x)%N -> survives x = 0.
Proof.
move=> deep; rewrite -[RHS](sum0 R (results C)); apply: eq_sum => o; case: ifP => // /andP[le _].
apply/eqP; apply: contraT => /supported [_ few].
by move: (leq_trans le few); rewrite leqNgt deep.
Qed.

Lemma stops_deep x z : (k w < size x)%N -> stops x z = 0.
Proof.
move=> deep; rewrite -[RHS](sum0 R (results C)); apply: eq_sum => o; case: ifP => // /andP[/eqP eq _].
apply/eqP; apply: contraT => /supported [_].
by rewrite eq leqNgt deep.
Qed.

(* The text begins with xz: by a call that accepts x, or else with p(z|wx) times what begins with x. *)
Lemma begins_step x z :
  sum (results C) (fun o => law o * begins w (output o) (rcons x z)) =
  p (w ++ x) z * sum (results C) (fun o => law o * begins w (output o) x) +
  (stops x z + survives (rcons x z) - p (w ++ x) z * survives x).
Proof.
rewrite /stops /Definitions.survives -!sumM -sumD -sumB -sumD; apply: eq_sum => o; rewrite !prefixE size_rcons.
have [->|/supported [few _]] := eqVneq (law o) 0; first by rewrite !if_same; by_ring R.
have := output_size few => so.
case: (ltngtP (accepted o) (size x)) => [lt|gt|eq] /=.
- by rewrite -cats1 begins_cat ?so //= mulr1; by_ring R.
- have le := ltnW gt; rewrite !begins_short ?so ?size_rcons ?ltnS //; last by rewrite ltnW.
  rewrite !output_take //.
  by case: eqP => _; case: eqP => _; rewrite /=; by_ring R.
- have few_x : (size x <= size (chain o))%N by rewrite -eq.
  have -> : begins w (output o) x = (take (size x) (chain o) == x)%:R.
    by rewrite begins_short ?so ?eq // output_take ?eq.
  have -> : begins w (output o) (rcons x z) = ((take (size x) (chain o) == x) && (added o == z))%:R.
    rewrite begins_short ?so ?size_rcons ?eq // take_oversize ?so ?eq //.
    by rewrite /output eqseq_rcons eq.
  by case: eqP => _; case: eqP => _; rewrite /=; by_ring R.
Qed.

Lemma survives_split x : vocabulary voc ->
  survives x = sum voc (fun z => stops x z) + sum voc (fun z => survives (rcons x z)).
Proof.
move=> [un all]; rewrite /stops /Definitions.survives.
rewrite -[X in _ = X + _]exchange -[X in _ = _ + X]exchange -sumD; apply: eq_sum => o; rewrite prefixE.
under [X in _ = _ + X]eq_sum do rewrite prefixE size_rcons.
have [->|/supported [few _]] := eqVneq (law o) 0.
  by rewrite if_same; under eq_sum do rewrite if_same; under [X in _ = _ + X]eq_sum do rewrite if_same; rewrite !sum0
    addr0.
case: (ltngtP (accepted o) (size x)) => [lt|gt|eq] /=; rewrite ?sum0 ?addr0 ?add0r //.
  have long : (size x < size (chain o))%N by apply: leq_trans few.
  have z0 : A by move: long; case: (chain o) => [|z0 _] //.
  rewrite (take_nth z0 long); case: (take _ _ =P x) => [->|ne].
    rewrite -[LHS](sum_at (fun=> law o) un (all (nth z0 (chain o) (size x)))); apply: eq_sum => z.
    by rewrite eqseq_rcons eqxx eq_sym.
  by rewrite -[LHS](sum0 R voc); apply: eq_sum => z; rewrite eqseq_rcons; case: eqP.
case: (_ == x); rewrite /= ?sum0 //.
by rewrite -[LHS](sum_at (fun=> law o) un (all (added o))); apply: eq_sum => z; rewrite eq_sym.
Qed.
End Support.

(* What is needed of a call beside the law of its drafts *)
Record fresh_call (w : seq A) (law : result C -> R) : Prop := FreshCall {
  call_ge0 : forall o, 0 <= law o;
  call_few : forall o, law o != 0 -> (accepted o <= size (chain o))%N /\ (accepted o <= k w)%N;
  call_fresh : forall v, sum (results C) (fun o => law o * begins w (output o) v) = prob p w v }.

Section Fresh.
Variables (w : seq A) (law : result C -> R).
Hypothesis fresh : fresh_call w law.
Local Notation survives := (survives law).
Local Notation stops := (stops law).
Let supported := call_few fresh.

Lemma stops_ge0 x z : 0 <= stops x z.
Proof. by apply: sum_ge0 => o; case: ifP => // _; apply: (call_ge0 fresh). Qed.

Lemma survives_ge0 x : 0 <= survives x.
Proof. by apply: sum_ge0 => o; case: ifP => // _; apply: (call_ge0 fresh). Qed.

Lemma survives_start : survives [::] = 1.
Proof.
rewrite -[RHS](call_fresh fresh [::]); apply: eq_sum => o.
by rewrite prefix0s mulr1.
Qed.

Theorem stops_where x z : stops x z = p (w ++ x) z * survives x - survives (rcons x z).
Proof.
have := begins_step supported x z; rewrite !(call_fresh fresh) prob_rcons mulrC.
move/eqP; rewrite addrC -subr_eq subrr eq_sym => /eqP E.
by rewrite -[LHS]subr0 -[X in _ - X]E; by_ring R.
Qed.

Theorem stops_stop x z : stops x z = stop P survives w x z.
Proof.
rewrite stops_where /stop; case: ltnP => // deep.
by rewrite [survives (rcons _ _)](survives_deep supported) // size_rcons ltnS.
Qed.

(* What comes after the call *)
Theorem after_call (f : seq A -> R) :
  cost P w + sum (results C) (fun o => law o * f (w ++ output o)) = one_call voc P survives f w.
Proof.
congr (_ + _); transitivity (sum (runs (k w)) (fun x => sum voc (fun z => stops x z * f (w ++ rcons x z)))); last first.
  by apply: eq_sum => x; apply: eq_sum => z; rewrite stops_stop.
rewrite (@eq_sum _ _ _ _ (fun x => sum (results C) (fun o => sum voc (fun z =>
  if [&& accepted o == size x, take (size x) (chain o) == x & added o == z] then law o * f (w ++ rcons x z) else
    0)))); last first.
  move=> x; rewrite -exchange; apply: eq_sum => z; rewrite -sumMr; apply: eq_sum => o.
  by case: ifP; rewrite ?mul0r.
rewrite -exchange; apply: eq_sum => o.
have [->|/supported [few few_k]] := eqVneq (law o) 0.
  rewrite mul0r -[LHS](sum0 R (runs (k w))); apply: eq_sum => x; rewrite -[LHS](sum0 R voc).
  by apply: eq_sum => z; rewrite mul0r if_same.
case: (all_tokens) => un all.
have short : (size (take (accepted o) (chain o)) <= k w)%N by rewrite size_takel.
rewrite -[LHS](sum_runs_at all_tokens (fun x => law o * f (w ++ rcons x (added o))) short); apply: eq_sum => x.
have -> : (x == take (accepted o) (chain o)) = (accepted o == size x) && (take (size x) (chain o) == x).
  apply/eqP/andP => [->|[/eqP-> /eqP]] //; by rewrite size_takel.
case: (_ == size x); rewrite /= ?sum0 //; case: (_ == x); rewrite /= ?sum0 //.
rewrite -[LHS](sum_at (fun z => law o * f (w ++ rcons x z)) un (all (added o))); apply: eq_sum => z.
by rewrite eq_sym.
Qed.

(* Path theorem: P(tau >= |x|, the text after w begins with xr). Given that it does, the chance is survives x / P(x),
   whatever r. *)
Theorem path_survival x r :
  sum (results C) (fun o => if (size x <= accepted o)%N then law o * begins w (output o) (x ++ r) else 0) =
  survives x * prob p (w ++ x) r.
Proof.
have E := call_fresh fresh (x ++ r); have F := call_fresh fresh x.
rewrite prob_cat -{}F in E.
have {}E : sum (results C) (fun o => law o * begins w (output o) (x ++ r) -
   law o * begins w (output o) x * prob p (w ++ x) r) = 0 by rewrite sumB sumMr E subrr.
rewrite -[LHS]subr0 -[X in _ - X]E -sumB -sumMr; apply: eq_sum => o; rewrite prefixE.
have [->|/supported [few _]] := eqVneq (law o) 0.
  by rewrite !mul0r subrr subr0 !if_same mul0r.
case: leqP => lt /=; last by rewrite begins_cat ?output_size //; by_ring R.
rewrite [begins _ _ x]begins_short ?output_size ?(leq_trans lt) // output_take //.
by case: eqP => _ /=; by_ring R.
Qed.
End Fresh.

Lemma lossless_fresh (w : seq A) (law : result C -> R) : lossless P w law -> fresh_call w law.
Proof. by case=> ge0 few _ fresh; split=> // o /few [-> le]. Qed.

Section Law.
Variables (w : seq A) (law : result C -> R).
Hypothesis lossless_law : lossless P w law.
Local Notation survives := (survives law).
Let fresh := lossless_fresh lossless_law.
Let supported := call_few fresh.

(* The drafts begin with x. *)
Lemma drafts_begin x : (size x <= k w)%N ->
  sum (results C) (fun o => if take (size x) (chain o) == x then law o else 0) = prob q w x.
Proof.
have [n] := ubnP (k w - size x)%N; elim: n x => // n IH x; rewrite ltnS => xn.
rewrite leq_eqVlt => /orP[/eqP full|lt].
  rewrite -(law_draft lossless_law full); apply: eq_sum => o.
  have [->|/(law_size lossless_law) [size_k _]] := eqVneq (law o) 0; first by rewrite !if_same.
  by rewrite take_oversize // full size_k.
have [_ all1] := draft_pmf ok (w ++ x).
rewrite -[RHS]mulr1 -all1 -sumM.
rewrite (@eq_sum _ _ _ _ (fun z => sum (results C) (fun o => if take (size x).+1 (chain o) == rcons x z then law o
  else 0))).
  rewrite -exchange; apply: eq_sum => o.
  have [->|/(law_size lossless_law) [size_k _]] := eqVneq (law o) 0.
    by rewrite if_same -[LHS](sum0 R voc); apply: eq_sum => z; rewrite if_same.
  have z0 : A by case: (chain o) size_k lt => [<-|z0 _] //.
  have long : (size x < size (chain o))%N by rewrite size_k.
  case: all_tokens => un all.
  rewrite (take_nth z0 long); case: (take _ _ =P x) => [->|ne].
    rewrite -[LHS](sum_at (fun=> law o) un (all (nth z0 (chain o) (size x)))); apply: eq_sum => z.
    by rewrite eqseq_rcons eqxx eq_sym.
  by rewrite -[LHS](sum0 R voc); apply: eq_sum => z; rewrite eqseq_rcons; case: eqP.
move=> z; rewrite -prob_rcons -IH ?size_rcons //.
by apply: leq_trans xn; rewrite ltn_sub2l.
Qed.

Lemma survives_drafted x : (size x <= k w)%N -> survives x <= prob q w x.
Proof.
move=> le; rewrite -drafts_begin //; apply: le_sum => o; rewrite prefixE; case: (_ == x); rewrite ?andbF // andbT.
by case: ifP => // _; apply: (law_ge0 lossless_law).
Qed.

(* (i) No lossless fresh call has more mass than block verification. *)
Theorem survives_block x : survives x <= block P w x.
Proof.
elim/last_ind: x => [|x z IH]; first by rewrite (survives_start fresh).
case: (ltnP (size x) (k w)) => lt; last first.
  by rewrite (survives_deep supported) ?size_rcons ?ltnS //; apply: (block_from_ge0 ok); rewrite ler01.
rewrite block_rcons le_minr survives_drafted ?size_rcons // andbT.
have p0 : 0 <= p (w ++ x) z by have [] := target_pmf ok (w ++ x).
apply: (@le_trans _ _ (p (w ++ x) z * survives x)); last by rewrite ler_wpmul2l.
by rewrite -subr_ge0 -(stops_where fresh) (stops_ge0 fresh).
Qed.
End Law.
End Calls.
