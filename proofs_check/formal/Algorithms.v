(* Token and block verification as algorithms: both are lossless and fresh, with the masses of the page; so the bound
   of B7 is attained. *)
From mathcomp Require Import all_ssreflect all_algebra.
From Spectheory Require Import Definitions Algebra Sums OneToken Values Calls Optimality.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import GRing.Theory Num.Theory Order.TTheory.
Local Open Scope ring_scope.

Section Chains.
Variables (R : realFieldType) (A : eqType) (voc : seq A).
Local Notation chains := (chains voc).

Lemma sum_pairs S T U (l : seq S) (m : seq T) (h : S -> T -> U) (f : U -> R) :
  sum [seq h a b | a <- l, b <- m] f = sum l (fun a => sum m (fun b => f (h a b))).
Proof. by elim: l => //= a l IH; rewrite sum_cat IH sum_map. Qed.

Lemma size_chain d y : y \in chains d -> size y = d.
Proof. by elim: d y => [|d IH] y /=; [rewrite inE => /eqP-> | case/allpairsP => -[z x] /= [_ /IH <- ->]]. Qed.

Lemma sum_runs_chains d e (g : seq A -> R) : (d <= e)%N -> (forall x, size x != d -> g x = 0) ->
  sum (runs voc e) g = sum (chains d) g.
Proof.
elim: d e g => [|d IH] [|e] g // de far; rewrite ?sum_runs ?sum_chains /= ?addr0 //.
  rewrite -[RHS]addr0; congr (_ + _); rewrite -[RHS](sum0 R voc); apply: eq_sum => z.
  by rewrite -[RHS](sum0 R (runs voc e)); apply: eq_sum => x; rewrite far.
by rewrite far // add0r; apply: eq_sum => z; apply: IH => // x dx; apply: far.
Qed.

Lemma sum_iota n m (f : nat -> R) : (n <= m)%N -> (forall i, (n < i)%N -> f i = 0) ->
  sum (iota 0 m.+1) f = sum (iota 0 n.+1) f.
Proof.
move=> le far; rewrite -(subnKC le) -addSn iotaD sum_cat add0n -[RHS]addr0; congr (_ + _).
rewrite -[RHS](sum0 R (iota n.+1 (m - n))); apply: eq_sum_in => i.
by rewrite mem_iota => /andP[/far].
Qed.

Hypothesis all_tokens : vocabulary voc.

(* Chains that begin with x *)
Lemma sum_chains_from d x (g : seq A -> R) : (size x <= d)%N ->
  sum (chains d) (fun y => if take (size x) y == x then g y else 0) = sum (chains (d - size x)) (fun u => g (x ++ u)).
Proof.
case: all_tokens => un all; elim: x d g => [|t x IH] d g le.
  by rewrite subn0; apply: eq_sum => y; rewrite take0.
case: d le => // d le; rewrite sum_chains -[RHS](IH d (fun y => g (t :: y))) //.
rewrite -[RHS](sum_at (fun z => sum (chains d) (fun y => if take (size x) y == x then g (z :: y) else 0)) un (all t)).
apply: eq_sum => z /=; case: (z =P t) => [->|ne]; first by apply: eq_sum => y; rewrite eqseq_cons eqxx.
by rewrite -[RHS](sum0 R (chains d)); apply: eq_sum => y; rewrite eqseq_cons; case: eqP.
Qed.
End Chains.

Section Algorithms.
Variables (R : realFieldType) (A : eqType) (voc : seq A) (P : problem R A).
Add Ring R_ring : (ring_of R).
Hypotheses (all_tokens : vocabulary voc) (ok : proper voc P).
Local Notation p := (target P).
Local Notation q := (draft P).
Local Notation k := (drafts P).
Local Notation chains := (chains voc).
Variable most : nat.
Hypothesis k_most : forall w, (k w <= most)%N.
Let C := plain_calls voc most.

Let p0 w z : 0 <= p w z. Proof. by have [] := target_pmf ok w. Qed.
Let q0 w z : 0 <= q w z. Proof. by have [] := draft_pmf ok w. Qed.

Lemma prob_ge0 (m : model R A) w x : (forall w z, 0 <= m w z) -> 0 <= prob m w x.
Proof. by move=> m0; elim: x w => [|z x IH] w /=; rewrite ?ler01 // mulr_ge0. Qed.

Lemma sum_results (f : result C -> R) : sum (results C) f =
  sum (runs voc most) (fun y => sum (iota 0 most.+1) (fun i => sum voc (fun z => f (y, i, z)))).
