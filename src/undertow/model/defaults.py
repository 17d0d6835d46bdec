"""All heuristic constants of the model: what each is for, and in brackets what to run before it is changed.

`bench X` means ``undertow bench X``, `test_x` a file of the tests; *numerics*: any value of that size works.
What users can set is in `undertow.config`.
"""

# When to sweep, adapt and stop (control.py)
SWEEPS_PER_ROUND = 6
"""Sweeps per round once the window is full and the slice fits: what still moves then moves slowly and continues with
the next slice; adding components need not wait for it. 30 sweeps changed errors by 1 % (bench recorded)."""
MAX_ROUNDS = 8
"""Rounds of sweeps, pruning and adding per slice (bench changes: a rank that jumps by 3)."""
ADAPT_EVERY = 4
"""Slots between checks of the rank once the window is full; slices that do not fit are checked immediately. Same errors
at four fifths of the time (bench video)."""
MISFIT = 2.0
"""Noise variance of a new slice, over the usual one, beyond which its rank is checked (bench changes, test_control)."""
CHANGED = 9.0
"""φ of a new slice beyond which the stream has changed: three times the usual noise (bench changes)."""
OVER_RELAXATION = 0.6
"""Row means go beyond their optimum by this fraction of the way: errors −2 % on video, up to −14 % on drifting streams;
0.5 and 0.7 do about as well (bench accuracy, bench recorded)."""
RELAXATION_AFTER = 2
"""Sweeps of a step before over-relaxation: from the second sweep on, easy streams take more sweeps (bench accuracy)."""
NOISE_FALLING = 0.05
"""Not converged while the noise variance falls by more than this fraction per sweep. Generated traffic with a fifth of
its entries off, and a level: one seed of two has 18 times the error without."""
RESOLUTION = 30
"""Moves below this many machine epsilons of the slice's size count as converged (numerics)."""

# Adding and pruning components (phases/judge.py, candidate.py)
MAX_ADDED = 4
"""Components added per round: more had better be swept together first (bench changes)."""
CANDIDATE_SWEEPS = 8
"""Sweeps of the rank-one fit of a candidate (test_candidate)."""
CANDIDATE_MIN_NOISE = 1e-6
"""A candidate may lower the noise variance by this factor at most; the sweeps that follow do the rest (numerics)."""
POWER_ITERATIONS = 6
"""Power iterations for the spectral start of a candidate (test_candidate)."""
ELBO_MARGIN = 10
"""A candidate must raise the ELBO by this many machine epsilons of it: float32 cannot tell less (numerics)."""
NEGLIGIBLE = 1e-3
"""With `start="svd"` a component below this fraction of the largest's size does not count (the paper's figures)."""

# Contaminated normal noise (noise/)
NO_OUTLIERS = 1e-30
"""α0 of the prior of π where nothing can be an outlier (numerics)."""
SLICE_PRIOR = 30.0
"""ν: observations that the prior of φ_t around 1 is worth; without it slices of ten entries fit their own noise
(bench accuracy, rows with few observed entries)."""
SMALLEST_SCALE = 1e-3
"""Smallest φ of a new slice by its median (numerics)."""
CHI_SQUARE_MEDIAN = 0.4549
"""Median of the square of a standard normal variable (mathematics)."""
MEDIAN_SAMPLE = 4096
"""Entries that a median is taken of, about: error of 2 %, no time (bench video)."""
TOO_WIDE = 0.5
"""Noise variance by the median, over that in use, below which shrinking the noise is tried (test_tempering; bench
recorded: Abilene with a fifth of its entries raised has five times the error without)."""
SHRINK_SWEEPS = 4
"""Updates of the outlier model after its noise was shrunk, before the ELBO decides (test_tempering)."""
POOL_LARGEST = 1000.0
"""α from here on means one noise variance for all entries (test_pooled)."""
POOL_SMALLEST = 1.5
"""α > 1 keeps the predictive variance b / (α − 1) of an entry never seen finite (mathematics)."""
POOL_STEP = 1.5
"""α may change by this factor per slice: slowly, since a stream that starts unexplained must not have its structure
taken for uneven noise (bench recorded)."""
POOL_ITERATIONS = 4
"""Fixed-point iterations for b; a safe step is there where they fail (test_pooled)."""
LEAST_NOISE_POWER = 1.5
"""Least noise variance: machine epsilon to this power, in units of the stream (numerics; test_spikes)."""

