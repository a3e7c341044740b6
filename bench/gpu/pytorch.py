# The PyTorch side of the GPU bench: the workloads of workloads.ts under the same names, one line of JSON each with
# the milliseconds per run. `pytorch.py [WORKLOAD…]`; a workload that fails prints its error. CUDA events around
# batches of runs measure the time.

import json
import sys

import torch
import torch.nn.functional as F

BATCH_MS, BATCHES = 40, 9
MANY = 2**28
ROWS, COLUMNS, SIDE, BATCH, KERNELS = 16384, 4096, 4096, 512, 200


def rand(*shape, dtype=torch.float32):
    return torch.rand(*shape, device="cuda").to(dtype)


def on(make, body):
    """Inputs are made once; a run works on them."""

    def prepare():
        inputs = make()
        return lambda: body(*inputs)

    return prepare


def captured(run):
    """A run as a CUDA graph, as gradloom's are."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(4):
            run()
    torch.cuda.current_stream().wait_stream(side)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        kept = run()
    return lambda: (graph.replay(), kept)[0]


def chain():
    x = torch.zeros(1024, device="cuda")

    def steps():
        y = x
        for _ in range(KERNELS):
            y = y + 1
        return y

    return captured(steps)


def mnist():
    model = torch.nn.Sequential(
        torch.nn.Conv2d(1, 32, 5), torch.nn.ReLU(), torch.nn.Conv2d(32, 32, 5), torch.nn.ReLU(),
        torch.nn.BatchNorm2d(32), torch.nn.MaxPool2d(2),
        torch.nn.Conv2d(32, 64, 3), torch.nn.ReLU(), torch.nn.Conv2d(64, 64, 3), torch.nn.ReLU(),
        torch.nn.BatchNorm2d(64), torch.nn.MaxPool2d(2), torch.nn.Flatten(), torch.nn.Linear(576, 10),
    ).cuda()
    optimizer = torch.optim.Adam(model.parameters(), fused=True, capturable=True)
    x = torch.randint(0, 256, (BATCH, 1, 28, 28), device="cuda", dtype=torch.uint8)
    y = torch.randint(0, 10, (BATCH,), device="cuda")

    def loss_of(images, labels):
        return F.cross_entropy(model(images.float() / 255), labels)

    compiled = torch.compile(loss_of)

    def step():
        optimizer.zero_grad()
        loss = compiled(x, y)
        loss.backward()
        optimizer.step()
        return loss

    return captured(step)


WORKLOADS = {
    "add": on(lambda: (rand(MANY), rand(MANY)), lambda a, b: a + b),
    "sum": on(lambda: (rand(MANY),), lambda a: a.sum()),
    "fused": on(lambda: (rand(MANY), rand(MANY), rand(MANY)), lambda a, b, c: torch.relu(a * b + c) * 0.5),
    "softmax": on(lambda: (rand(ROWS, COLUMNS),), lambda x: torch.softmax(x, -1)),
    "layernorm": on(lambda: (rand(ROWS, COLUMNS),), lambda x: F.layer_norm(x, (COLUMNS,))),
    "var": on(lambda: (rand(ROWS, COLUMNS),), lambda x: x.var(-1)),
    "matmul-bf16": on(lambda: [rand(SIDE, SIDE, dtype=torch.bfloat16) - 0.5 for _ in range(2)], torch.matmul),
    "matmul-f16": on(lambda: [rand(SIDE, SIDE, dtype=torch.float16) - 0.5 for _ in range(2)], torch.matmul),
    "matmul-f32": on(lambda: [rand(SIDE, SIDE) - 0.5 for _ in range(2)], torch.matmul),
    "chain": chain,
    "mnist": mnist,
}


def batch(run, n):
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    for _ in range(n):
        run()
    end.record()
    torch.cuda.synchronize()
    return start.elapsed_time(end) / n


def measure(name):
    run = WORKLOADS[name]()
    for _ in range(3):
        run()
    torch.cuda.synchronize()
    n = max(1, min(500, round(BATCH_MS / batch(run, 3))))
    batch(run, n)
    return {"workload": name, "gpu": torch.cuda.get_device_name(), "ms": [batch(run, n) for _ in range(BATCHES)]}


for name in sys.argv[1:] or WORKLOADS:
    try:
        line = measure(name)
    except Exception as e:
        line = {"workload": name, "error": str(e).split("\n")[0]}
    print(json.dumps(line), flush=True)
    torch.cuda.empty_cache()