Proof. by rewrite sum_pairs sum_pairs. Qed.

Section Any.
Variables (w : seq A) (t : seq A -> nat -> R) (rec : seq A -> A -> R).
Local Notation law := (algorithm P t rec w : result C -> R).

Lemma algorithm_supported o : law o != 0 -> size (chain o) = k w /\ (accepted o <= k w)%N.
Proof. by case: o => -[y i] z /=; case: ifP => [/andP[/eqP-> ->]|]; rewrite ?eqxx. Qed.

Lemma algorithm_few o : law o != 0 -> (accepted o <= size (chain o))%N /\ (accepted o <= k w)%N.
Proof. by move/algorithm_supported => [-> ->]. Qed.

(* Sums over the results that may happen *)
Lemma sum_algorithm (g : result C -> R) : sum (results C) (fun o => law o * g o) =
  sum (chains (k w)) (fun y => sum (iota 0 (k w).+1) (fun i => sum voc (fun z => prob q w y * t y i * rec (take i y)
    z * g (y, i, z)))).
Proof.
rewrite sum_results (@sum_runs_chains _ _ voc _ _ _ (k_most w)); last first.
  move=> y /negbTE ne; rewrite -[RHS](sum0 R (iota 0 most.+1)); apply: eq_sum => i.
  by rewrite -[RHS](sum0 R voc); apply: eq_sum => z; rewrite /= ne mul0r.
apply: eq_sum_in => y /size_chain sy; rewrite (@sum_iota _ _ _ _ (k_most w)); last first.
  move=> i ki; rewrite -[RHS](sum0 R voc); apply: eq_sum => z.
  by rewrite /= [(i <= k w)%N]leqNgt ki andbF mul0r.
apply: eq_sum_in => i; rewrite mem_iota /= add0n ltnS => ik; apply: eq_sum => z.
by rewrite sy eqxx ik.
Qed.

Lemma algorithm_draft y : (forall y, size y = k w -> sum (iota 0 (k w).+1) (t y) = 1) ->
  (forall x, sum voc (rec x) = 1) -> size y = k w ->
  sum (results C) (fun o => if chain o == y then law o else 0) = prob q w y.
Proof.
move=> t1 rec_sum sy.
transitivity (sum (results C) (fun o => law o * (if chain o == y then 1 else 0))).
  by apply: eq_sum => o; case: ifP; rewrite ?mulr1 ?mulr0.
rewrite sum_algorithm; have := @sum_chains_from _ _ _ all_tokens (k w) y (prob q w) (eq_leq sy).
rewrite sy subnn [sum (chains 0) _]/= cats0 addr0 => <-; apply: eq_sum_in => u /size_chain su; rewrite -su take_size.
case: eqP => [E|_]; last by rewrite -[RHS](sum0 R (iota 0 (size u).+1)); apply: eq_sum => i;
  rewrite -[RHS](sum0 R voc); apply: eq_sum => z; rewrite mulr0.
rewrite su; transitivity (sum (iota 0 (k w).+1) (fun i => prob q w u * t u i)); last by rewrite sumM t1 // mulr1.
apply: eq_sum => i; transitivity (sum voc (fun z => prob q w u * t u i * rec (take i u) z)).
  by apply: eq_sum => z; rewrite mulr1.
by rewrite sumM rec_sum mulr1.
Qed.
End Any.
Arguments algorithm_supported {w t rec} [o] _.
Arguments algorithm_few {w t rec} [o] _.

(* An algorithm with masses s: it stops after the drafts x with probability s(x) - sum s(xz). *)
Section Realised.
Variables (w : seq A) (s : seq A -> R) (t : seq A -> nat -> R).
Hypotheses (s1 : s [::] = 1)
  (s_grows : forall x z, s (rcons x z) <= p (w ++ x) z * s x)
  (s0 : forall x, 0 <= s x)
  (t0 : forall y i, 0 <= t y i)
  (t1 : forall y, size y = k w -> sum (iota 0 (k w).+1) (t y) = 1)
  (t_stops : forall x, (size x <= k w)%N ->
     sum (chains (k w - size x)) (fun u => prob q w (x ++ u) * t (x ++ u) (size x)) = s x - deeper voc P s w x).
Local Notation deeper := (deeper voc P s w).
Local Notation rec := (recovers voc P s w).
Local Notation law := (algorithm P t rec w : result C -> R).

Lemma stop_ge0 x z : 0 <= stop P s w x z.
Proof. by rewrite /stop; case: ifP => _; rewrite ?subr0 ?subr_ge0 ?s_grows // mulr_ge0. Qed.

