(* The definitions that every theorem of this folder rests on, beside docs/block_optimality.md and docs/theory.md.
   Numbers are of any ordered field R; tokens of any finite vocabulary, given as a list `voc` with every token once.
   All definitions compute: Toys.v evaluates them in fractions. *)
From mathcomp Require Import all_ssreflect all_algebra.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import GRing.Theory Num.Theory Order.TTheory.
Local Open Scope ring_scope.

(* Sums over lists, and pmfs *)

Definition sum (R : realFieldType) (T : Type) (l : seq T) (f : T -> R) : R := foldr (fun t s => f t + s) 0 l.

Definition vocabulary (A : eqType) (voc : seq A) := uniq voc /\ forall a, a \in voc.

Definition pmf (R : realFieldType) (A : eqType) (voc : seq A) (f : A -> R) :=
  (forall a, 0 <= f a) /\ sum voc f = 1.

(* One draft token (A1): the draft x ~ q is accepted with probability min(1, p(x)/q(x)), else a token is recovered
   from the residual (p - q)+ / sum (p - q)+. *)

Section OneToken.
Variables (R : realFieldType) (A : eqType) (voc : seq A) (p q : A -> R).

Definition accept x : R := if q x == 0 then 1 else Num.min 1 (p x / q x).
Definition residual z : R := Num.max (p z - q z) 0.
Definition recovered z : R := residual z / sum voc residual.

(* P(draft = x, output = z, accepted = b) *)
Definition token_call x z (b : bool) : R :=
  if b then (if x == z then q x * accept x else 0) else q x * (1 - accept x) * recovered z.

Definition token_accepts : R := sum voc (fun x => token_call x x true).
Definition overlap : R := sum voc (fun x => Num.min (p x) (q x)).

(* Any joint law of draft, output and acceptance with the draft's and the target's marginals, that outputs what it
   accepts. *)
Record lossless_once (law : A -> A -> bool -> R) : Prop := LosslessOnce {
  once_ge0 : forall x z b, 0 <= law x z b;
  once_draft : forall x, sum voc (fun z => law x z true + law x z false) = q x;
  once_output : forall z, sum voc (fun x => law x z true + law x z false) = p z;
  once_accepted : forall x z, x != z -> law x z true = 0 }.
End OneToken.

(* Texts, runs of tokens, models *)

Section Texts.
Variables (R : realFieldType) (A : eqType) (voc : seq A).

Local Notation text := (seq A).
Definition model := text -> A -> R.

(* The probability of the run x after the text w *)
Fixpoint prob (m : model) (w x : text) : R := if x is z :: y then m w z * prob m (rcons w z) y else 1.

(* Every run of at most d tokens *)
Fixpoint runs (d : nat) : seq text := [::] :: (if d is e.+1 then [seq z :: x | z <- voc, x <- runs e] else [::]).

(* Every chain of d tokens *)
Fixpoint chains (d : nat) : seq text := if d is e.+1 then [seq z :: x | z <- voc, x <- chains e] else [:: [::]].

(* A decoding: both models, the number of drafts and the cost of a call after each text, which texts are finished, and
   a length that no text exceeds. B7 as stated has k drafts and cost 1 everywhere. *)
Record problem := Problem {
  target : model;
  draft : model;
  drafts : text -> nat;
  cost : text -> R;
  ended : text -> bool;
  longest : nat }.

Variable P : problem.
Local Notation p := (target P).
Local Notation q := (draft P).
Local Notation k := (drafts P).

Record proper : Prop := Proper {
  target_pmf : forall w, pmf voc (p w);
  draft_pmf : forall w, pmf voc (q w);
  ended_stays : forall w z, ended P w -> ended P (rcons w z);
  ended_at_last : forall w, (longest P <= size w)%N -> ended P w;
  cost_ge0 : forall w, 0 <= cost P w }.

(* What B7 needs of drafts and costs that depend on the text; k drafts and cost 1 everywhere have it. *)
Record steady : Prop := Steady {
  drafts_fall_by_one : forall w z, ~~ ended P (rcons w z) -> ((k w).-1 <= k (rcons w z))%N;
  cost_falls : forall w, ~~ ended P w ->
    sum voc (fun z => q w z * (if ended P (rcons w z) then 0 else cost P (rcons w z))) <= cost P w }.

(* Masses s w x of a rule: P(tau >= |x|, the drafts begin with x) in the call after w; s w [::] = 1. *)
Definition masses := text -> text -> R.

