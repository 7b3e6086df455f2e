"""Runs `lastbyte-ray` on a cluster of two nodes on this machine, and has one die at a moment that SEED says:

    test_cluster.py STUDY.toml SHARDS RESULTS"""

import glob
import os
import random
import subprocess
import sys
import time

from ray.cluster_utils import Cluster

study, shards, results = sys.argv[1:]
STORE = 80_000_000
cluster = Cluster(
    initialize_head=True,
    head_node_args={"num_cpus": 0, "include_dashboard": False, "object_store_memory": STORE},
)
nodes = [cluster.add_node(num_cpus=1, object_store_memory=STORE) for _ in range(2)]
driver = subprocess.Popen(
    ["lastbyte-ray", study, "--shards", shards, "-o", results]
    + ["--program", os.environ["LASTBYTE"], "--address", cluster.address],
    stdout=subprocess.DEVNULL,
)


def parts() -> int:
    """Blocks that are finished."""
    return len(glob.glob(f"{results}.shards/*/parts/*.parquet"))


while parts() == 0:
    assert driver.poll() is None, "it ended before it began"
    time.sleep(0.1)
time.sleep(random.Random(int(os.environ["SEED"])).uniform(0, 3))
print(f"a node dies, with {parts()} blocks finished", flush=True)
assert driver.poll() is None, "it ended before a node died: measure more"
cluster.remove_node(nodes[0], allow_graceful=False)
code = driver.wait()
cluster.shutdown()
sys.exit(code)
