"""C3: seconds of a pass from a data sheet, against reading and computing played out chunk by chunk."""

from __future__ import annotations

from operator import mul

from proofs_check.prelude import *
from proofs_check.theorems.time.closed_forms import CARD, DRAFT, TARGET, Sizes, counted, seconds, shape_of, times
from spectheory.cost import ACCELERATORS, AffineCost, AffineTime, Roofline, RooflineTime
from spectheory.drafting import Chain

# C3's fallback: the affine fit to timings is the best of all with coefficients that are not negative.


def best_fit(rows: Sequence[Sequence[Fraction]], y: Sequence[Fraction]) -> tuple[Fraction, ...]:
    """Coefficients >= 0 of least squares and what is left over, by trying every choice of those that are 0."""
    fits = []
    for size in range(len(rows[0]) + 1):
        for chosen in combinations(range(len(rows[0])), size):
            solution = _normal_equations([[row[j] for j in chosen] for row in rows], y)
            if min(solution, default=Fraction(0)) >= 0:
                full = [solution[chosen.index(j)] if j in chosen else Fraction(0) for j in range(len(rows[0]))]
                left = total((_dot(row, full) - t) ** 2 for row, t in zip(rows, y, strict=True))
                fits.append((left, *full))
    left, *best = min(fits)
    return (*best, left)


def fits_agree(timings: Sequence[Sequence[int]]) -> Iterator[Compared]:
    """The library's affine fit, and a pass by it."""
    tokens, batch, context, y = (list(map(Fraction, column)) for column in zip(*timings, strict=True))
    rows = [[Fraction(1), b * m, b * length] for m, b, length in zip(tokens, batch, context, strict=True)]
    *best, left = best_fit(rows, y)
    fit = AffineTime.fit(*([float(value) for value in column] for column in (tokens, batch, context, y)))
    for value, coefficient in zip((fit.fixed, fit.per_token, fit.per_cached), best, strict=True):
        yield computed(value, coefficient)
    yield computed(fit.error**2, left / len(timings))
    yield computed(fit.seconds(3, 2, 5), best[0] + 6 * best[1] + 10 * best[2])
    cost = AffineCost(fit, fit, context=5, batch=2)
    yield computed(cost.call(Chain(2)).best, 3 * best[0] + 10 * best[1] + 30 * best[2])


def all_timings(effort: Effort) -> Iterator[Case]:
    """Every timing of 1 to 3 seconds of four passes."""
    passes = ((1, 1, 0), (4, 1, 2), (2, 3, 1), (1, 2, 8))
    for y in product(range(1, effort.pick(4, 8)), repeat=4):
        yield {"timings": tuple((*each, value) for each, value in zip(passes, y, strict=True))}


def unconstrained(timings: Sequence[Sequence[int]]) -> Iterator[Compared]:
    """Plain least squares, coefficients of either sign."""
    rows = [[Fraction(1), Fraction(b * m), Fraction(b * length)] for m, b, length, _ in timings]
    free = _normal_equations(rows, [Fraction(y) for *_, y in timings])
    columns = [[float(value) for value in column] for column in zip(*timings, strict=True)]
    yield computed(AffineTime.fit(*columns).fixed, free[0])


def _dot(row: Sequence[Fraction], column: Sequence[Fraction]) -> Fraction:
    return total(map(mul, row, column))


def _normal_equations(rows: Sequence[Sequence[Fraction]], y: Sequence[Fraction]) -> list[Fraction]:
    """Least squares without constraints, by elimination."""
    columns = [list(column) for column in zip(*rows, strict=True)]
    table = [[*(_dot(left, right) for right in columns), _dot(left, y)] for left in columns]
    for i in range(len(table)):  # a Gram matrix of independent columns has positive pivots
        table[i] = [value / table[i][i] for value in table[i]]
        for j in range(len(table)):
            if j != i:
                table[j] = [a - table[j][i] * b for a, b in zip(table[j], table[i], strict=True)]
    return [row[-1] for row in table]


FIT = agreement(
    Claim("the affine fit is the best of all with coefficients >= 0", fits_agree),
    all_timings,
    wrong=Claim("the affine fit is that of plain least squares", unconstrained),
)
"""Evidence of C3."""

PRINTED = {
    "A100-80GB-SXM": (Fraction(312), Fraction(2039)),
    "H100-SXM": (Fraction(1979, 2), Fraction(3350)),
    "H200": (Fraction(1979, 2), Fraction(4800)),
    "L4": (Fraction(242, 2), Fraction(300)),
    "RTX-4090": (Fraction(1652, 10), Fraction(1008)),
    "MI300X": (Fraction(13074, 10), Fraction(5300)),
}
"""Dense 16-bit peaks in 10^12 operations and bandwidths in 10^9 bytes per second; halved where printed for sparsity."""