Lemma sum_stop x : sum voc (stop P s w x) = s x - deeper x.
Proof.
have [_ one] := target_pmf ok (w ++ x); rewrite /stop sumB sumMr one mul1r /Definitions.deeper.
by case: ifP => // _; rewrite sum0.
Qed.

Lemma rec_ge0 x z : 0 <= rec x z.
Proof.
rewrite /recovers; case: ifP => // _; rewrite divr_ge0 ?stop_ge0 // -sum_stop.
by apply: sum_ge0 => u; apply: stop_ge0.
Qed.

Lemma rec_sum x : sum voc (rec x) = 1.
Proof.
rewrite /recovers; case: eqP => [_|ne]; first by have [] := target_pmf ok (w ++ x).
by rewrite sumMr sum_stop divff // subr_eq0; apply/eqP.
Qed.

Lemma rec_stop x z : (s x - deeper x) * rec x z = stop P s w x z.
Proof.
rewrite /recovers; case: eqP => [E|ne]; last by rewrite mulrC divfK // subr_eq0; apply/eqP.
rewrite E subrr mul0r; apply/esym; apply: (eq0_term (l := voc)); [exact: stop_ge0 | | by case: all_tokens].
by rewrite sum_stop E subrr.
Qed.

Lemma algorithm_ge0 o : 0 <= law o.
Proof. by case: o => -[y i] z /=; case: ifP => // _; rewrite !mulr_ge0 ?rec_ge0 ?t0 // prob_ge0. Qed.

Lemma algorithm_stops x z : (size x <= k w)%N -> stops law x z = stop P s w x z.
Proof.
move=> xk; rewrite -rec_stop -(t_stops xk) 
  -(@sum_chains_from _ _ _ all_tokens _ _ (fun y => prob q w y * t y (size x)) xk) -sumMr.
transitivity (sum (results C) (fun o => law o *
   (if [&& accepted o == size x, take (size x) (chain o) == x & added o == z] then 1 else 0))).
  by apply: eq_sum => o; case: ifP; rewrite ?mulr1 ?mulr0.
rewrite sum_algorithm; apply: eq_sum => y.
rewrite -(sum_at (fun i => (if take (size x) y == x then prob q w y * t y i else 0) * rec x z) (iota_uniq 0 (k w).+1)
  _).
  apply: eq_sum => i; case: (i =P size x) => [->|ne] /=; last first.
    by rewrite -[RHS](sum0 R voc); apply: eq_sum => u; rewrite mulr0.
  case: (_ =P x) => [->|ne] /=; last by rewrite mul0r -[RHS](sum0 R voc); apply: eq_sum => u; rewrite mulr0.
  case: all_tokens => un all; rewrite -[RHS](sum_at (fun u => prob q w y * t y (size x) * rec x u) un (all z)).
  by apply: eq_sum => u; case: eqP; rewrite ?mulr1 ?mulr0.
by rewrite mem_iota add0n ltnS.
Qed.

Lemma algorithm_survives x : (size x <= k w)%N -> survives law x = s x.
Proof.
have [n] := ubnP (k w - size x)%N; elim: n x => // n IH x; rewrite ltnS => xn xk.
rewrite (survives_split algorithm_few _ all_tokens).
under eq_sum do rewrite algorithm_stops //.
rewrite sum_stop /Definitions.deeper; case: ltnP => deep; last first.
  rewrite subr0 -[RHS]addr0; congr (_ + _); rewrite -[RHS](sum0 R voc); apply: eq_sum => z.
  by rewrite (survives_deep algorithm_few) // size_rcons ltnS.
rewrite -sumN -[LHS]addrA -sumD -[RHS]addr0; congr (_ + _); rewrite -[RHS](sum0 R voc); apply: eq_sum => z.
by rewrite IH ?size_rcons ?addNr //; apply: leq_trans xn; rewrite ltn_sub2l.
Qed.

Theorem algorithm_lossless : lossless P w law.
Proof.
split; [exact: algorithm_ge0 | exact: algorithm_supported | move=> y sy | ].
  exact: algorithm_draft t1 rec_sum sy.
elim/last_ind => [|x z IH].
  under eq_sum do rewrite mulr1.
  rewrite -[RHS]s1 -(algorithm_survives (x := [::])) //; apply: eq_sum => o; by rewrite prefix0s.
