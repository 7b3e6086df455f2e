"""Runs the pods of a Job of Kubernetes, one after the other, in what its manifest gives them:

    test.py MANIFEST VOLUME PROGRAM CACHE

The program and its cache are the image. What a container's runtime adds, such as its seccomp profile, is not there."""

import re
import subprocess
import sys

import yaml


def bytes_of(quantity: str) -> str:
    """A quantity of Kubernetes in bytes."""
    number, unit = re.fullmatch(r"(\d+)([KMG]i)?", quantity).groups()
    return str(int(number) << {None: 0, "Ki": 10, "Mi": 20, "Gi": 30}[unit])


def sandbox(job: dict, index: int, volume: str, program: str, cache: str) -> list[str]:
    """The command of a pod, in its surroundings."""
    pod = job["template"]["spec"]
    [container] = pod["containers"]
    security = pod["securityContext"] | container["securityContext"]
    assert security["runAsNonRoot"] and not security["allowPrivilegeEscalation"]
    assert security["capabilities"] == {"drop": ["ALL"]}
    command = ["bwrap", "--unshare-all", "--die-with-parent", "--clearenv", "--cap-drop", "ALL"]
    command += ["--uid", str(security["runAsUser"]), "--gid", str(security["runAsGroup"])]
    command += ["--ro-bind", "/usr", "/usr", "--proc", "/proc", "--dev", "/dev"]
    for name in ["bin", "lib", "lib64"]:
        command += ["--symlink", f"usr/{name}", f"/{name}"]
    command += ["--ro-bind", program, "/image/lastbyte", "--setenv", "PATH", "/image:/usr/bin"]
    environment = {}
    for variable in container["env"]:
        environment[variable["name"]] = variable.get("value", str(index))
    for name, value in environment.items():
        command += ["--setenv", name, value]
    command += ["--ro-bind", cache, environment["LASTBYTE_CACHE"]]
    volumes = {of["name"]: of for of in pod["volumes"]}
    for mount in container["volumeMounts"]:
        of = volumes[mount["name"]]
        if "persistentVolumeClaim" in of:
            command += ["--bind", volume, mount["mountPath"]]
            continue
        if "sizeLimit" in of["emptyDir"]:
            command += ["--size", bytes_of(of["emptyDir"]["sizeLimit"])]
        command += ["--tmpfs", mount["mountPath"]]
    if security["readOnlyRootFilesystem"]:
        command += ["--remount-ro", "/"]
    expand = lambda word: re.sub(r"\$\((\w+)\)", lambda name: environment[name[1]], word)
    return command + [expand(word) for word in container["command"]]


def main() -> None:
    """All pods."""
    manifest, *image = sys.argv[1:]
    with open(manifest, encoding="utf-8") as file:
        job = yaml.safe_load(file)["spec"]
    [shards] = [of["value"] for of in job["template"]["spec"]["containers"][0]["env"] if of["name"] == "LASTBYTE_SHARDS"]
    assert shards == str(job["completions"])
    for index in range(job["completions"]):
        subprocess.run(sandbox(job, index, *image), check=True, stdout=subprocess.DEVNULL)


main()
