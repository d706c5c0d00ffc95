(* Sums over the vocabulary, over runs of tokens, and over results of calls *)
From mathcomp Require Import all_ssreflect all_algebra.
From Spectheory Require Import Definitions.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import GRing.Theory Num.Theory Order.TTheory.
Local Open Scope ring_scope.

Section Sums.
Variable R : realFieldType.
Implicit Types (T : Type).

Lemma sumE T (l : seq T) (f : T -> R) : sum l f = \sum_(t <- l) f t.
Proof. by elim: l => [|t l IH] /=; rewrite ?big_nil ?big_cons ?IH. Qed.

Lemma eq_sum T (l : seq T) (f g : T -> R) : f =1 g -> sum l f = sum l g.
Proof. by move=> E; elim: l => //= t l ->; rewrite E. Qed.

Lemma sum0 T (l : seq T) : sum l (fun=> 0 : R) = 0.
Proof. by elim: l => //= t l ->; rewrite addr0. Qed.

Lemma sumD T (l : seq T) (f g : T -> R) : sum l (fun t => f t + g t) = sum l f + sum l g.
Proof. by rewrite !sumE big_split. Qed.

Lemma sumN T (l : seq T) (f : T -> R) : sum l (fun t => - f t) = - sum l f.
Proof. by rewrite !sumE sumrN. Qed.

Lemma sumB T (l : seq T) (f g : T -> R) : sum l (fun t => f t - g t) = sum l f - sum l g.
Proof. by rewrite sumD sumN. Qed.

Lemma sumM T (l : seq T) (c : R) (f : T -> R) : sum l (fun t => c * f t) = c * sum l f.
Proof. by rewrite !sumE mulr_sumr. Qed.

Lemma sumMr T (l : seq T) (c : R) (f : T -> R) : sum l (fun t => f t * c) = sum l f * c.
Proof. by rewrite !sumE mulr_suml. Qed.

Lemma exchange T S (l : seq T) (m : seq S) (f : T -> S -> R) :
  sum l (fun t => sum m (f t)) = sum m (fun u => sum l (fun t => f t u)).
Proof. by elim: l => [|t l IH] /=; rewrite ?sum0 // sumD IH. Qed.

Lemma sum_ge0 T (l : seq T) (f : T -> R) : (forall t, 0 <= f t) -> 0 <= sum l f.
Proof. by move=> p; elim: l => //= t l; apply: addr_ge0. Qed.

Lemma le_sum T (l : seq T) (f g : T -> R) : (forall t, f t <= g t) -> sum l f <= sum l g.
Proof. by move=> p; elim: l => //= t l; apply: ler_add. Qed.

Lemma sum_cat T (l m : seq T) (f : T -> R) : sum (l ++ m) f = sum l f + sum m f.
Proof. by elim: l => [|t l IH] /=; rewrite ?add0r // IH addrA. Qed.

Lemma sum_map T S (h : S -> T) (l : seq S) (f : T -> R) : sum (map h l) f = sum l (f \o h).
Proof. by elim: l => //= t l ->. Qed.

Lemma eq_sum_in (T : eqType) (l : seq T) (f g : T -> R) : {in l, f =1 g} -> sum l f = sum l g.
Proof. by rewrite !sumE => E; apply: eq_big_seq. Qed.

Lemma le_term (T : eqType) (l : seq T) (f : T -> R) t : (forall u, 0 <= f u) -> t \in l -> f t <= sum l f.
Proof.
move=> p; elim: l => //= u l IH; rewrite inE => /orP[/eqP->|/IH le].
  by rewrite ler_addl sum_ge0.
by apply: (le_trans le); rewrite ler_addr.
Qed.

Lemma sum_at (T : eqType) (l : seq T) (f : T -> R) t :
  uniq l -> t \in l -> sum l (fun u => if u == t then f u else 0) = f t.
Proof.
move=> un inl; rewrite sumE (bigD1_seq t) //= eqxx big1 ?addr0 // => u /negbTE -> //.
Qed.

Lemma eq0_term (T : eqType) (l : seq T) (f : T -> R) t :
  (forall u, 0 <= f u) -> sum l f = 0 -> t \in l -> f t = 0.
Proof. by move=> p E il; apply/eqP; rewrite eq_le p andbT -E le_term. Qed.