rewrite (begins_step algorithm_few) IH prob_rcons mulrC -[RHS]addr0; congr (_ + _).
case: (leqP (size x) (k w)) => xk; last first.
  by rewrite (stops_deep algorithm_few) // [X in _ - _ * X](survives_deep algorithm_few) //
    (survives_deep algorithm_few) ?size_rcons ?ltnS 1?ltnW // mulr0 addr0 subr0.
rewrite algorithm_stops // [X in _ - _ * X]algorithm_survives // /stop; case: ltnP => deep.
  by rewrite algorithm_survives ?size_rcons //; by_ring R.
by rewrite [X in _ + X - _](survives_deep algorithm_few) ?size_rcons ?ltnS // subr0 addr0 subrr.
Qed.
End Realised.

(* Token verification *)
Lemma token_accepts_of_ge0 w y i : 0 <= token_accepts_of P w y i.
Proof.
have acc w' z : 0 <= accept (p w') (q w') z <= 1.
  by rewrite /accept; case: ifP => _; rewrite ?lexx ?ler01 // le_minr le_minl ler01 lexx divr_ge0.
elim: y i w => [|z y IH] [|i] w //=; rewrite ?ler01 ?lexx //; have /andP[a0 a1] := acc w z.
  by rewrite subr_ge0.
by rewrite mulr_ge0.
Qed.

Lemma token_accepts_of_total w y : sum (iota 0 (size y).+1) (token_accepts_of P w y) = 1.
Proof.
elim: y w => [|z y IH] w; first by rewrite /= addr0.
have -> : sum (iota 0 (size (z :: y)).+1) (token_accepts_of P w (z :: y)) =
  1 - accept (p w) (q w) z + sum (iota 1 (size y).+1) (token_accepts_of P w (z :: y)) by [].
rewrite (iotaDl 1 0) sum_map (@eq_sum _ _ _ _ (fun i => accept (p w) (q w) z * token_accepts_of P (rcons w z) y i)).
  by rewrite sumM IH mulr1 subrK.
by [].
Qed.

Lemma sum_chains_prob m d w : (forall v, sum voc (m v) = 1) -> sum (chains d) (prob (R := R) m w) = 1.
Proof.
move=> one; elim: d w => [|d IH] w; first by rewrite /= addr0.
by rewrite sum_chains -[RHS](one w); apply: eq_sum => z; rewrite /= sumM IH mulr1.
Qed.

Lemma token_stops w x d : sum (chains d) (fun u => prob q w (x ++ u) * token_accepts_of P w (x ++ u) (size x)) =
  token P w x - (if (0 < d)%N then sum voc (fun z => token P w (rcons x z)) else 0).
Proof.
have acc w' z : q w' z * accept (p w') (q w') z = Num.min (p w' z) (q w' z).
  by apply: (@draft_accepted _ _ voc); [exact: target_pmf ok w' | exact: draft_pmf ok w'].
elim: x w => [|z x IH] w.
  case: d => [|d] /=; first by rewrite !addr0 mulr1 subr0.
  rewrite -[sum _ _]/(sum (chains d.+1) (fun u => prob q w u * token_accepts_of P w u 0)) sum_chains.
  have [_ one] := draft_pmf ok w; rewrite -[X in _ = X - _]one -sumB; apply: eq_sum => z.
  rewrite /= mulr1 -acc (@eq_sum _ _ _ _ (fun u => q w z * (1 - accept (p w) (q w) z) * prob q (rcons w z) u)).
    rewrite sumM sum_chains_prob; first by by_ring R.
    by move=> v; have [] := draft_pmf ok v.
  by move=> u; by_ring R.
rewrite (@eq_sum _ _ _ _ (fun u => Num.min (p w z) (q w z) * (prob q (rcons w z) (x ++ u) *
  token_accepts_of P (rcons w z) (x ++ u) (size x)))); last by move=> u; rewrite /= -acc; by_ring R.
by rewrite sumM IH mulrBr /=; congr (_ - _); case: ifP => _; rewrite ?mulr0 // -sumM.
Qed.

Lemma token_ge0 w x : 0 <= token P w x.
Proof. by elim: x w => [|z x IH] w /=; rewrite ?ler01 // mulr_ge0 // le_minr p0 q0. Qed.

Lemma token_rcons w x z : token P w (rcons x z) = token P w x * Num.min (p (w ++ x) z) (q (w ++ x) z).
Proof.
elim: x w => [|t x IH] w /=; first by rewrite cats0 mulr1 mul1r.
by rewrite IH cat_rcons mulrA.
Qed.

Lemma token_grows w x z : token P w (rcons x z) <= p (w ++ x) z * token P w x.
Proof. by rewrite token_rcons mulrC ler_wpmul2r ?token_ge0 // le_minl lexx. Qed.

Lemma token_shifts : steady voc P -> shifts voc P (token P) (fun w z => Num.min (p w z) (q w z)).
Proof.
move=> even; split=> // [w x|w z|w go]; [exact: token_ge0 | by rewrite le_minr p0 q0 |].
apply: le_trans (cost_falls even go); apply: le_sum => z; rewrite ler_wpmul2r ?le_minl ?lexx ?orbT //.
by case: ifP => // _; apply: (cost_ge0 ok).
Qed.

Definition token_law w : result C -> R := algorithm P (token_accepts_of P w) (recovers voc P (token P w) w) w.

Let token_total w y : size y = k w -> sum (iota 0 (k w).+1) (token_accepts_of P w y) = 1.
Proof. by move=> <-; apply: token_accepts_of_total. Qed.

Let token_stops_at w x : (size x <= k w)%N ->
  sum (chains (k w - size x)) (fun u => prob q w (x ++ u) * token_accepts_of P w (x ++ u) (size x)) =
  token P w x - deeper voc P (token P w) w x.
Proof. by move=> xk; rewrite token_stops subn_gt0. Qed.

Theorem token_law_lossless w : lossless P w (token_law w).
Proof.
apply: algorithm_lossless => //; [exact: token_grows | exact: token_ge0 | exact: token_accepts_of_ge0
  | exact: token_total | exact: token_stops_at].
