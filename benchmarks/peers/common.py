"""Shared pieces of the recovery baselines: workload, event log, fault injection, analysis.

Everything a baseline measures comes from one append-only JSON-lines file that all
ranks write to, plus the wall-clock time at which the driver sent SIGKILL. All
processes are on one host, so time.time() is one clock.
"""

import json
import os
import signal
import statistics
import subprocess
import sys
import time

# ----------------------------------------------------------------- workload

D_MODEL, N_LAYER, N_HEAD, VOCAB, SEQ, BATCH = 384, 6, 6, 1024, 32, 2


def build_model():
    """A plain 11.4M-parameter transformer: 46 MB weights + 91 MB Adam state per rank."""
    import torch
    from torch import nn
    import torch.nn.functional as F

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.ln1, self.ln2 = nn.LayerNorm(D_MODEL), nn.LayerNorm(D_MODEL)
            self.qkv = nn.Linear(D_MODEL, 3 * D_MODEL)
            self.proj = nn.Linear(D_MODEL, D_MODEL)
            self.up = nn.Linear(D_MODEL, 4 * D_MODEL)
            self.down = nn.Linear(4 * D_MODEL, D_MODEL)

        def forward(self, x):
            b, t, d = x.shape
            q, k, v = self.qkv(self.ln1(x)).view(b, t, 3, N_HEAD, d // N_HEAD).permute(2, 0, 3, 1, 4)
            a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.proj(a.transpose(1, 2).reshape(b, t, d))
            return x + self.down(F.gelu(self.up(self.ln2(x))))

    class LM(nn.Module):
        def __init__(self):
            super().__init__()
            self.emb = nn.Embedding(VOCAB, D_MODEL)
            self.blocks = nn.Sequential(*[Block() for _ in range(N_LAYER)])
            self.head = nn.Linear(D_MODEL, VOCAB)

        def forward(self, tok):
            logits = self.head(self.blocks(self.emb(tok[:, :-1])))
            return F.cross_entropy(logits.flatten(0, 1), tok[:, 1:].flatten())

    torch.manual_seed(1234)
    return LM()


def build_optim(model):
    import torch
    return torch.optim.Adam(model.parameters(), lr=1e-4)


def batch_for(step, shard):
    """Counter-based data: the batch is a pure function of (step, shard)."""
    import torch
    g = torch.Generator().manual_seed(1_000_003 * step + shard)
    return torch.randint(0, VOCAB, (BATCH, SEQ + 1), generator=g)


def worker_setup():
    import torch
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)


def digest(model):
    """Bit-exact fingerprint of the parameters."""
    import hashlib
    h = hashlib.sha256()
    for p in model.state_dict().values():
        h.update(p.detach().contiguous().numpy().tobytes())
    return h.hexdigest()[:16]


# ---------------------------------------------------------------- event log

_fd = None