(* mu(xz) = min(p(z|wx) mu(x), Q(xz|w)), from a run with mass m and draft probability d *)
Fixpoint block_from (m d : R) (w x : text) : R :=
  if x is z :: y then block_from (Num.min (p w z * m) (d * q w z)) (d * q w z) (rcons w z) y else m.
Definition block : masses := block_from 1 1.

(* s(xz) = s(x) min(p(z|wx), q(z|wx)) *)
Fixpoint token (w x : text) : R :=
  if x is z :: y then Num.min (p w z) (q w z) * token (rcons w z) y else 1.

(* Along a text: rho = q/p of a token, prod min(1, rho), and the least product of the first ratios, from a least value a
   and a product r so far *)
Definition ratio (w : text) (z : A) : R := q w z / p w z.
Fixpoint product_of_ratios (w x : text) : R :=
  if x is z :: y then Num.min 1 (ratio w z) * product_of_ratios (rcons w z) y else 1.
Fixpoint running_least (a r : R) (w x : text) : R :=
  if x is z :: y then running_least (Num.min a (r * ratio w z)) (r * ratio w z) (rcons w z) y else a.

(* a(xz) = p(z|wx) s(x) - s(xz): the call accepts the drafts x and adds the token z. No draft follows k of them. *)
Definition stop (s : text -> R) (w x : text) (z : A) : R :=
  p (w ++ x) z * s x - (if (size x < k w)%N then s (rcons x z) else 0).

(* One call with masses s after w, and f afterwards *)
Definition one_call (s f : text -> R) (w : text) : R :=
  cost P w + sum (runs (k w)) (fun x => sum voc (fun z => stop s w x z * f (w ++ rcons x z))).

(* V: the expected calls (or their cost) from w on, if every call has the masses of one rule *)
Fixpoint value_in (n : nat) (s : masses) (w : text) : R :=
  if n is m.+1 then if ended P w then 0 else one_call (s w) (value_in m s) w else 0.
Definition value (s : masses) (w : text) : R := value_in (longest P - size w) s w.

(* D: what one free token saves *)
Definition saving (s : masses) (w : text) : R :=
  value s w - sum voc (fun z => p w z * value s (rcons w z)).

(* Along one text: v is what comes after w. A call accepts i drafts or more with probability kept i, and
   C(w) = c(w) + sum_i P(tau = i | v) C(w and i + 1 tokens of v). *)
Definition kept (s : masses) (w v : text) (i : nat) : R := s w (take i v) / prob p w (take i v).
Fixpoint along_in (n : nat) (s : masses) (w v : text) : R :=
  if n is m.+1 then
    if ended P w then 0
    else cost P w + sum (iota 0 (k w).+1) (fun i =>
      (kept s w v i - (if (i < k w)%N then kept s w v i.+1 else 0)) * along_in m s (w ++ take i.+1 v) (drop i.+1 v))
  else 0.
Definition along (s : masses) (w v : text) : R := along_in (longest P - size w) s w v.

(* Calls of any kind. `result` is all that may come out of a call: its drafts, coins and rejected drafts included. *)
Record calls := Calls {
  result : Type;
  results : seq result;
  chain : result -> text;
  accepted : result -> nat;
  added : result -> A }.

Variable C : calls.
Definition output (o : result C) : text := rcons (take (accepted o) (chain o)) (added o).

(* P(the text `out`, continued by the target, begins with v), after w *)
Fixpoint begins (w out v : text) : R :=
  match v, out with
  | [::], _ => 1
  | z :: u, t :: rest => if t == z then begins (rcons w z) rest u else 0
  | z :: u, [::] => p w z * begins (rcons w z) [::] u
  end.

(* Conditions 1 and 2 of the page, of one call after w: its chain is drawn from q, and its output followed by text
   drawn from the target has the target's law. A call that drafts less ignores the rest of its chain. A call that stops
   where the text ends fulfils the second condition beyond the end, where the target goes on. *)
Record lossless (w : text) (law : result C -> R) : Prop := Lossless {
  law_ge0 : forall o, 0 <= law o;
  law_size : forall o, law o != 0 -> size (chain o) = k w /\ (accepted o <= k w)%N;
  law_draft : forall y, size y = k w -> sum (results C) (fun o => if chain o == y then law o else 0) = prob q w y;
  law_fresh : forall v, sum (results C) (fun o => law o * begins w (output o) v) = prob p w v }.

(* P(tau >= |x|, the drafts begin with x) *)
Definition survives (law : result C -> R) (x : text) : R :=
  sum (results C) (fun o => if (size x <= accepted o)%N && prefix x (chain o) then law o else 0).