# Robust initialisation of a slice (noise/robust_start.py)
START_ITERATIONS = 8
"""Most reweighted regressions, in each of both stages (bench faults)."""
START_LIKELY = 2
"""Turns of each stage that a GPU makes before it asks the host whether another is due (bench video)."""
START_TOLERANCE = 0.01
"""Converged once no outlier probability moves by more (bench faults)."""
SCALE_TOLERANCE = 0.1
"""The first stage has converged once ln φ moves by less (bench faults)."""
FEW_OUTLIERS_ITERATIONS = 4
"""Iterations in which φ, κ and ρ of the few-outliers start find each other (bench faults, test_robust_start)."""

# Local level (level.py)
WALK_RATIOS = (1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0)
"""ψ to choose from: variance of a step of the walk over that of the noise (bench recorded: traffic, sensors)."""
WALK_TEMPER = 0.2
"""Of the likelihoods of ψ: data say less about it than they would if they were random walks. With 1, errors on Abilene
and Intel lab are 8 and 6 % larger (bench tracker --rows abilene-50,intel --method cp --set level=true)."""
WALK_PRIOR = 3.0
"""Entries that the prior 1/ψ is worth beside those of the stream, in how common each ψ is (test_level)."""
WALK_ITERATIONS = 10
"""Fixed-point iterations for that (test_level)."""
INITIAL_WALK = 1e-3
"""q before any data."""
INITIAL_VARIANCE = 0.1
"""v before any data: small, so that the low rank explains first what it can (bench recorded)."""
BANK_FORGETTING = 0.97
"""What a slice back counts in the choice of ψ (bench recorded)."""
LARGEST_SQUARE = 9.0
"""Squared standardised residual beyond which a prediction error counts no more: three deviations (test_level, bench
faults)."""
UNKNOWN = 1e6
"""Variance of a filter before its entry was seen, over that of the noise (numerics)."""
NOISE_STRENGTH = 0.5
"""Observations that the model's noise counts in a filter's own (bench recorded)."""

# Exponentially discounted statistics (factors/discounted.py)
RETENTION_PRIOR = 0.5
"""ε: the prior of δ is ∝ δ^−(1−ε)R'/2. Where nothing drifts, a row's discounted statistics weigh ε/(1−ε) times its
window at most. Without δ errors on drifting streams are up to eight times as large (bench accuracy: fast)."""
RIDGE = 1e-9
"""Ridge of the discounted statistics alone, over the prior's precision, for components that have none (numerics)."""

# The paper's outlier model (noise/gaussian_gamma.py)
PAPER_PRIOR = 1e-6
"""a0 = b0 of τ and γ, as in the paper, in units of the stream."""
PAPER_ITERATIONS = 20
"""Iterations for temporal row and sparse term of a slice whose factors are fixed (the paper's figures)."""

# Range and reports (phases/begin.py, report.py)
LARGEST_VALUE = 1e9
"""Values beyond this many units cannot be squared and weighted safely in float32; they are outliers anyway
(test_spikes)."""
FAR_NOISIER = 100
"""Noise variance of a slice, over the usual, from which the slice is reported as full of outliers (bench faults)."""

# Speed and memory: these change no result beyond rounding
SMALL_WINDOW = 2**15
"""Entries up to which a window is in cache anyway (bench video)."""
SLICES_TOGETHER = 4
"""Slices of a large window whose variances are multiplied out together (bench video)."""
SMALL_PARTIAL = 2**18
"""Numbers up to which an array in the middle of a sweep is summed as one operation (bench compile, bench video)."""
SMALL_SLICE = 2**13
"""The same for what belongs to a single slice (bench compile, bench video)."""
SOLVE_BLOCK = 2048
"""Rows of a sparse window that are solved together, so that temporaries stay small (test_observed)."""
CHUNK_NUMBERS = {"cpu": 2**18, "other": 2**25}
"""Numbers of a chunk of sparse entries: what a cache holds, or keeps a GPU busy (lab/speed, sparse cases)."""
ELIMINATION_NUMBERS = 2**16
"""Numbers that small matrices have that are eliminated together on a CPU: what a cache holds (bench video)."""
LEAST_DIRECTION_SQUARINGS = 7
"""k of `symmetric.least_direction` (test_symmetric)."""
LIKELY_SWEEPS = 2
"""Sweeps that a GPU makes before it asks the host whether another is due, those that are not due in vain (bench
video)."""
UNASKED_WINDOW = 2**22
"""Entries of a window from which on a sweep in vain takes longer than asking the host (bench video)."""
KERNEL_LARGEST = 64
"""Sizes up to which a matrix fits into the registers of a GPU (bench video)."""
KERNEL_NUMBERS = 256
"""Numbers that a block of small matrices has in the GPU kernel, at least: enough for all threads of a warp."""