def pipeline(reading: Sequence[Real], computing: Sequence[Real]) -> Real:
    """When the last chunk is computed: chunks are read one after the other, each computed when read and its turn."""
    done: Real = 0
    for read, compute in zip(accumulate(reading), computing, strict=True):
        done = larger(done, read) + compute
    return done


def limits(reading: Sequence[Real], computing: Sequence[Real]) -> Iterator[Compared]:
    """A pass takes at least the longer of reading and computing, and at most both."""
    both = sum(reading), sum(computing)
    yield at_least(pipeline(reading, computing), larger(*both))
    yield at_most(pipeline(reading, computing), sum(both))


def sizes_agree(sizes: Sizes, context: int, tied: bool, gated: bool) -> Compared:
    """What the library counts of a model."""
    model = shape_of(sizes, tied=tied, gated=gated)
    weights, read, operations, cached = counted(sizes, context, tied=tied, gated=gated)
    sizes_of = model.parameters, model.read_bytes, model.operations_per_token(context), model.kv_bytes_per_token
    return equal(tuple(map(Fraction, sizes_of)), (weights, 2 * read, operations, 2 * cached))


def passes_agree(context: int, batch: int, k: int) -> Iterator[Compared]:
    """The library's passes and calls of a pair on :data:`CARD`."""
    target, draft = times(TARGET, context), times(DRAFT, context)
    cost = Roofline(shape_of(TARGET), shape_of(DRAFT), CARD, context, batch)
    yield computed(cost.target_pass(k).best, seconds(target, k, batch))
    yield computed(cost.draft_pass(k).best, seconds(draft, k, batch))
    more = (seconds(draft, 2, batch) - seconds(draft, 1, batch)) / 2
    call = k * seconds(draft, 1, batch) + seconds(target, k + 1, batch)
    yield computed(cost.call(Chain(k), 0.5).best, call + more)
    yield computed(RooflineTime.of(shape_of(TARGET), CARD, context).seconds(k, batch), seconds(target, k, batch))


def only_reading(context: int, batch: int, k: int) -> Compared:
    """A pass is bound by reading whatever the batch."""
    weights, cache, _, overhead = times(TARGET, context)
    cost = Roofline(shape_of(TARGET), None, CARD, context, batch)
    return computed(cost.target_pass(k).best, weights + batch * cache + overhead)


def printed(name: str) -> Iterator[Compared]:
    """The figures of a data sheet."""
    peak, bandwidth = PRINTED[name]
    yield computed(ACCELERATORS[name].peak_of("bf16"), peak * 10**12)
    yield computed(ACCELERATORS[name].bandwidth, bandwidth * 10**9)


def chunks() -> Any:
    """Three chunks of any times."""
    three = st.tuples(*[st.integers(0, 10**4).map(lambda i: Fraction(i, 100))] * 3)
    return st.fixed_dictionaries({"reading": three, "computing": three})


def chunk_space() -> Space:
    """Every three chunks of positive times."""

    def floats(x: NDArray[np.float64]) -> Case:
        values = tuple(float(value) for value in np.exp(np.clip(x, -30, 30)))
        return {"reading": values[:3], "computing": values[3:]}

    return Space(6, floats)


ROOFLINE: tuple[Step, ...] = (
    valid(
        "with R seconds read and C computed the last chunk is done at f, max(R, C) <= f <= R + C; one more chunk of r "
        "and c is done at max(f, R + r) + c, at least max(R + r, C + c) and at most their sum: a pass takes at least "
        "the longer of reading and computing, and at most both",
        lambda f, R, C, r, c: (
            at_least(larger(f, R + r) + c, larger(R + r, C + c)),
            at_most(larger(f, R + r) + c, R + r + C + c),
        ),
        lambda f, R, C, r, c: [R >= 0, C >= 0, r >= 0, c >= 0, f >= R, f >= C, f <= R + C],
    ),
    valid(
        "equal chunks of r <= c: after i of them f = r + ic, and the next is done at r + (i+1)c; so n take the longer "
        "time nc and one chunk r of the shorter",
        lambda r, c, i: equal(larger(r + i * c, (i + 1) * r) + c, r + (i + 1) * c),
        lambda r, c, i: [r >= 0, c >= r, i >= 1],
    ),
    valid(
        "equal chunks of c <= r: after i of them f = ir + c, and the next is done at (i+1)r + c; so the finer the "
        "chunks, the nearer a pass comes to max(reading, computing)",
        lambda r, c, i: equal(larger(i * r + c, (i + 1) * r) + c, (i + 1) * r + c),
        lambda r, c, i: [c >= 0, r >= c, i >= 1],
    ),
    valid(
        "weights are read once per pass: with more sequences B <= E a pass takes no longer per sequence",
        lambda w, x, d, o, B, E: at_most(B * (larger(w + E * x, E * d) + o), E * (larger(w + B * x, B * d) + o)),
        lambda w, x, d, o, B, E: [w >= 0, x >= 0, d >= 0, o >= 0, B > 0, E >= B],
    ),
    valid(
        "while computing m tokens takes no longer than reading, a pass on m takes as long as a pass on one",
        lambda read, token, m: equal(larger(read, m * token), larger(read, token)),
        lambda read, token, m: [read >= 0, token >= 0, m >= 1, m * token <= read],
    ),
)
"""What the roofline says of a pass, and how near a pass can come to it."""

