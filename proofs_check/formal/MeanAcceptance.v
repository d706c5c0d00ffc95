(* C6: tokens per call from the mean acceptance alone, however acceptances are spread over the text. *)
From mathcomp Require Import all_ssreflect all_algebra.
From Spectheory Require Import Definitions Algebra Sums.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import GRing.Theory Num.Theory Order.TTheory.
Local Open Scope ring_scope.

Section MeanAcceptance.
Variables (R : realFieldType) (k : nat).
Add Ring R_ring : (ring_of R).
Local Notation later := (@later_calls R k).
Local Notation calls := (@expected_calls R k).
Implicit Types (l : seq R) (a : R).
Definition acceptances (l : seq R) := all (fun a => 0 <= a <= 1) l.

Lemma later_cons j a l : later j (a :: l) = if j is i.+1 then a * later i l + (1 - a) * calls l else calls l.
Proof. by case: l. Qed.

Lemma calls_cons a l : calls (a :: l) = 1 + later k (a :: l). Proof. by []. Qed.

Lemma refused_cons a l : refused (a :: l) = 1 - a + refused l. Proof. by []. Qed.

Lemma natS n : n.+1%:R = n%:R + 1 :> R. Proof. by rewrite -addn1 natrD. Qed.

Lemma mix (a x y X Y : R) : 0 <= a -> a <= 1 -> x <= X -> y <= Y -> a * x + (1 - a) * y <= a * X + (1 - a) * Y.
Proof. by move=> *; rewrite ler_add ?ler_wpmul2l ?subr_ge0. Qed.

Lemma mixM (a x y c : R) : (a * x + (1 - a) * y) * c = a * (x * c) + (1 - a) * (y * c). Proof. by_ring R. Qed.

(* A call has at most k + 1 tokens. *)
Lemma later_long j l : acceptances l -> (size l)%:R - j.+1%:R <= later j l * k.+1%:R.
Proof.
elim: l j => [|a l IH] j; first by rewrite /= mul0r sub0r oppr_le0 ler0n.
case/andP => /andP[a0 a1] ok.
have later_ok : (size l)%:R <= calls l * k.+1%:R.
  by case: l IH ok => [|b l] IH ok; rewrite ?mul0r // calls_cons mulrDl mul1r -ler_subl_addl IH.
rewrite later_cons -[size (a :: l)]/(size l).+1; case: j => [|i].
  by rewrite [(size l).+1%:R]natS addrK.
rewrite mixM; apply: le_trans (mix a0 a1 (IH i ok) later_ok).
rewrite [(size l).+1%:R]natS [i.+2%:R]natS; move: (size l)%:R i.+1%:R (ler0n R i.+1) => N I I0.
by by_gap R ((1 - a) * I); rewrite mulr_ge0 ?subr_ge0.
Qed.

Theorem calls_are_long l : acceptances l -> (size l)%:R <= calls l * k.+1%:R.
Proof. by case: l => [|b l] ok; rewrite ?mul0r // calls_cons mulrDl mul1r -ler_subl_addl later_long. Qed.

(* Each position that would be refused ends a call. *)
Lemma later_refused j l : acceptances l -> refused l - 1 <= later j l.
Proof.
elim: l j => [|a l IH] j; first by rewrite /refused /= sub0r oppr_le0 ler01.
case/andP => /andP[a0 a1] ok; rewrite later_cons refused_cons.
have later_ok : refused l <= calls l by case: l IH ok => [|b l] IH ok //; rewrite calls_cons -ler_subl_addl IH.
case: j => [|i]; first by apply: le_trans later_ok; by_gap R a.
by apply: le_trans (mix a0 a1 (IH i ok) later_ok); by_gap R (0 : R).
Qed.

Theorem refusals_end_calls l : acceptances l -> refused l <= calls l.
Proof. by case: l => [|b l] ok //; rewrite calls_cons -ler_subl_addl later_refused. Qed.

(* All other calls are full, but for the last. *)
Lemma later_few j l : (j <= k)%N -> (j < k)%N || (l != [::]) -> acceptances l ->
  later j l * k.+1%:R <= (size l)%:R + k%:R * refused l + (k - j)%:R - 1.
Proof.
elim: l j => [|a l IH] j jk; first by rewrite orbF /refused /= mul0r mulr0 !add0r subr_ge0 ler1n subn_gt0.
move=> _ /andP[/andP[a0 a1] ok].
have later_ok : calls l * k.+1%:R <= (size l)%:R + k%:R * refused l + k%:R.
  case: l IH ok => [|b l] IH ok; first by rewrite /refused /= mul0r mulr0 !add0r ler0n.
  rewrite calls_cons mulrDl mul1r; have := IH k (leqnn k); rewrite orbT subnn => /(_ isT ok).
  rewrite -(ler_add2l k.+1%:R) => le; apply: (le_trans le); rewrite natS mulr0n; by by_gap R (0 : R).
rewrite later_cons refused_cons -[size (a :: l)]/(size l).+1 [(size l).+1%:R]natS; case: j jk => [|i] ik.
  rewrite subn0; apply: (le_trans later_ok); move: k%:R (ler0n R k) => K K0.
  by by_gap R (K * (1 - a)); rewrite mulr_ge0 ?subr_ge0.
have := mix a0 a1 (IH i (ltnW ik) _ ok) later_ok; rewrite ik => /(_ isT).
rewrite mixM => le; apply: (le_trans le); rewrite !natrB ?(ltnW ik) //.
have K0 : 0 <= k%:R - i.+1%:R :> R by rewrite subr_ge0 ler_nat.
move: K0; rewrite natS; move: k%:R i%:R => K I K0.
by by_gap R ((1 - a) * (K - (I + 1))); rewrite mulr_ge0 // subr_ge0.
Qed.

Theorem other_calls_are_full l : acceptances l ->
  calls l * k.+1%:R <= (size l)%:R + k%:R * refused l + k%:R.
Proof.
case: l => [|b l] ok; first by rewrite /refused /= mul0r mulr0 !add0r ler0n.
rewrite calls_cons mulrDl mul1r; have := @later_few k (b :: l) (leqnn k); rewrite orbT subnn => /(_ isT ok).
rewrite -(ler_add2l k.+1%:R) => le; apply: (le_trans le); rewrite natS mulr0n; by by_gap R (0 : R).
Qed.
End MeanAcceptance.