def emit(ev, **kw):
    global _fd
    if _fd is None:
        _fd = os.open(os.environ["EVENTS"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    rec = {"t": time.time(), "cpu": time.process_time(), "ev": ev, "pid": os.getpid(), **kw}
    os.write(_fd, (json.dumps(rec) + "\n").encode())


def read_events(path):
    if not os.path.exists(path):
        return []
    out = []
    with open(path) as f:
        for line in f:
            if line.endswith("\n"):
                out.append(json.loads(line))
    return out


# ------------------------------------------------------------------- driver


def wait_until(cond, timeout, poll=0.02, what=""):
    end = time.time() + timeout
    while time.time() < end:
        v = cond()
        if v:
            return v
        time.sleep(poll)
    raise TimeoutError(what)


def psi():
    """CPU pressure (avg10 'some') - the machine may be shared, so record it per trial."""
    try:
        return float(open("/proc/pressure/cpu").readline().split("avg10=")[1].split()[0])
    except Exception:
        return None


def free_port():
    import socket
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def base_env(workdir, **kw):
    env = dict(os.environ)
    env.update(EVENTS=os.path.join(workdir, "events.jsonl"), OMP_NUM_THREADS="1",
               GLOO_SOCKET_IFNAME="lo", TP_SOCKET_IFNAME="lo", PYTHONUNBUFFERED="1",
               TORCH_CPP_LOG_LEVEL="ERROR", PYTHONPATH=os.path.dirname(os.path.abspath(__file__)))
    env.update({k: str(v) for k, v in kw.items()})
    return env


def spawn(cmd, env, log):
    """Start a child in its own session so that the driver can end exactly what it started."""
    return subprocess.Popen(cmd, env=env, stdout=open(log, "ab"), stderr=subprocess.STDOUT,
                            start_new_session=True)


def end(procs):
    for p in procs:
        if p.poll() is None:
            try:
                os.killpg(p.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
    for p in procs:
        p.wait()


def kill_rank_at(events_path, rank, step, world, timeout=180):
    """SIGKILL the process of `rank` once it has logged `step`. Returns (t_kill, pid).

    Gate: every rank must have completed a recent step in one group of the full size, so that
    a slow start (elastic runtimes may begin with fewer members) is not measured as a recovery.
    """
    def seen():
        last = {}
        for e in read_events(events_path):
            if e["ev"] == "step":
                last[e["rank"]] = e
        if len(last) < world or rank not in last or last[rank]["step"] < step:
            return None
        ok = all(e["world"] == world and e["gen"] == last[rank]["gen"] and e["step"] >= step - 1
                 for e in last.values())
        return last[rank] if ok else None
    e = wait_until(seen, timeout, what=f"rank {rank} never reached step {step} in a full group")
    t = time.time()
    os.kill(e["pid"], signal.SIGKILL)
    return t, e["pid"]


def analyse(events, t_kill, world):
    """Recovery metrics from the event log.

    A step event carries gen (membership generation) and world (group size). Recovery is
    the first optimizer step completed by every member of a generation newer than the one
    that was killed; full strength is the same with the original world size.
    """
    steps = [e for e in events if e["ev"] == "step"]
    old_gen = max(e["gen"] for e in steps if e["t"] <= t_kill)
    # an in-flight step may still complete on survivors after the kill; it belongs to old_gen
    last_done = max(e["step"] for e in steps if e["gen"] == old_gen)
    new = [e for e in steps if e["gen"] > old_gen and e["t"] > t_kill]
    if not new:
        return None

    def first_complete(cands):
        groups = {}
        for e in cands:
            groups.setdefault((e["gen"], e["step"]), {})[e["rank"]] = e
        ok = [(max(e["t"] for e in g.values()), k, g) for k, g in groups.items()
              if len(g) >= next(iter(g.values()))["world"]]
        return min(ok, key=lambda x: x[0]) if ok else None

    first = first_complete(new)
    full = first_complete([e for e in new if e["world"] >= world])
    caught = [e["t"] for e in new if e["step"] > last_done]
    first_step = min(e["step"] for e in new)
    return {
        "recovery_s": round(first[0] - t_kill, 3) if first else None,
        "recovery_world": next(iter(first[2].values()))["world"] if first else None,
        "full_strength_s": round(full[0] - t_kill, 3) if full else None,
        "new_progress_s": round(min(caught) - t_kill, 3) if caught else None,
        "last_step_before": last_done,
        "first_step_after": first_step,
        "steps_lost": max(0, last_done - first_step + 1),
        "state_kept": first_step > 0,      # False: training silently began again from step 0
        "marks": marks(events, t_kill),
    }


def marks(events, t_kill):
    """First and last time of each lifecycle event after the kill (seconds)."""
    m = {}
    for e in events:
        if e["ev"] != "step" and e["t"] > t_kill:
            m.setdefault(e["ev"], []).append(round(e["t"] - t_kill, 3))
    return {k: [v[0], v[-1]] for k, v in m.items()}


def cpu_ms(events, lo=5, hi=10**9):
    """Median CPU milliseconds per step of rank 0: robust against load from other jobs."""
    ts = [e["cpu"] for e in events if e["ev"] == "step" and e["rank"] == 0 and lo <= e["step"] <= hi]
    d = [b - a for a, b in zip(ts, ts[1:]) if b > a]
    return round(1000 * statistics.median(d), 1) if d else None


def results():
    """Where results go: the folder that RESULTS names, or one beside this file."""
    return os.environ.get("RESULTS") or os.path.join(os.path.dirname(os.path.abspath(__file__)), "results")


def archive(events_path, name, i):
    """Keep the raw event log of a trial, for audit."""
    import shutil
    d = os.path.join(results(), "events")
    os.makedirs(d, exist_ok=True)
    if os.path.exists(events_path):
        shutil.copy(events_path, os.path.join(d, f"{name}_{i}.jsonl"))
    keep = os.environ.get("KEEP_LOGS")           # a folder: keep the workers' output of every trial
    if keep:
        wd = os.path.dirname(events_path)
        for f in os.listdir(wd):
            if f.startswith("log"):
                os.makedirs(keep, exist_ok=True)
                shutil.copy(os.path.join(wd, f), os.path.join(keep, f"{name}_{i}.{f}"))


def step_ms(events, lo=5, hi=10**9):
    """Median step-to-step interval of rank 0 in ms (steady state)."""
    ts = [e["t"] for e in events if e["ev"] == "step" and e["rank"] == 0 and lo <= e["step"] <= hi]
    d = [b - a for a, b in zip(ts, ts[1:])]
    return round(1000 * statistics.median(d), 1) if d else None


def summarise(name, trials, extra=None):
    def med(k):
        # medians only over trials that kept their state; steady-state keys over all
        v = [t[k] for t in trials if t.get(k) is not None and t.get("state_kept", True)]
        return round(statistics.median(v), 3) if v else None
    keys = ("recovery_s", "full_strength_s", "new_progress_s", "steps_lost", "step_ms", "cpu_ms", "psi")
    # a trial that never recovered is a result, not a gap: it is counted, never dropped silently
    faulted = [t for t in trials if "recovery_s" in t]
    res = {"name": name, "n": len(trials), "recovered": f"{sum(t['recovery_s'] is not None for t in faulted)}/{len(faulted)}",
           "state_kept": f"{sum(bool(t.get('state_kept')) for t in faulted)}/{len(faulted)}",
           "median_of_recovered": {k: med(k) for k in keys}, "trials": trials, **(extra or {})}
    d = results()
    os.makedirs(d, exist_ok=True)
    with open(os.path.join(d, name + ".json"), "w") as f:
        json.dump(res, f, indent=1)
    print(json.dumps({k: v for k, v in res.items() if k != "trials"}), flush=True)
    for t in trials:
        print("  ", json.dumps(t), flush=True)
    return res


PY = sys.executable