(* Runs *)
Variables (A : eqType) (voc : seq A).
Local Notation runs := (runs voc).

Lemma sum_runs d (g : seq A -> R) :
  sum (runs d.+1) g = g [::] + sum voc (fun z => sum (runs d) (fun x => g (z :: x))).
Proof.
rewrite /=; congr (_ + _); move: (runs d) => rs; elim: voc => //= z l IH.
by rewrite sum_cat IH sum_map.
Qed.

Lemma sum_chains d (g : seq A -> R) :
  sum (chains voc d.+1) g = sum voc (fun z => sum (chains voc d) (fun x => g (z :: x))).
Proof. by rewrite /=; move: (chains voc d) => rs; elim: voc => //= z l IH; rewrite sum_cat IH sum_map. Qed.

Lemma runs_more d e (g : seq A -> R) : (forall x, 0 <= g x) -> (d <= e)%N -> sum (runs d) g <= sum (runs e) g.
Proof.
elim: d e g => [|d IH] [|e] g g0 //; first by move=> _; rewrite sum_runs /= addr0 ler_addl; do !apply: sum_ge0 => ?.
by rewrite ltnS => le; rewrite !sum_runs ler_add2l; apply: le_sum => z; apply: IH.
Qed.

(* Inside a call each run but the empty one is a run with a token more. *)
Lemma sum_longer d (h : seq A -> R) :
  sum (runs d) (fun x => if (size x < d)%N then sum voc (fun z => h (rcons x z)) else 0) = sum (runs d) h - h [::].
Proof.
elim: d h => [|d IH] h; first by rewrite /= !addr0 subrr.
rewrite !sum_runs /= addrC [h [::] + _]addrC addrK -sumD; apply: eq_sum => z.
by rewrite (IH (fun x => h (z :: x))) subrK.
Qed.

Lemma le_sum_runs d (f g : seq A -> R) :
  (forall x, (size x <= d)%N -> f x <= g x) -> sum (runs d) f <= sum (runs d) g.
Proof.
elim: d f g => [|d IH] f g le; first by rewrite /= !addr0 le.
by rewrite !sum_runs ler_add ?le //; apply: le_sum => z; apply: IH => x sx; apply: le.
Qed.

Lemma eq_sum_runs d (f g : seq A -> R) :
  (forall x, (size x <= d)%N -> f x = g x) -> sum (runs d) f = sum (runs d) g.
Proof. by move=> E; apply: le_anti; rewrite !le_sum_runs // => x /E ->. Qed.

Lemma sum_runs_short d e (g : seq A -> R) : (d <= e)%N -> (forall x, (d < size x)%N -> g x = 0) ->
  sum (runs d) g = sum (runs e) g.
Proof.
elim: d e g => [|d IH] [|e] g // de far; rewrite !sum_runs.
  rewrite /= addr0 -[LHS]addr0 -[in LHS](sum0 voc); congr (_ + _); apply: eq_sum => z.
  by rewrite -[LHS](sum0 (runs e)); apply: eq_sum => x; rewrite far.
by congr (_ + _); apply: eq_sum => z; apply: IH => // x dx; apply: far.
Qed.

Hypothesis all_tokens : vocabulary voc.

Lemma sum_runs_at d (g : seq A -> R) x :
  (size x <= d)%N -> sum (runs d) (fun y => if y == x then g y else 0) = g x.
Proof.
case: all_tokens => un all; elim: d g x => [|d IH] g [|t x] // sx; rewrite ?sum_runs /= ?addr0 //.
  rewrite -[RHS]addr0 -[in RHS](sum0 voc); congr (_ + _); apply: eq_sum => z.
  by rewrite -[RHS](sum0 (runs d)); apply: eq_sum.
rewrite add0r -[RHS](IH (fun y => g (t :: y))) //.
rewrite -[RHS](sum_at (fun u => sum (runs d) (fun y => if y == x then g (u :: y) else 0)) un (all t)).
apply: eq_sum => z; case: (z =P t) => [->|ne]; first by apply: eq_sum => y; rewrite eqseq_cons eqxx.
by rewrite -[RHS](sum0 (runs d)); apply: eq_sum => y; rewrite eqseq_cons; case: (z =P t).
Qed.
End Sums.
