"""Three command lines that end the help of each command; a test reads every one."""

from __future__ import annotations

EXAMPLES: dict[str, tuple[tuple[str, str], ...]] = {
    "measure": (
        ("spectheory measure --target TARGET --draft DRAFT --out measured/", "two models, on the built-in prompts"),
        ("spectheory measure --target TARGET --draft HEAD --depth 5 --out head/", "a draft head"),
        ("spectheory measure --prompts mine.jsonl --temperature 0 --out measured/", "your prompts, greedily"),
    ),
    "import": (
        ("spectheory import before.txt after.txt --out served/", "two scrapes of a server's /metrics"),
        ("spectheory import server.log --out served/", "an engine's log"),
        ("spectheory import target.json draft.json --out measured/", "log-probabilities of two models"),
    ),
    "predict": (
        ("spectheory predict builtin:", "a recorded trace: nothing to install or measure"),
        ("spectheory predict served/ --c 0.05", "an engine's counts, with the cost of a draft step"),
        ("spectheory predict builtin: --what-if draft-kl=-10%", "what a better draft would bring"),
    ),
    "plan": (
        ("spectheory plan --trace small=a/ --trace large=b/", "which of two drafts"),
        (
            "spectheory plan measured/ --hardware L4 --batch 8 --target-architecture T",
            "on an accelerator that is not here",
        ),
        ("spectheory plan --bench runs", "from timed runs of a server"),
    ),
    "validate": (
        ("spectheory validate --out validated/", "our decoders with the built-in pair"),
        ("spectheory validate --engine openvino --out validated/", "an engine that runs here"),
        ("spectheory validate --server http://localhost:8000 --out validated/", "a running server"),
    ),
    "bench": (
        ("spectheory bench --engine llama.cpp --out timed/", "the built-in pair on an engine that runs here"),
        ("spectheory bench --server http://localhost:8000 --out timed/", "a running server, at the k that it drafts"),
        ("spectheory bench --engine vllm --k 1,3,5 --batch 1,4,32 --out timed/", "more points"),
    ),
    "judge": (
        ("spectheory judge calls.jsonl --target TARGET --draft DRAFT", "reads the engine's texts with both models"),
        ("spectheory judge calls.jsonl trace/", "with a trace of the same texts"),
        ("spectheory judge calls.jsonl trace/ --rule token", "is it token verification?"),
    ),
    "compare": (
        ("spectheory compare before/ after/", "an engine before and after an upgrade"),
        ("spectheory compare a/ b/ --k 4 --rule block", "two traces, under one rule"),
        ("spectheory compare a/ b/ --texts ta/ --texts tb/", "is it the texts, or the engine?"),
    ),
    "noise": (
        ("spectheory noise builtin: --requests 20", "how far do two short runs differ?"),
        ("spectheory noise served/ --requests 100", "from a log of each request's calls"),
        ("spectheory noise metrics.txt --calls 500", "how far do lines of a server's log jump?"),
    ),
    "gate": (
        ("spectheory gate counts/ --expect trace/", "against a measured pair"),
        ("spectheory gate counts/ --expect before/", "against an earlier run"),
        ("spectheory gate counts/ --expect expected.json --alarm 0.01", "against a number"),
    ),
    "watch": (
        ("spectheory watch http://localhost:8000 --expect trace/", "against a measured pair, until Ctrl-C"),
        ("spectheory watch URL --expect counts/ --out seen/ --listen 9400", "kept on disk, and for Prometheus"),
        ("spectheory watch URL --expect trace/ --for 8h --exit-on-alarm", "status 1 when acceptance falls"),
    ),
    "why": (
        ("spectheory why --speedup 1.05 --acceptance 85% --k 3", "accepted, and no faster: what does a call cost?"),
        ("spectheory why served/ --speedup 1.2 --c 0.05 --expect trace/", "from an engine's counts"),
        ("spectheory why --bench runs", "from timed runs with and without drafts"),
    ),
    "validations": (
        ("spectheory validations validated/ --out page/", "one run as a page"),
        ("spectheory validations one/ two/ --out page/", "two runs"),
        ("spectheory validations runs/a runs/b runs/c --out page/", "three runs"),
    ),
    "rules": (
        ("spectheory rules --target-pmf 0.5,0.3,0.2 --draft-pmf 0.2,0.3,0.5", "two pmfs"),
        ("spectheory rules builtin: --candidates 2", "along a trace, two candidates at a position"),
        ("spectheory rules --target-pmf p.npy --draft-pmf q.npy --rule token --rule race", "two of the rules"),
    ),
    "bounds": (
        ("spectheory bounds builtin:", "every limit of a trace"),
        ("spectheory bounds --target-nats 1.9 --draft-nats 2.1", "from two perplexities"),
        ("spectheory bounds --need 2 --c 0.1", "the acceptance that a speed-up of 2 needs"),
    ),
    "tree": (
        ("spectheory tree --rank-pmf 0.6,0.2,0.1 --nodes 8", "for i.i.d. ranks"),
        ("spectheory tree measured/ --rule race --nodes 16", "for the texts of a trace"),
        ("spectheory tree measured/ --nodes 16 --max-depth 4", "at most four draft passes"),
    ),
    "verify": (
        ("spectheory verify", "every statement"),
        ("spectheory verify A3 B7", "two of them"),
        ("spectheory verify --claim mine.py", "a claim of yours"),
    ),
    "figures": (
        ("spectheory figures --out figures/", "all of them"),
        ("spectheory figures race --out figures/", "one"),
        ("spectheory figures race --out figures/ --redraw", "again, from its data"),
    ),
    "simulate": (
        ("spectheory simulate list", "every kind, with its options"),
        ("spectheory simulate token --target-pmf 0.5,0.5 --draft-pmf 0.9,0.1", "one setting"),
        ("spectheory simulate race --target-pmf 0.5,0.5 --draft-pmf 0.9,0.1 --seed 1", "other draws"),
    ),
    "samples": (
        ("spectheory samples", "what ships"),
        ("spectheory samples --out samples/", "write it"),
        ("spectheory samples --json", "as an object"),
    ),
    "doctor": (
        ("spectheory doctor", "what is installed"),
        ("spectheory doctor --target TARGET --draft DRAFT", "do the tokenizers agree?"),
        ("spectheory doctor --json", "as an object"),
    ),
}
