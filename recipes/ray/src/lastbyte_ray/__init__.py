"""Measures the shards of a Lastbyte study on a Ray cluster, a task for each, and gathers them."""

import argparse
import subprocess
import sys
from pathlib import Path

import ray


class ShardFailed(Exception):
    """A shard failed; what it said."""


@ray.remote
def measure(command: list[str]) -> None:
    """Measures a shard. The child dies with this worker: nobody would wait for it any more, and it would keep the shard's
    folder from the next try."""
    ended = subprocess.run(
        ["setpriv", "--pdeathsig", "KILL", *command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
    )
    if ended.returncode != 0:
        raise ShardFailed(f"{' '.join(command)}: {ended.stdout.strip()}")


def measure_shards(
    study: str,
    shards: int,
    folder: Path,
    *,
    program: str = "lastbyte",
    cpus: float = 1,
    retries: int = 5,
) -> list[Path]:
    """Measures all shards of a study, whose folders will be in `folder`, on the cluster that Ray is connected to.

    Raises ShardFailed, or an exception of Ray, when one can't be measured."""
    task = measure.options(num_cpus=cpus, max_retries=retries, retry_exceptions=[ShardFailed])
    folders = [folder / str(shard) for shard in range(1, shards + 1)]
    tasks = {}
    for shard, path in enumerate(folders, 1):
        command = [program, "run", study, "--shard", f"{shard}/{shards}", "-o", str(path), "--resume"]
        tasks[task.remote(command)] = shard
    while tasks:
        [done], _ = ray.wait(list(tasks))
        shard = tasks.pop(done)
        ray.get(done)
        print(f"lastbyte-ray: shard {shard}/{shards} is complete", file=sys.stderr, flush=True)
    return folders


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(prog="lastbyte-ray", description=__doc__)
    parser.add_argument("study", metavar="STUDY.toml", type=Path)
    parser.add_argument("--shards", metavar="N", type=int, required=True, help="tasks to make of it")
    parser.add_argument("-o", "--output", metavar="DIR", type=Path, required=True, help="the folder for the results")
    parser.add_argument("--folder", metavar="DIR", type=Path, help="the folder for shards [default: DIR.shards]")
    parser.add_argument("--program", metavar="PATH", default="lastbyte", help="the program [default: lastbyte]")
    parser.add_argument("--address", metavar="ADDRESS", help="of the cluster [default: RAY_ADDRESS, else this machine]")
    parser.add_argument("--cpus", metavar="N", type=float, default=1, help="of a shard [default: 1]")
    parser.add_argument("--retries", metavar="N", type=int, default=5, help="of a shard [default: 5]")
    asked = parser.parse_args()
    if asked.shards < 1:
        parser.error("--shards must be 1 or more")
    study, output = asked.study.absolute(), asked.output.absolute()
    folder = (asked.folder or output.with_name(output.name + ".shards")).absolute()
    ray.init(address=asked.address, log_to_driver=False)
    try:
        folders = measure_shards(
            str(study), asked.shards, folder, program=asked.program, cpus=asked.cpus, retries=asked.retries
        )
    except (ShardFailed, ray.exceptions.RayError) as error:
        sys.exit(f"lastbyte-ray: {error}")
    finally:
        ray.shutdown()
    gather = [asked.program, "run", "--gather", *map(str, folders), "-o", str(output)]
    sys.exit(subprocess.run(gather, check=False).returncode)