Qed.

Theorem token_law_survives w x : (size x <= k w)%N -> survives (token_law w) x = token P w x.
Proof. by apply: algorithm_survives; [exact: token_grows | exact: token_ge0 | exact: token_stops_at]. Qed.

(* Block verification, and with it any masses that (i) allows *)
Section Block.
Variables (w : seq A) (s : seq A -> R).
Hypotheses (s1 : s [::] = 1)
  (s_grows : forall x z, s (rcons x z) <= p (w ++ x) z * s x)
  (s0 : forall x, 0 <= s x)
  (s_drafted : forall x, s x <= prob q w x).
Local Notation deeper := (deeper voc P s w).
Local Notation stays := (stays voc P s w).
Local Notation none_deeper := (none_deeper voc P s w).

Lemma deeper_le x : deeper x <= s x.
Proof. by rewrite -subr_ge0 -sum_stop; apply: sum_ge0 => z; apply: stop_ge0. Qed.

Lemma stays_mass x : stays x * (prob q w x - deeper x) = s x - deeper x.
Proof.
rewrite /Definitions.stays; case: x => [|z x]; first by rewrite mul1r s1.
have [E|ne] := eqVneq (prob q w (z :: x) - deeper (z :: x)) 0; last by rewrite divfK.
rewrite E mulr0; apply/eqP; rewrite eq_le subr_ge0 deeper_le /= -E.
by rewrite ler_sub.
Qed.

Lemma stays_between x : 0 <= stays x <= 1.
Proof.
have few : 0 <= s x - deeper x <= prob q w x - deeper x by rewrite subr_ge0 deeper_le ler_sub.
rewrite /Definitions.stays; case: x few => [|z x] /andP[a b]; first by rewrite ler01 lexx.
have [E|ne] := eqVneq (prob q w (z :: x) - deeper (z :: x)) 0; first by rewrite E invr0 mulr0 lexx ler01.
have pos : 0 < prob q w (z :: x) - deeper (z :: x) by rewrite lt_neqAle eq_sym ne (le_trans a).
by rewrite ler_pdivr_mulr // mul1r b andbT divr_ge0 // ltW.
Qed.

Lemma none_deeper_ge0 x y : 0 <= none_deeper x y.
Proof.
elim: y x => [|z y IH] x /=; rewrite ?ler01 // mulr_ge0 // subr_ge0.
by have /andP[] := stays_between (rcons x z).
Qed.

Lemma stays_total x y : sum (iota 0 (size y).+1) (fun i => stays (x ++ take i y) * none_deeper (x ++ take i y) (drop
  i y)) =
  1 - (1 - stays x) * none_deeper x y.
Proof.
elim: y x => [|z y IH] x; first by rewrite /= cats0 addr0; by_ring R.
have -> : sum (iota 0 (size (z :: y)).+1) (fun i => stays (x ++ take i (z :: y)) * none_deeper (x ++ take i (z :: y))
  (drop i (z :: y))) =
  stays (x ++ [::]) * none_deeper (x ++ [::]) (z :: y) + sum (iota 1 (size y).+1) (fun i => stays (x ++ take i (z ::
    y)) *
    none_deeper (x ++ take i (z :: y)) (drop i (z :: y))) by [].