C3 = Entry(
    id="C3",
    title="Seconds of a pass by the roofline",
    kind="lower bound",
    plain="a pass takes at least max(bytes / bandwidth, operations / peak) + overhead, and approaches it if "
    "reading and computing overlap in fine chunks; weights are read once per pass, the cache once per sequence and "
    "pass; or an affine fit a + b * batch * tokens + c * batch * context to timings",
    latex=r"t(m,B)=\max\Big(\frac{W+B\,K}{\text{bandwidth}},\frac{B\,m\,\text{operations}}{\text{peak}}\Big)+t_0",
    assumptions=(
        "weights that a pass reads are known; of a mixture of experts they are those that its tokens touch (C7)",
        "bandwidth and peak are those of the data sheet: an estimate, and an optimistic one",
    ),
    calculators=public("cost", "ACCELERATORS Accelerator AffineCost AffineTime ModelShape Roofline RooflineTime"),
    evidence=(
        proof("a pipeline of chunks, for any number of them", ROOFLINE),
        exact(
            Claim(
                "n equal chunks take the longer time and an n-th of the shorter",
                lambda reading, computing, chunks: equal(
                    pipeline([reading / chunks] * chunks, [computing / chunks] * chunks),
                    larger(reading, computing) + smaller(reading, computing) / chunks,
                ),
            ),
            lambda effort: all_of(
                reading=map(Fraction, range(6)),
                computing=map(Fraction, range(6)),
                chunks=range(1, effort.pick(8, 30) + 1),
            ),
            over="reading and computing 0 to 5, up to 8 chunks",
            wrong=Claim(
                "reading and computing never overlap",
                lambda reading, computing, chunks: equal(
                    pipeline([reading / chunks] * chunks, [computing / chunks] * chunks), reading + computing
                ),
            ),
        ),
        exact(
            Claim("weights, bytes read, operations and cache of a model, matrix by matrix", sizes_agree),
            lambda effort: all_of(
                sizes=(TARGET, DRAFT, (3, 6, 10, 3, 3, 4, 17)), context=(0, 5), tied=(False, True), gated=(False, True)
            ),
            over="three models, tied or not, gated or not, at two contexts",
            wrong=Claim(
                "keys and values have as many heads as queries",
                lambda sizes, context, tied, gated: equal(
                    Fraction(shape_of(sizes).kv_bytes_per_token), 4 * sizes[0] * sizes[3] * sizes[5]
                ),
            ),
        ),
        agreement(
            Claim("passes and calls of a pair on a made-up card", passes_agree),
            lambda effort: all_of(context=(0, 3, 40, 500), batch=(1, 2, 7, 100, 10**4), k=(1, 2, 5)),
            over="contexts up to 500, batches up to 10^4, chains up to 5",
            wrong=Claim("reading decides at every batch", only_reading),
        ),
        agreement(
            Claim("the figures of the data sheets, dense", printed),
            lambda effort: [{"name": name} for name in ACCELERATORS],
            over="every accelerator",
            wrong=Claim(
                "peaks with sparsity",
                lambda name: computed(ACCELERATORS[name].peak_of("bf16"), 2 * PRINTED[name][0] * 10**12),
            ),
        ),
        FIT,
        searched(
            Claim("a pass takes at least the longer of reading and computing, and at most both", limits),
            chunks,
            spaces=(chunk_space(),),
            wrong=Claim(
                "a pass takes the longer of reading and computing",
                lambda reading, computing: at_most(pipeline(reading, computing), larger(sum(reading), sum(computing))),
            ),
        ),
    ),
)