(* Calls as algorithms: the chain y ~ q, the number i of accepted drafts with probability t y i, and the token added
   from a law of the accepted drafts. A result is (chain, accepted, added). *)
Definition plain_calls (most : nat) : calls := {|
  result := text * nat * A;
  results := [seq (yi, z) | yi <- [seq (y, i) | y <- runs most, i <- iota 0 most.+1], z <- voc];
  chain := fun o => o.1.1; accepted := fun o => o.1.2; added := fun o => o.2 |}.

Definition algorithm (t : text -> nat -> R) (recovers : text -> A -> R) (w : text) (o : text * nat * A) : R :=
  let: (y, i, z) := o in
  if (size y == k w) && (i <= k w)%N then prob q w y * t y i * recovers (take i y) z else 0.

(* Token verification accepts draft by draft, with min(1, p/q), up to the first that is refused. *)
Fixpoint token_accepts_of (w y : text) (i : nat) : R :=
  match y, i with
  | z :: u, j.+1 => accept (p w) (q w) z * token_accepts_of (rcons w z) u j
  | z :: _, 0 => 1 - accept (p w) (q w) z
  | [::], 0 => 1
  | [::], _.+1 => 0
  end.

(* Block verification of masses s, from the last draft to the first: the drafts x are the accepted ones with probability
   h x, if no more of them are. With s = block this is sun2024block's rule (theorem block_stays). *)
Section Backwards.
Variables (s : text -> R) (w : text).
Definition deeper (x : text) : R := if (size x < k w)%N then sum voc (fun z => s (rcons x z)) else 0.
Definition stays (x : text) : R :=
  if x is [::] then 1 else (s x - deeper x) / (prob q w x - deeper x).
Fixpoint none_deeper (x y : text) : R :=
  if y is z :: u then (1 - stays (rcons x z)) * none_deeper (rcons x z) u else 1.
Definition block_accepts_of (y : text) (i : nat) : R := stays (take i y) * none_deeper (take i y) (drop i y).
Definition recovers (x : text) (z : A) : R :=
  if s x == deeper x then p (w ++ x) z else stop s w x z / (s x - deeper x).
End Backwards.

(* A policy: the law of each call may depend on the results of all calls before it. *)
Definition history := seq (result C).
Definition policy := history -> result C -> R.
Definition so_far (h : history) : text := flatten (map output h).
Definition lossless_policy (pi : policy) := forall h, ~~ ended P (so_far h) -> lossless (so_far h) (pi h).

(* The expected sum of g over the calls of a policy, from a history on *)
Fixpoint over_calls (n : nat) (pi : policy) (g : history -> R) (h : history) : R :=
  if n is m.+1 then if ended P (so_far h) then 0
    else g h + sum (results C) (fun o => pi h o * over_calls m pi g (rcons h o))
  else 0.
Definition expected (pi : policy) (g : history -> R) : R := over_calls (longest P) pi g [::].
Definition expected_cost (pi : policy) : R := expected pi (fun h => cost P (so_far h)).

(* What a call loses against block verification *)
Definition loss (law : result C -> R) (w : text) : R :=
  sum (runs (k w)) (fun x => (block w x - survives law x) * saving block (w ++ x)).
(* B10: a drafted token costs c, and drafting may end after any token. `u x` is the probability Q(x) R(x) that a call
   drafts x and then another token. R falls along a run, from at most 1, and ends at k drafts: *)
Record may_go (w : text) (u : text -> R) : Prop := MayGo {
  go_ge0 : forall x, 0 <= u x;
  go_start : u [::] <= 1;
  go_falls : forall x z, u (rcons x z) <= q (w ++ x) z * u x;
  go_last : forall x, (k w <= size x)%N -> u x = 0 }.

(* mu(xz) = min(p(z|wx) mu(x), q(z|wx) u(x)): block verification's masses against the law of the stopped drafts *)
Fixpoint stopped_from (m : R) (u : text -> R) (w x : text) : R :=
  if x is z :: y then
    stopped_from (Num.min (p w z * m) (q w z * u [::])) (fun v => u (z :: v)) (rcons w z) y
  else m.
Definition stopped (u : text -> R) (w x : text) : R := stopped_from 1 u w x.

(* A call that may stop: after the drafts x it goes on or not, by coins or anything else, and what it drafts next is
   drawn from q. `begun` and `goes_on` are the probabilities that it drafts x, and another token after x. *)
Definition begun (law : result C -> R) (x : text) : R :=
  sum (results C) (fun o => if prefix x (chain o) then law o else 0).
Definition goes_on (law : result C -> R) (x : text) : R :=
  sum (results C) (fun o => if prefix x (chain o) && (size x < size (chain o))%N then law o else 0).

Record lossless_stopping (w : text) (law : result C -> R) : Prop := LosslessStopping {
  stopping_ge0 : forall o, 0 <= law o;
  stopping_size : forall o, law o != 0 -> (size (chain o) <= k w)%N /\ (accepted o <= size (chain o))%N;
  stopping_draft : forall x z, begun law (rcons x z) = q (w ++ x) z * goes_on law x;
  stopping_fresh : forall v, sum (results C) (fun o => law o * begins w (output o) v) = prob p w v }.

Definition lossless_stopping_policy (pi : policy) :=
  forall h, ~~ ended P (so_far h) -> lossless_stopping (so_far h) (pi h).
Definition expected_price (c : R) (pi : policy) : R :=
  expected pi (fun h => cost P (so_far h) + c * sum (results C) (fun o => pi h o * (size (chain o))%:R)).
End Texts.

(* V and D, if the call after each text w goes on with u w and accepts with the masses `stopped` *)
Section Stopping.
Variables (R : realFieldType) (A : eqType) (voc : seq A) (P : problem R A) (c : R) (u : seq A -> seq A -> R).

Definition priced : problem R A := Problem (target P) (draft P) (drafts P)
  (fun w => cost P w + c * sum (runs voc (drafts P w)) (u w)) (ended P) (longest P).
Definition stopped_value (w : seq A) : R := value voc priced (fun v => stopped P (u v) v) w.
Definition stopped_saving (w : seq A) : R := saving voc priced (fun v => stopped P (u v) v) w.

(* What a call saves by going on with g: sum mu D - c sum g. Both sums begin with the empty run, the first with D(w). *)
Definition gain (w : seq A) (g : seq A -> R) : R :=
  sum (runs voc (drafts P w)) (fun x => stopped P g w x * stopped_saving (w ++ x)) -
  c * sum (runs voc (drafts P w)) g.

(* u w is a maximum at each text. *)
Record best_stops : Prop := BestStops {
  best_may_go : forall w, may_go P w (u w);
  best_gain : forall w g, ~~ ended P w -> may_go P w g -> gain w g <= gain w (u w) }.
End Stopping.

(* S2: draft trees. A node is the path of ranks to it from the root [::]; a tree is the list of its other nodes. After
   the path v the target's token has rank r with probability m v r: for i.i.d. ranks m v r = pi r. A node weighs the
   probability of its path. *)
Section Trees.
Variables (R : realFieldType) (A : eqType) (voc : seq A) (m : model R A).

Definition parent (v : seq A) : seq A := take (size v).-1 v.
Definition in_tree (T : seq (seq A)) (v : seq A) : bool := v \in [::] :: T.
Definition tree (T : seq (seq A)) : bool := [&& uniq T, [::] \notin T & all (fun v => in_tree T (parent v)) T].
Definition weight (v : seq A) : R := prob m [::] v.

(* The expected tokens of a call from the node v on, of a tree no more than n deeper: the target adds one token, and the
   call goes on if that is a child of v. *)
Fixpoint tree_tokens_in (n : nat) (T : seq (seq A)) (v : seq A) : R :=
  1 + (if n is d.+1 then
         sum voc (fun r => if rcons v r \in T then m v r * tree_tokens_in d T (rcons v r) else 0)
       else 0).
Definition tree_tokens (T : seq (seq A)) : R := tree_tokens_in (foldr maxn 0%N (map size T)) T [::].

(* Greedy: no child that could be added outweighs a node. *)
Definition greedy (T : seq (seq A)) :=
  forall v t, v != [::] -> v \notin T -> in_tree T (parent v) -> t \in T -> weight v <= weight t.
End Trees.

(* C6: a text whose token at each position is accepted with a probability of its own. The expected calls of k drafts:
   a call ends at the first token refused, which it replaces, or after k + 1 tokens. *)

Section MeanAcceptance.
Variables (R : realFieldType) (k : nat).

(* The expected calls that begin later, j drafts before the end of the present call *)
Fixpoint later_calls (j : nat) (acceptances : seq R) : R :=
  if acceptances is a :: rest then
    let next := if rest is [::] then 0 else 1 + later_calls k rest in
    if j is i.+1 then a * later_calls i rest + (1 - a) * next else next
  else 0.

Definition expected_calls (acceptances : seq R) : R :=
  if acceptances is [::] then 0 else 1 + later_calls k acceptances.

(* N (1 - mean acceptance) *)
Definition refused (acceptances : seq R) : R := sum acceptances (fun a => 1 - a).
End MeanAcceptance.