rewrite (iotaDl 1 0) sum_map cats0.
rewrite (@eq_sum _ _ _ _ (fun i => stays (rcons x z ++ take i y) * none_deeper (rcons x z ++ take i y) (drop i y))).
  by rewrite IH /=; by_ring R.
by move=> i; rewrite /= cat_rcons.
Qed.

Lemma none_deeper_mass d x : (d + size x)%N = k w ->
  sum (chains d) (fun u => prob q w (x ++ u) * none_deeper x u) = prob q w x - deeper x.
Proof.
elim: d x => [|d IH] x full.
  by rewrite /= cats0 mulr1 addr0 /Definitions.deeper -full add0n ltnn subr0.
rewrite sum_chains /Definitions.deeper -full addSn ltnS leq_addl.
have [_ one] := draft_pmf ok (w ++ x).
rewrite -[X in _ = X - _]mulr1 -[X in _ = _ * X - _]one -sumM -sumB; apply: eq_sum => z.
rewrite -prob_rcons.
rewrite (@eq_sum _ _ _ _ (fun u => (1 - stays (rcons x z)) * (prob q w (rcons x z ++ u) * none_deeper (rcons x z) u))).
  rewrite sumM IH ?size_rcons ?addnS -?full ?addSn // mulrBl mul1r stays_mass; by_ring R.
by move=> u; rewrite /= cat_rcons; by_ring R.
Qed.

Lemma block_stops_at x : (size x <= k w)%N ->
  sum (chains (k w - size x)) (fun u => prob q w (x ++ u) * block_accepts_of voc P s w (x ++ u) (size x)) =
  s x - deeper x.
Proof.
move=> xk; rewrite -stays_mass -(@none_deeper_mass (k w - size x)) ?subnK // -sumM; apply: eq_sum => u.
by rewrite /block_accepts_of take_size_cat // drop_size_cat //; by_ring R.
Qed.

Definition block_law : result C -> R := algorithm P (block_accepts_of voc P s w) (recovers voc P s w) w.

Theorem block_law_lossless : lossless P w block_law.
Proof.
apply: algorithm_lossless => // [y i | y full | x xk].
- by rewrite mulr_ge0 ?none_deeper_ge0 //; have /andP[] := stays_between (take i y).
- by have := stays_total [::] y; rewrite full [stays [::]]/= subrr mul0r subr0.
- exact: block_stops_at.
Qed.

Theorem block_law_survives x : (size x <= k w)%N -> survives block_law x = s x.
Proof. by apply: algorithm_survives => // y; apply: block_stops_at. Qed.
End Block.

Lemma block_grows w x z : block P w (rcons x z) <= p (w ++ x) z * block P w x.
Proof. by rewrite block_rcons le_minl lexx. Qed.

Lemma block_ge0 w x : 0 <= block P w x.
Proof. by apply: (block_from_ge0 ok); rewrite ler01. Qed.

Lemma block_drafted w x : block P w x <= prob q w x.
Proof. by case/lastP: x => // x z; rewrite block_rcons le_minl lexx orbT. Qed.

(* B7 is attained: block verification is a lossless policy, with V expected calls. *)
Definition block_policy : policy R C := fun h => block_law (so_far h) (block P (so_far h)).

Theorem block_policy_lossless : lossless_policy P block_policy.
Proof.
move=> h _; apply: block_law_lossless => //;
  [exact: block_grows | exact: block_ge0 | exact: block_drafted].
Qed.

Theorem block_policy_attains : expected_cost P block_policy = value voc P (block P) [::].
Proof.
rewrite (regret all_tokens ok block_policy_lossless) -[RHS]addr0; congr (_ + _).
have zero h : loss voc P (block_policy h) (so_far h) = 0.
  rewrite /loss -[RHS](sum0 R (runs voc (k (so_far h)))); apply: eq_sum_runs => x short.
  rewrite block_law_survives ?subrr ?mul0r //; [exact: block_grows | exact: block_ge0 | exact: block_drafted].
rewrite /expected; elim: (longest P) [::] => //= n IH h; case: ifP => // _.
by rewrite zero add0r -[RHS](sum0 R (results C)); apply: eq_sum => o; rewrite IH mulr0.
Qed.
End Algorithms.
